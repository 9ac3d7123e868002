"""A PodGroup is changed, or is another one of the same name, while room is reserved to its gang."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.cache.gangs.views import counts_of
from app.model.ids import NodeName, QueueName
from app.model.pod import TASK_SPEC
from app.model.reason import Cause
from app.model.workload import GroupPhase, PodGroup
from tests.builders import make_amounts, make_queue
from tests.service.cycle.test_planning_cycle import ALWAYS_YIELD, during_a_cycle
from tests.service.rig import GONE, Rig
from tests.service.virtual_time import advance, clock, settle

FULL, WIDE = QueueName("full"), QueueName("wide")
SLOTS = 4
FOR_ALL = make_amounts(cpu=1000 * SLOTS)


async def planned_gang() -> Rig:
    """A gang ``g`` of three with its places, and two queues: one can hold it, one cannot."""
    rig = Rig()
    rig.queue(make_queue("wide"))
    rig.queue(make_queue("full", capability=make_amounts(cpu=1000)))
    rig.node("n1")
    rig.gang("g", size=3)
    await rig.cycle()
    assert rig.has_reservations() == 3
    return rig


def stored(rig: Rig) -> PodGroup:
    group = rig.cache.groups[rig.key("g")].pod_group
    assert group is not None
    return group


def change(rig: Rig, **fields: Any) -> None:
    """The watch shows the group changed."""
    rig.see("podgroups", replace(stored(rig), **fields))


def make_anew(rig: Rig, **fields: Any) -> None:
    """It is deleted and made again while the watch is broken: a listing shows the second one."""
    second = replace(stored(rig), uid="second", phase=GroupPhase.PENDING, **fields)
    rig.parts.feed.begin_listing("podgroups")
    rig.parts.feed.upsert("podgroups", second)
    rig.parts.feed.end_listing("podgroups")
    rig.parts.feed.batch_done()


def slots(rig: Rig) -> list[str]:
    """The roles that room is kept for."""
    return sorted(slot.role for slot in rig.cache.groups[rig.key("g")].slots.values())


# --- another queue --------------------------------------------------------------------------------


async def test_a_gang_that_moves_to_another_queue_is_planned_again_for_that_one() -> None:
    rig = await planned_gang()
    call = rig.bind("g-0")
    await settle()
    change(rig, queue=FULL)
    await settle()
    assert call.answer == "PodGroup moved to another queue"
    await rig.cycle()
    assert rig.has_reservations() == 0
    assert rig.refusals[rig.key("g")].cause is Cause.QUEUE_QUOTA
    change(rig, queue=WIDE)
    await rig.cycle()
    assert rig.has_reservations() == 3


async def test_a_binding_that_is_under_way_stays_when_the_queue_changes() -> None:
    rig = await planned_gang()
    rig.api.slow = asyncio.Event()
    calls = [rig.bind(f"g-{i}") for i in range(3)]
    await settle()
    change(rig, queue=FULL)
    await settle()
    assert rig.has_reservations() == 3
    rig.api.slow.set()
    await settle()
    assert [call.answer for call in calls] == [""] * 3


async def test_a_binding_that_fails_after_the_queue_changed_leaves_the_pod_waiting() -> None:
    rig = await planned_gang()
    rig.api.slow = asyncio.Event()
    calls = [rig.bind(f"g-{i}") for i in range(3)]
    await settle()
    change(rig, queue=FULL)
    rig.api.pods.clear()
    rig.api.slow.set()
    await settle()
    assert [call.answer for call in calls] == [str(GONE)] * 3
    await rig.cycle()
    assert rig.has_reservations() == 0


async def test_slots_are_given_back_when_the_queue_changes() -> None:
    rig = await with_slots()
    change(rig, queue=FULL)
    assert slots(rig) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": GroupPhase.RUNNING, "running": 1, "resource_version": "2"},
        {"labels": {"of": "somebody"}},
        {"min_member": 2},
    ],
    ids=["its status", "its labels", "a lower minimum"],
)
async def test_no_member_loses_its_place_by_any_other_change(fields: dict[str, Any]) -> None:
    rig = await planned_gang()
    change(rig, **fields)
    assert rig.has_reservations() == 3


# --- another group of the same name ---------------------------------------------------------------


async def test_a_group_made_anew_is_admitted_before_its_members_are_bound() -> None:
    rig = await planned_gang()
    call = rig.bind("g-0")
    await settle()
    make_anew(rig, min_member=1)
    await settle()
    assert call.answer == "PodGroup was deleted"
    group = rig.cache.groups[rig.key("g")]
    assert (group.phase, rig.has_reservations()) == (GroupPhase.PENDING, 0)
    await rig.cycle()
    assert (group.phase, rig.has_reservations()) == (GroupPhase.INQUEUE, 3)


async def test_finished_members_count_for_a_group_made_anew() -> None:
    rig = await planned_gang()
    rig.pod("done", group="g", node=NodeName("n1"), phase="Succeeded")
    make_anew(rig)
    counts = counts_of(rig.cache.groups[rig.key("g")])
    assert (counts.succeeded, counts.pending) == (1, 3)


async def held_off() -> Rig:
    """``g`` waits a minute because it did not come together again and again."""
    rig = await planned_gang()
    group = rig.cache.groups[rig.key("g")]
    group.failures = 7
    rig.bind("g-0")
    await advance(rig.limits.barrier_s)
    assert group.cool_down_until == clock() + rig.limits.hold_max_s
    await rig.cycle()
    assert rig.has_reservations() == 0
    return rig


def delete_and_make_anew(rig: Rig) -> None:
    rig.unsee("podgroups", stored(rig))
    rig.group("g", minimum=3, uid="second")


@pytest.mark.parametrize(
    ("happens", "has_reservations"),
    [
        pytest.param(delete_and_make_anew, 3, id="another group"),
        pytest.param(make_anew, 3, id="another group, unseen"),
        pytest.param(lambda rig: change(rig, min_member=2), 3, id="another minimum"),
        pytest.param(lambda rig: change(rig, labels={"of": "somebody"}), 0, id="nothing of it"),
    ],
)
async def test_a_group_that_asks_for_something_else_does_not_wait_for_what_it_did_before(
    happens: Callable[[Rig], object], has_reservations: int
) -> None:
    rig = await held_off()
    happens(rig)
    await rig.cycle()
    await rig.cycle()
    assert rig.has_reservations() == has_reservations
    assert (rig.cache.groups[rig.key("g")].failures == 0) is bool(has_reservations)


# --- another minimum ------------------------------------------------------------------------------


async def with_slots(**fields: Any) -> Rig:
    """The group ``g`` without members, and a node that is full with the slots of it."""
    rig = Rig()
    rig.queue(make_queue("full", capability=make_amounts(cpu=1000)))
    rig.node("n1", cpu=1000 * SLOTS)
    rig.group("g", minimum=SLOTS, min_resources=FOR_ALL, **fields)
    await rig.cycle()
    assert len(slots(rig)) == SLOTS
    return rig


async def test_slots_that_a_lower_minimum_does_not_need_are_free_at_once() -> None:
    rig = await with_slots()
    rig.pod("g-0", group="g")
    change(rig, min_member=2)
    assert len(slots(rig)) == 1
    rig.gang("other", size=2)
    await rig.cycle()
    assert rig.place("g-0") == rig.place("other-0") == rig.place("other-1") == "n1"


@pytest.mark.parametrize(
    ("minimum", "roles", "left"),
    [
        (3, {"a": 1, "b": 2}, ["a", "b", "b"]),
        (2, {"a": 1}, ["a", "a"]),
        (2, {"a": 2}, ["a", "a"]),
        (0, {}, []),
        (5, {"a": 2, "b": 2}, ["a", "a", "b", "b"]),
    ],
)
async def test_the_slots_that_roles_lack_stay(
    minimum: int, roles: dict[str, int], left: list[str]
) -> None:
    rig = await with_slots(role_minimum={"a": 2, "b": 2})
    change(rig, min_member=minimum, role_minimum=roles)
    assert slots(rig) == left


async def test_a_role_that_needs_fewer_gives_room_back_though_the_minimum_stays() -> None:
    rig = await with_slots(role_minimum={"a": 2, "b": 2})
    for i in range(2):
        rig.pod(f"g-{i}", group="g", annotations={TASK_SPEC: "c"})
    assert slots(rig) == ["a", "a", "b", "b"]
    change(rig, role_minimum={"a": 1, "b": 1})
    assert slots(rig) == ["a", "b"]


# --- while a cycle plans on what it was -----------------------------------------------------------


@pytest.mark.parametrize(
    ("happens", "published", "then"),
    [
        pytest.param(lambda rig: change(rig, queue=FULL), 0, 0, id="another queue"),
        pytest.param(lambda rig: change(rig, min_member=2), 0, 3, id="another minimum"),
        pytest.param(make_anew, 0, 3, id="another group"),
        pytest.param(lambda rig: change(rig, labels={"of": "somebody"}), 3, 3, id="nothing of it"),
    ],
)
async def test_a_plan_for_what_the_group_was_is_not_published(
    happens: Callable[[Rig], object], published: int, then: int
) -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.queue(make_queue("full", capability=make_amounts(cpu=1000)))
    rig.node("n1")
    rig.gang("g", size=3)
    await during_a_cycle(rig, lambda: happens(rig))
    assert rig.has_reservations() == published
    await rig.cycle()
    assert rig.has_reservations() == then


async def test_a_group_made_anew_is_not_admitted_by_a_plan_for_the_one_before() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.queue(make_queue("full", capability=make_amounts(cpu=1000)))
    rig.node("n1")
    rig.group("g", minimum=3, phase=GroupPhase.PENDING, min_resources=make_amounts(cpu=3000))
    await during_a_cycle(rig, lambda: make_anew(rig, queue=FULL))
    assert rig.cache.groups[rig.key("g")].phase is GroupPhase.PENDING
