"""Jobs whose partitions need racks (`partitionPolicy`), through the controllers, on both clusters.

The cases are those of Volcano's scenarios of partitions (4.1 to 9.6): two racks of two seats, each
of which takes one pod, beside nodes with much room that are in no rack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object, Objects
from tests.clusters.resources import JOBS, POD_GROUPS, PODS
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.shapes import make_job, policy, task
from tests.scenarios.jobs.test_job_domains import RACKS, node_of, tier

__all__ = ["ground", "tier"]

pytestmark = pytest.mark.timeout(200)

PARTITION = "volcano.sh/partition-id"
SOFT = {"mode": "soft"}


@pytest.fixture(autouse=True)
def _cleared(ground: Ground, tier: str) -> Iterator[None]:
    """No job of one test is there in the next."""
    yield
    ground.api.delete_all(JOBS, namespace=ground.name)
    ground.wait_none(JOBS, PODS, POD_GROUPS)


def hard(tier: str) -> Object:
    return {"mode": "hard", "highestTierName": tier}


def in_partitions(count: int, size: int, asked: Object, *, least: int = 0) -> Object:
    """A task of so many partitions; each pod takes a seat."""
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "3"}},
    }
    pod = {"containers": [container], "tolerations": [{"key": "seat", "operator": "Exists"}]}
    partitions: dict[str, Any] = {
        "totalPartitions": count,
        "partitionSize": size,
        "networkTopology": asked,
    }
    if least:
        partitions["minPartitions"] = least
    return task(
        "up", count * size, command=["sleep", "infinity"], pod=pod, partitionPolicy=partitions
    )


def racks_of_partitions(ground: Ground, pods: Objects) -> Mapping[str, set[str]]:
    """The racks of the bound pods that stay, by partition; "" is none of the racks."""
    rack_of = {node_of(ground, seat): rack for rack, seats in RACKS.items() for seat in seats}
    found: dict[str, set[str]] = defaultdict(set)
    for pod in workloads.bound([pod for pod in pods if not workloads.is_leaving(pod)]):
        found[pod["metadata"]["labels"][PARTITION]].add(rack_of.get(workloads.node_of(pod), ""))
    return found


def labels_of(pod: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["metadata"]["labels"]
    return found


def wait_bound(ground: Ground, count: int) -> Mapping[str, set[str]]:
    """Wait until so many pods that stay are bound; the racks of their partitions."""

    def are_bound(pods: Objects) -> bool:
        stay = [pod for pod in pods if not workloads.is_leaving(pod)]
        return len(list(workloads.bound(stay))) == count

    ground.wait(PODS, are_bound, what=f"{count} pods are bound")
    return racks_of_partitions(ground, ground.api.list(PODS, namespace=ground.name))


def wait_told(ground: Ground, says: str) -> None:
    """Wait until the only PodGroup says so of itself."""

    def is_told(groups: Objects) -> bool:
        conditions = [each for g in groups for each in g.get("status", {}).get("conditions", ())]
        return any(says in each.get("message", "") for each in conditions)

    ground.wait(POD_GROUPS, is_told, what=says)


def test_each_partition_lies_in_a_rack_of_its_own(ground: Ground, tier: str) -> None:
    """Case 8.1: only the partitions ask for something."""
    ground.submit("parted", make_job(in_partitions(2, 2, hard(tier)), needs=4))
    found = wait_bound(ground, 4)
    assert sorted(map(sorted, found.values())) == [["x"], ["y"]]


@pytest.mark.parametrize("least", [0, 2])
def test_partitions_of_a_task_that_waits_for_another_get_their_racks_when_they_come(
    ground: Ground, tier: str, least: int
) -> None:
    """The job runs before they are there, whatever they ask for when they come."""
    first = task("first", command=["sleep", "infinity"], minAvailable=1)
    later = in_partitions(2, 2, hard(tier), least=least)
    later |= {"dependsOn": {"name": ["first"]}} | ({} if least else {"minAvailable": 0})
    ground.submit("in-turn", make_job(first, later, needs=1))

    def are_bound(pods: Objects) -> bool:
        return len(list(workloads.bound(pods))) == 5

    ground.wait(PODS, are_bound, what="all pods are bound")
    pods = ground.api.list(PODS, namespace=ground.name)
    found = racks_of_partitions(ground, [pod for pod in pods if PARTITION in labels_of(pod)])
    assert sorted(map(sorted, found.values())) == [["x"], ["y"]]


def test_partitions_of_a_job_that_needs_one_rack_lie_there_together(
    ground: Ground, tier: str
) -> None:
    """Case 4.1: the job asks for the same."""
    asked = {"networkTopology": hard(tier)}
    ground.submit("narrow", make_job(in_partitions(2, 1, hard(tier)), needs=2) | asked)
    found = wait_bound(ground, 2)
    assert len(found) == 2
    assert len(set().union(*found.values()) - {""}) == 1


def test_a_job_of_partitions_that_no_rack_holds_waits_whole(ground: Ground, tier: str) -> None:
    """Cases 4.2, 5.5 and 9.4; nodes in no rack would have room for all."""
    ground.submit("large", make_job(in_partitions(1, 3, hard(tier)), needs=3))
    wait_told(ground, "has room for 3 pods of cpu 3")
    assert not list(workloads.bound(ground.api.list(PODS, namespace=ground.name)))


def test_a_job_that_needs_more_partitions_than_there_are_racks_waits_whole(
    ground: Ground, tier: str
) -> None:
    """Case 9.3."""
    ground.submit("many", make_job(in_partitions(3, 2, hard(tier), least=3), needs=6))
    wait_told(ground, "2 of 3 sub-groups of 2 pods of cpu 3")
    assert not list(workloads.bound(ground.api.list(PODS, namespace=ground.name)))


def test_a_job_runs_with_as_many_partitions_as_it_needs_and_others_wait_whole(
    ground: Ground, tier: str
) -> None:
    """Cases 9.1 and 9.2."""
    ground.submit("enough", make_job(in_partitions(3, 2, hard(tier), least=2), needs=4))
    found = wait_bound(ground, 4)
    assert sorted(map(sorted, found.values())) == [["x"], ["y"]]
    ground.wait(
        JOBS, lambda jobs: jobs[0]["status"]["state"]["phase"] == "Running", what="the job runs"
    )


def test_soft_partitions_lie_in_racks_while_there_is_room_and_elsewhere_beyond(
    ground: Ground, tier: str
) -> None:
    """Cases 6.1 and 6.2."""
    ground.submit("soft", make_job(in_partitions(3, 2, SOFT), needs=6))
    found = wait_bound(ground, 6)
    assert sorted(map(sorted, found.values())) == [[""], ["x"], ["y"]]


def test_a_pod_that_is_killed_comes_back_into_the_rack_of_its_partition(
    ground: Ground, tier: str
) -> None:
    """Cases 5.3 and 9.5."""
    restart = [policy("PodEvicted", "RestartPod")]
    job = make_job(in_partitions(2, 2, hard(tier), least=2), needs=4, policies=restart)
    ground.submit("again", job)
    before = wait_bound(ground, 4)
    lost = ground.api.list(PODS, namespace=ground.name)[0]["metadata"]
    ground.bury(lost["name"])
    wait_replaced(ground, {lost["uid"]})
    assert wait_bound(ground, 4) == before


def test_a_partition_that_is_restarted_is_whole_in_one_rack(ground: Ground, tier: str) -> None:
    """Case 9.6; the other one keeps its rack."""
    restart = [policy("PodEvicted", "RestartPartition")]
    job = make_job(in_partitions(2, 2, hard(tier), least=2), needs=4, policies=restart)
    ground.submit("part", job)
    before = wait_bound(ground, 4)
    pods = [
        pod["metadata"]
        for pod in ground.api.list(PODS, namespace=ground.name)
        if pod["metadata"]["labels"][PARTITION] == "0"
    ]
    ground.bury(pods[0]["name"])
    wait_replaced(ground, {pod["uid"] for pod in pods})
    assert wait_bound(ground, 4) == before


def wait_replaced(ground: Ground, uids: set[str]) -> None:
    """Wait until none of these pods is there any more."""
    ground.wait(
        PODS,
        lambda pods: not uids & {pod["metadata"]["uid"] for pod in pods},
        what="the pods are replaced",
    )
