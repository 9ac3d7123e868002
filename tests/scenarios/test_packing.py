"""binpack: nodes are filled one after the other, whichever way a pod comes to the scheduler."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.scenarios.confs import conf

CONF = conf(
    "predicates",
    "proportion",
    {
        "name": "binpack",
        "arguments": {
            "binpack.weight": 10,
            "binpack.resources": "nvidia.com/gpu",
            "binpack.resources.nvidia.com/gpu": 8,
        },
    },
)


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


def nodes_of(place: Place, group: str) -> set[str]:
    return {workloads.node_of(pod) for pod in place.bound(group)}


def test_the_members_of_a_gang_share_a_node_and_the_next_gang_fills_it(place: Place) -> None:
    place.add_nodes(4, cpu="4")
    place.add_gang("first", 3)
    place.wait_bound("first", 3)
    place.add_gang("second", 1)
    place.wait_bound("second", 1)
    place.add_gang("third", 4)
    place.wait_bound("third", 4)

    assert len(nodes_of(place, "first")) == 1
    assert nodes_of(place, "second") == nodes_of(place, "first")
    assert len(nodes_of(place, "third")) == 1


@pytest.mark.parametrize("gated", [True, False], ids=["gated", "ungated"])
def test_single_pods_fill_a_node_before_the_next(place: Place, *, gated: bool) -> None:
    place.add_nodes(4, cpu="2")
    for number in range(4):
        pod = workloads.pod(f"pod-{number}")
        if not gated:
            pod["metadata"]["annotations"] |= workloads.UNGATED
        place.submit_one(pod)
        place.wait_pod_bound(f"pod-{number}")
    used = sorted(workloads.node_of(pod) for pod in place.pods())
    assert len(set(used)) == 2


def test_a_resource_of_its_own_weight_decides(place: Place) -> None:
    """A node with GPUs in use is filled before one whose cores are."""
    place.add_nodes(1, cpu="8", extra={"nvidia.com/gpu": "4"})
    place.add_nodes(1, cpu="8", extra={"nvidia.com/gpu": "4"})
    gpu = {"limits": {"nvidia.com/gpu": "1", "cpu": "1"}}
    place.add_gang("gpus", 2, resources=gpu)
    (first,) = {workloads.node_of(pod) for pod in place.wait_bound("gpus", 2)}
    place.add_gang("more", 2, resources=gpu)
    assert {workloads.node_of(pod) for pod in place.wait_bound("more", 2)} == {first}
