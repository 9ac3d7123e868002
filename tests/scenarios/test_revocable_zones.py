"""tdm: nodes are lent while their zone is open, and taken back when it closes."""

from __future__ import annotations

import time

import pytest

from tests.clusters import workloads
from tests.clusters.client import Objects
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.clusters.resources import NODES, PODS
from tests.scenarios.confs import conf

ZONE = "volcano.sh/revocable-zone"
LENT = {ZONE: "*"}


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    """The zone ``day`` is always open, ``later`` opens in some hours."""
    hour = time.gmtime().tm_hour
    later = f"{(hour + 6) % 24}:00-{(hour + 7) % 24}:00"
    zones = {"tdm.revocable-zone.day": "0:00-0:00", "tdm.revocable-zone.later": later}
    plugin = {"name": "tdm", "arguments": {**zones, "tdm.evict.period": "1s"}}
    text = conf("predicates", "proportion", "nodeorder", plugin)
    return text.replace("allocate, backfill", "allocate, preempt, backfill")


def add_gang(place: Place, name: str, count: int, *, lent: bool = True, minimum: int = 1) -> None:
    place.add_group(name, minimum)
    pods = workloads.members(name, count)
    for pod in pods:
        pod["metadata"]["annotations"] |= LENT if lent else {}
    place.submit(pods)


def nodes_of(place: Place, group: str) -> set[str]:
    return {workloads.node_of(pod) for pod in place.bound(group)}


def test_only_pods_that_may_be_evicted_are_on_lent_nodes_and_first_there(place: Place) -> None:
    (lent,) = place.add_nodes(1, cpu="4", labels={ZONE: "day"})
    (own,) = place.add_nodes(1, cpu="4")
    add_gang(place, "offline", 2)
    add_gang(place, "online", 2, lent=False)
    place.wait_bound("offline", 2)
    place.wait_bound("online", 2)
    assert (nodes_of(place, "offline"), nodes_of(place, "online")) == ({lent}, {own})


def test_a_node_of_a_closed_zone_takes_no_pod(place: Place) -> None:
    place.add_nodes(1, cpu="4", labels={ZONE: "later"})
    add_gang(place, "offline", 1)
    place.wait_summary("offline", "current time beyond revocable zone")


def test_when_a_zone_closes_the_pods_go_and_the_rest_of_the_gang_stays(place: Place) -> None:
    (lent,) = place.add_nodes(1, cpu="2", labels={ZONE: "day"})
    (own,) = place.add_nodes(1, cpu="2")
    add_gang(place, "offline", 4, minimum=2)
    place.wait_bound("offline", 4)
    place.api.patch(NODES, lent, {"metadata": {"labels": {ZONE: "later"}}})

    def are_on_their_own_node(pods: Objects) -> bool:
        return [workloads.node_of(pod) for pod in pods] == [own, own]

    place.api.until(PODS, are_on_their_own_node, namespace=place.name, what="the node is empty")


def test_the_job_of_the_example_runs_on_lent_nodes(place: Place) -> None:
    (job,) = documents(ROOT / "examples" / "scheduling" / "revocable.yaml")
    said = job["metadata"]["annotations"]
    place.add_nodes(1, cpu="2", labels={ZONE: "day"})
    [task] = job["spec"]["tasks"]
    [container] = task["template"]["spec"]["containers"]
    place.add_group("ours", job["spec"]["minAvailable"])
    pods = workloads.members("ours", task["replicas"], resources=container["resources"])
    for pod in pods:
        pod["metadata"]["annotations"] |= said
    place.submit(pods)
    place.wait_bound("ours", 2)
