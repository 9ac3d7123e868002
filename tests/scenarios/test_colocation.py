"""Online and offline pods on the same nodes: the queue and the job of the example."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.clusters.resources import NODES
from tests.scenarios.confs import conf

CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
EVICTING = "volcano.sh/offline-job-evicting"
(QUEUE,) = documents(ROOT / "examples" / "scheduling" / "offline-queue.yaml")
(JOB,) = documents(ROOT / "examples" / "scheduling" / "offline.yaml")
ROOM = {CPU: "8000", MEMORY: str(32 << 30)}


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf("predicates", "proportion", "nodeorder")


def add_offline(place: Place, name: str, count: int, *, queue: str = "default") -> None:
    """Pods as those of the example, all or none."""
    [task] = JOB["spec"]["tasks"]
    [container] = task["template"]["spec"]["containers"]
    place.add_group(name, count, queue=queue)
    pods = workloads.members(name, count, resources=container["resources"])
    for pod in pods:
        pod["metadata"]["annotations"] |= task["template"]["metadata"]["annotations"]
    place.submit(pods)


def report(place: Place, node: str, cpu: str) -> None:
    """Let a node report that much cpu for offline pods, as its agent would."""
    room = {CPU: cpu}
    status: Object = {"status": {"capacity": room, "allocatable": room}}
    place.api.patch(NODES, node, status, subresource="status")


def test_offline_pods_take_what_online_ones_leave_unused_and_no_cpu(place: Place) -> None:
    (node,) = place.add_nodes(1, cpu="2", extra=ROOM)
    add_offline(place, "offline", 4)
    place.wait_bound("offline", 4)
    place.add_gang("online", 2, cpu="1")
    place.wait_bound("online", 2)
    assert {workloads.node_of(pod) for pod in place.bound()} == {node}


def test_a_gang_that_needs_more_than_nodes_report_waits_whole_until_they_do(place: Place) -> None:
    (node,) = place.add_nodes(1, cpu="8", extra={**ROOM, CPU: "1500"})
    add_offline(place, "offline", 2)
    place.wait_summary("offline", CPU)
    assert place.bound("offline") == []
    report(place, node, "2000")
    place.wait_bound("offline", 2)


def test_a_queue_holds_no_more_than_its_capability_of_them(place: Place) -> None:
    place.add_nodes(1, cpu="8", extra=ROOM)
    queue = place.add_queue("offline", capability=QUEUE["spec"]["capability"])
    add_offline(place, "first", 3, queue=queue)
    place.wait_bound("first", 3)
    add_offline(place, "second", 2, queue=queue)
    place.wait_summary("second", CPU)
    add_offline(place, "third", 1, queue=queue)
    place.wait_bound("third", 1)
    assert place.bound("second") == []


def test_a_node_where_offline_pods_are_evicted_takes_none(place: Place) -> None:
    taint = {"key": EVICTING, "effect": "NoSchedule"}
    (tainted,) = place.add_nodes(1, cpu="8", extra=ROOM, taints=[taint])
    (noted,) = place.add_nodes(1, cpu="8", extra={**ROOM, CPU: "0"})
    place.api.patch(NODES, noted, {"metadata": {"annotations": {EVICTING: "true"}}})
    report(place, noted, "8000")  # so the annotation is known wherever its room is
    add_offline(place, "offline", 2)
    place.wait_summary("offline", EVICTING)
    place.api.patch(NODES, noted, {"metadata": {"annotations": {EVICTING: "false"}}})
    place.wait_bound("offline", 2)
    assert {workloads.node_of(pod) for pod in place.bound("offline")} == {noted} != {tainted}


def test_when_a_node_reports_less_places_of_offline_pods_go_and_online_ones_stay(
    place: Place,
) -> None:
    (node,) = place.add_nodes(1, cpu="2", extra={**ROOM, CPU: "2000"})
    add_offline(place, "offline", 2)
    place.wait_bound("offline", 2)
    report(place, node, "500")
    place.add_gang("online", 2, cpu="1")
    place.wait_bound("online", 2)
    assert len(place.bound("offline")) == 2
    add_offline(place, "late", 1)
    place.wait_summary("late", CPU)
