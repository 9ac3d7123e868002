"""Volcano's gate for queues: it goes when the queue has room, be there a node or not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.place import Place, condition
from tests.clusters.resources import PODS
from tests.clusters.workloads import QUEUE_GATE
from tests.scenarios.confs import conf

OTHER = "example.com/other"
NOWHERE = {"example.com/kind": "that-no-node-has"}


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf("predicates", "capacity", "nodeorder")


def asking(name: str, group: str, *, others: tuple[str, ...] = (), **fields: Any) -> Object:
    """A pod behind Volcano's gate; the policy puts our gate on it besides."""
    return workloads.behind_queue_gate(workloads.pod(name, group=group, **fields), *others)


def gates_of(place: Place, name: str) -> set[str]:
    return {gate["name"] for gate in place.pod(name)["spec"].get("schedulingGates", [])}


def wait_unschedulable(place: Place, name: str) -> None:
    """Wait until kube-scheduler calls it so: that is what autoscalers look for."""

    def is_called_so(pod: Object) -> bool:
        said = condition(pod, "PodScheduled")
        return said is not None and said.get("reason") == "Unschedulable"

    place.api.until_one(PODS, name, is_called_so, namespace=place.name)
    assert not gates_of(place, name)
    assert condition(place.pod(name), "pumice.sh/Placed") is None


def test_a_pod_runs_when_its_queue_has_room(place: Place) -> None:
    place.add_nodes(2, cpu="2")
    queue = place.add_queue("team", capability={"cpu": "1"})
    place.add_group("gang", 1, queue=queue)
    place.submit_one(asking("first", "gang"))
    place.wait_pod_bound("first")

    place.submit_one(asking("second", "gang"))
    place.wait_pod_condition("second", "pumice.sh/Placed", "False", says=f"queue {queue}")
    assert QUEUE_GATE in gates_of(place, "second")
    place.delete_pod("first")
    place.wait_pod_bound("second")
    assert not gates_of(place, "second")


def test_a_pod_that_finds_no_node_is_seen_and_its_queue_keeps_room_for_it(place: Place) -> None:
    place.add_nodes(2, cpu="2")
    queue = place.add_queue("team", capability={"cpu": "1"})
    place.add_group("gang", 1, queue=queue)
    place.submit_one(asking("choosy", "gang", nodeSelector=NOWHERE))
    wait_unschedulable(place, "choosy")

    place.add_group("other", 1, queue=queue)
    place.submit_one(asking("plain", "other"))
    place.wait_condition("other", "Reserved", "False", reason="QueueQuota", says="free 0 of 1")
    assert QUEUE_GATE in gates_of(place, "plain")

    place.add_nodes(1, cpu="2", labels=NOWHERE)
    place.wait_pod_bound("choosy")
    place.delete_gang("gang")
    place.wait_pod_bound("plain")


def test_a_gang_in_a_full_cluster_is_seen_whole_and_runs_on_the_nodes_that_come(
    place: Place,
) -> None:
    place.add_nodes(1, cpu="2")
    place.add_group("gang", 3, minResources={"cpu": "3"})
    place.submit(asking(f"gang-{i}", "gang") for i in range(3))
    for i in range(3):
        wait_unschedulable(place, f"gang-{i}")
    assert not place.bound()

    place.add_nodes(1, cpu="2")
    for i in range(3):
        place.wait_pod_bound(f"gang-{i}")


def test_a_pod_that_somebody_else_holds_too_waits_for_them(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.add_group("gang", 1)
    place.submit_one(asking("pod", "gang", others=(OTHER,)))
    place.wait_condition("gang", "Reserved", "False", reason="Gated", says=f"gate {OTHER}")
    held = gates_of(place, "pod")
    assert {QUEUE_GATE, OTHER} <= held

    rest = [{"name": gate} for gate in sorted(held - {OTHER})]
    place.api.patch(PODS, "pod", {"spec": {"schedulingGates": rest}}, namespace=place.name)
    place.wait_pod_bound("pod")
