"""Slots: room kept for members that do not exist yet, and who takes it when they come."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.cache.gangs.members import Stage
from app.cache.reserved.unused import stale_slots
from app.model.ids import NodeName
from app.model.pod import TASK_SPEC
from tests.builders import make_shape
from tests.cache.reserved.test_reservations import EVENTS
from tests.cache.rig import KEY, Rig, group


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_slot_keeps_room_and_the_member_that_comes_takes_it(rig: Rig) -> None:
    assert rig.slot("n", role="worker")
    assert rig.used("n") == 1000
    rig.pod("a", annotations={TASK_SPEC: "worker"})
    assert rig.where("a") == [(Stage.PLANNED, "n")]
    assert rig.slots() == []
    assert rig.used("n") == 1000


ADOPTIONS: dict[str, tuple[dict[str, Any], str, list[tuple[str, str]]]] = {
    "its own role first": (
        {"annotations": {TASK_SPEC: "a"}},
        "n",
        [("", "n"), ("b", "m")],
    ),
    "any role if there is no own": (
        {"annotations": {TASK_SPEC: "c"}},
        "n",
        [("a", "n"), ("b", "m")],
    ),
    "where it is pinned": (
        {"annotations": {TASK_SPEC: "b"}, "pinned": NodeName("m")},
        "m",
        [("", "n"), ("a", "n")],
    ),
    "none when it is pinned elsewhere, and one is given back": (
        {"annotations": {TASK_SPEC: "a"}, "pinned": NodeName("m")},
        "",
        [("", "n"), ("b", "m")],
    ),
    "none when it is bigger, and one is given back": (
        {"annotations": {TASK_SPEC: "a"}, "shape": make_shape(cpu=1500)},
        "",
        [("", "n"), ("b", "m")],
    ),
    "none behind the gate of somebody else": (
        {"annotations": {TASK_SPEC: "a"}, "gates": ("other.io/gate",)},
        "",
        [("", "n"), ("a", "n"), ("b", "m")],
    ),
}


@pytest.mark.parametrize(("fields", "node", "left"), ADOPTIONS.values(), ids=ADOPTIONS.keys())
def test_which_slot_a_new_member_takes(
    rig: Rig, fields: dict[str, Any], node: str, left: list[tuple[str, str]]
) -> None:
    rig.see(min_member=3)
    for role, where in (("", "n"), ("a", "n"), ("b", "m")):
        assert rig.slot(where, role=role)
    rig.pod("p", **fields)
    assert rig.member("p").node == node
    assert rig.slots() == left


WORKER = {TASK_SPEC: "worker"}


def test_members_of_another_role_than_was_guessed_leave_no_room_kept_twice(rig: Rig) -> None:
    """Of a launcher alone nobody knows that the rest will be workers."""
    rig.cache.set_group(group(min_member=3))
    rig.pod("launcher", annotations={TASK_SPEC: "launcher"})
    rig.now += 1
    assert rig.slot("n", role="launcher")
    assert rig.slot("n", role="launcher")
    rig.pod("w0", annotations=WORKER, shape=make_shape(cpu=500))
    assert rig.slots() == [("launcher", "n")]
    rig.pod("w1", annotations=WORKER, shape=make_shape(cpu=500))
    assert rig.slots() == []
    assert rig.where("w0", "w1") == [(Stage.WAITING, "")] * 2


def test_a_member_of_another_role_takes_the_room_if_it_is_alike(rig: Rig) -> None:
    rig.cache.set_group(group(min_member=2))
    rig.pod("launcher", annotations={TASK_SPEC: "launcher"})
    rig.now += 1
    assert rig.slot("n", role="launcher")
    rig.pod("w0", annotations=WORKER)
    assert rig.where("w0") == [(Stage.PLANNED, "n")]
    assert rig.slots() == []


def test_a_slot_that_its_role_lacks_stays_whoever_else_comes(rig: Rig) -> None:
    rig.cache.set_group(group(min_member=2, role_minimum={"launcher": 1, "worker": 1}))
    rig.pod("other", annotations={TASK_SPEC: "other"})
    rig.now += 1
    assert rig.slot("n", role="launcher")
    assert rig.slot("m", role="worker")
    rig.pod("more", annotations={TASK_SPEC: "other"})
    assert rig.slots() == [("launcher", "n"), ("worker", "m")]


def test_a_member_takes_its_slot_when_the_gate_of_somebody_else_opens(rig: Rig) -> None:
    assert rig.slot("n")
    pod = rig.pod("a", gates=("other.io/gate",))
    rig.cache.set_pod(replace(pod, gates=()), now=rig.now)
    assert rig.where("a") == [(Stage.PLANNED, "n")]
    assert rig.slots() == []


def test_a_member_that_came_while_its_slot_was_planned_takes_it(rig: Rig) -> None:
    """The plan is of an earlier moment: it did not know the member."""
    rig.pod("a")
    rig.now -= 1
    assert rig.slot("n")
    assert rig.where("a") == [(Stage.PLANNED, "n")]
    assert rig.slots() == []


def test_a_member_that_was_known_leaves_the_slot_to_others(rig: Rig) -> None:
    rig.pod("a")
    rig.now += 1
    assert rig.slot("n")
    assert rig.where("a") == [(Stage.WAITING, "")]
    assert rig.slots() == [("", "n")]


@pytest.mark.parametrize(("event", "_why"), EVENTS.values(), ids=EVENTS.keys())
def test_slots_are_given_back_with_what_they_stand_on(
    rig: Rig, event: Callable[[Rig], object], _why: str
) -> None:
    assert rig.slot("n")
    event(rig)
    assert not any(charge.reserved for charge in rig.cache.node_usage.charges.values())
    assert rig.lost() == []


def test_old_slots_are_found(rig: Rig) -> None:
    assert rig.slot("n")
    assert stale_slots(rig.cache.registry.reserved.values(), before=rig.now) == []
    assert [
        g.key for g in stale_slots(rig.cache.registry.reserved.values(), before=rig.now + 1)
    ] == [KEY]


def test_slots_are_not_old_while_members_come_into_some(rig: Rig) -> None:
    assert rig.slot("n")
    assert rig.slot("n")
    rig.now += 5
    rig.pod("a")
    assert stale_slots(rig.cache.registry.reserved.values(), before=rig.now) == []
    assert [
        g.key for g in stale_slots(rig.cache.registry.reserved.values(), before=rig.now + 1)
    ] == [KEY]


@pytest.mark.parametrize(
    ("event", "kept"),
    [
        pytest.param(lambda rig: rig.pod("a"), False, id="a member comes"),
        pytest.param(lambda rig: rig.see(min_member=3), False, id="it asks for more"),
        pytest.param(lambda rig: rig.see(running=1, generation=2), True, id="its status changes"),
    ],
)
def test_a_group_is_given_up_until_it_changes(
    rig: Rig, event: Callable[[Rig], object], kept: bool
) -> None:
    rig.cache.decisions.give_up(KEY)
    event(rig)
    assert rig.cache.groups[KEY].given_up is kept


def test_a_member_that_has_its_node_already_leaves_no_slot_for_itself(rig: Rig) -> None:
    """It was bound alone, and given to the group afterwards."""
    assert rig.slot("n")
    assert rig.slot("m")
    rig.pod("p", node=NodeName("n"), phase="Running")
    assert len(rig.slots()) == 1


def test_a_member_that_has_its_node_already_needs_no_room_besides_its_slot(rig: Rig) -> None:
    rig.pod("a")
    rig.now += 1
    assert rig.slot("n")
    rig.now += 1
    rig.stage("a", Stage.PLANNED)
    rig.pod("p", node=NodeName("n"), phase="Running")
    assert rig.where("a") == [(Stage.PLANNED, "n")]
    assert rig.lost() == []
