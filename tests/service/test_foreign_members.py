"""Pods of a group under another scheduler: no room is kept for members that they stand for."""

import pytest

from app.model.ids import NodeName
from app.model.reason import Cause
from app.model.workload import GroupPhase
from tests.builders import make_amounts, make_queue
from tests.service.rig import Rig

N1 = NodeName("n1")


def foreign(rig: Rig, *names: str) -> None:
    """Pods whose template names the group, and not our scheduler; that one has bound them."""
    for name in names:
        rig.pod(name, group="g", scheduler="default-scheduler", node=N1, phase="Running")


def awaited(rig: Rig) -> None:
    rig.queue(make_queue("default", capability=make_amounts(cpu=3000)))
    rig.node("n1", cpu=8000)
    rig.group("g", minimum=3, min_resources=make_amounts(cpu=3000))


@pytest.mark.parametrize("late", [False, True], ids=["the group first", "the pods first"])
@pytest.mark.parametrize("count", [2, 3])
async def test_its_slots_are_given_back_and_the_reason_names_the_scheduler(
    count: int, *, late: bool
) -> None:
    rig = Rig()
    if late:
        rig.node("n1", cpu=8000)
        foreign(rig, *(f"g-{i}" for i in range(count)))
    awaited(rig)
    if not late:
        await rig.cycle()
        assert len(rig.cache.groups[rig.key("g")].slots) == 3
        foreign(rig, *(f"g-{i}" for i in range(count)))
    assert rig.has_reservations() == 0
    await rig.cycle()
    assert rig.has_reservations() == 0
    reason = rig.parts.reasons.of(rig.cache.groups[rig.key("g")])
    assert reason is not None
    assert reason.cause is Cause.NOT_ENOUGH_TASKS
    assert [(h.who, h.amount) for h in reason.holders] == [("scheduler default-scheduler", count)]


async def test_its_queue_and_its_nodes_are_for_others_at_once() -> None:
    rig = Rig()
    awaited(rig)
    await rig.cycle()
    wish = {"phase": GroupPhase.PENDING, "min_resources": make_amounts(cpu=3000)}
    rig.group("other", minimum=3, created=9.0, **wish)
    for number in range(3):
        rig.pod(f"other-{number}", group="other")
    await rig.cycle()
    assert rig.place("other-0") == ""
    foreign(rig, "g-0", "g-1", "g-2")
    await rig.cycle()
    assert rig.place("other-0") == "n1"


async def test_nothing_is_kept_again_when_they_have_ended() -> None:
    rig = Rig()
    awaited(rig)
    foreign(rig, "g-0", "g-1", "g-2")
    await rig.cycle()
    rig.delete("g-0", "g-1", "g-2")
    await rig.cycle()
    assert rig.has_reservations() == 0


async def test_members_of_ours_that_come_all_the_same_are_placed() -> None:
    rig = Rig()
    awaited(rig)
    foreign(rig, "launcher")
    for number in range(3):
        rig.pod(f"g-{number}", group="g")
    await rig.cycle()
    assert [rig.place(f"g-{number}") for number in range(3)] == ["n1"] * 3
