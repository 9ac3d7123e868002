"""Where members are is told of groups for which it matters, and of no others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from app.cache.snapshots.snapshotter import Snapshotter
from app.model.amounts import Amounts
from app.model.ids import GroupKey, QueueName
from app.model.pod import TASK_SPEC
from app.model.shape import LabelSelector
from app.model.topology import REQUIRED, GroupTerm, SpreadTerm, Tier, TopologyAffinity
from app.model.workload import AFFINITY, TASK_ORDER
from tests.builders import make_amounts, make_queue
from tests.cache.rig import KEY, Rig, group

TOLD: Any = {"annotations": {AFFINITY: "ps,worker"}}
LIMITS = {"a": make_amounts(cpu=2000)}


def places(rig: Rig) -> Mapping[GroupKey, list[tuple[str, str, int]]]:
    found = Snapshotter(rig.cache).snapshot().places
    return {
        key: sorted((place.node, place.role, int(place.request[0])) for place in of)
        for key, of in found.items()
    }


def limited(rig: Rig, limits: Mapping[str, Amounts] | None) -> None:
    rig.cache.set_queue(make_queue("default", node_group_limits=limits))


def test_a_group_that_tells_its_tasks_apart_has_its_members_and_slots_there() -> None:
    rig = Rig()
    rig.see(min_member=3, **TOLD)
    rig.pod("w", annotations={TASK_SPEC: "worker"})
    rig.pod("waits", annotations={TASK_SPEC: "worker"})
    assert rig.place(w="n")
    assert rig.slot("m", role="ps")
    assert places(rig) == {KEY: [("m", "ps", 1000), ("n", "worker", 1000)]}


@pytest.mark.parametrize(("phase", "count"), [("Running", 1), ("Succeeded", 0), ("Failed", 0)])
def test_members_that_have_ended_hold_no_place(phase: str, count: int) -> None:
    rig = Rig()
    rig.see(annotations={TASK_ORDER: "worker"})
    rig.pod("w", node="n", phase=phase)
    assert len(places(rig)[KEY]) == count


def test_it_is_told_as_long_as_the_group_says_so() -> None:
    rig = Rig()
    rig.pod("w", node="n", phase="Running")
    assert places(rig) == {}
    rig.see(**TOLD)
    assert places(rig) == {KEY: [("n", "", 1000)]}
    rig.see()
    assert places(rig) == {}


def test_it_is_told_of_queues_with_limits_per_node_group() -> None:
    rig = Rig()
    rig.pod("w", node="n", phase="Running")
    limited(rig, LIMITS)
    assert places(rig) == {KEY: [("n", "", 1000)]}
    limited(rig, {})
    assert places(rig) == {}
    limited(rig, LIMITS)
    rig.cache.drop_queue(QueueName("default"))
    assert places(rig) == {}


def test_a_group_that_is_gone_is_told_of_no_more() -> None:
    rig = Rig()
    rig.see(**TOLD)
    assert places(rig) == {KEY: []}
    rig.cache.drop_group(KEY)
    assert places(rig) == {}


def test_it_is_told_of_groups_whose_pods_ask_for_a_domain() -> None:
    rig = Rig()
    rig.pod("w", node="n", phase="Running")
    assert places(rig) == {}
    rig.pod("w", node="n", phase="Running", annotations={REQUIRED: "rack"})
    assert places(rig) == {KEY: [("n", "", 1000)]}


def test_it_is_told_of_all_groups_while_one_looks_at_others() -> None:
    rig = Rig()
    rig.pod("w", node="n", phase="Running")
    looks = TopologyAffinity(groups_apart=(GroupTerm(LabelSelector(), Tier(1)),))
    rig.cache.set_group(replace(group(affinity=looks), name="other", uid="other"))
    assert places(rig) == {KEY: [("n", "", 1000)], "default/other": []}
    rig.cache.set_group(replace(group(), name="other", uid="other"))
    assert places(rig) == {}
    rig.cache.set_group(replace(group(affinity=looks), name="other", uid="other"))
    rig.cache.drop_group(GroupKey("default/other"))
    assert places(rig) == {}


def test_it_is_told_of_a_group_that_is_spread_and_of_no_other() -> None:
    rig = Rig()
    rig.see(affinity=TopologyAffinity(spread=(SpreadTerm(Tier(1), 2),)))
    rig.cache.set_group(replace(group(), name="other", uid="other"))
    assert places(rig) == {KEY: []}
