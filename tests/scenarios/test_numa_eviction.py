"""numa-aware with preempt: pods go so that the cpus of one NUMA node are free, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from app.cli.certificates import check
from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.scenarios.confs import evicting
from tests.scenarios.test_numa import Machines, add_gang, decisions


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    document = yaml.safe_load(evicting("enqueue, allocate, preempt, backfill"))
    document["tiers"][1]["plugins"].append({"name": "numa-aware"})
    return yaml.safe_dump(document)


@pytest.fixture
def machines(place: Place) -> Iterator[Machines]:
    made = Machines(place)
    yield made
    made.clear()


def of_numa_node(place: Place, group: str) -> str:
    """The NUMA node that the one pod of the group has its cpus on."""
    [told] = decisions(place, group)
    [numa] = told["numa"]
    return str(numa)


def test_a_pod_that_needs_one_numa_node_takes_the_room_of_one(
    place: Place, machines: Machines
) -> None:
    """Two cpus are idle, one on each NUMA node, so that cpus that are idle do not say enough."""
    machines.add()
    lingering = workloads.lingering()
    lingering["containers"][0]["resources"] = {"limits": {"cpu": "3", "memory": "64Mi"}}
    low, high = (place.add_priority_class(name, at) for name, at in (("low", 10), ("high", 100)))
    for name in ("one", "two"):
        add_gang(place, name, 1, cpu=3, rank=low, **lingering)
        place.wait_bound(name, 1)
    assert {of_numa_node(place, name) for name in ("one", "two")} == {"0", "1"}
    add_gang(place, "high", 1, cpu=4, rank=high)
    place.wait_condition("high", "Reserved", "False", reason="Pipelined", says="1 pod to go")
    [plan] = place.cluster.extender.get("/debug/evictions")["begun"]
    assert check(plan["certificate"]) == []
    [victim] = [each["pod"].partition("/")[2] for each in plan["victims"]]
    place.wait_leaving(victim)
    place.delete_pod(victim)
    place.wait_bound("high", 1)
    [stays] = [name for name in ("one", "two") if place.bound(name)]
    assert of_numa_node(place, stays) != of_numa_node(place, "high")


def test_no_pod_goes_where_the_cpus_that_are_left_are_on_two_numa_nodes(
    place: Place, machines: Machines
) -> None:
    """Without the pod of low priority six cpus would be idle, three on each NUMA node."""
    machines.add(free="0-2,4-6")
    low, high = (place.add_priority_class(name, at) for name, at in (("low", 10), ("high", 100)))
    add_gang(place, "low", 1, cpu=3, rank=low)
    place.wait_bound("low", 1)
    add_gang(place, "high", 1, cpu=4, rank=high)
    place.wait_summary("high", "preempt: 1 candidate")
    with pytest.raises(AssertionError, match="a pod goes"):
        wait_until(lambda: not place.bound("low"), timeout_s=3, what="a pod goes")
