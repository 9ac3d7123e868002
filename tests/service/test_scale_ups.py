"""A gang that raises its minimum takes its queue's turn; a gang that lost members does not."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.model.gang import Gang
from app.model.ids import NodeName, QueueName
from app.model.workload import GroupPhase, PodGroup
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance

N1 = NodeName("n1")
Q1, Q2 = QueueName("q1"), QueueName("q2")


def group(minimum: int, **fields: Any) -> PodGroup:
    """The gang of queue ``q2``."""
    defaults: dict[str, Any] = {
        "uid": "uid-scaled",
        "resource_version": "1",
        "created": 50.0,
        "queue": Q2,
        "phase": GroupPhase.RUNNING,
        "min_resources": make_amounts(cpu=1000 * minimum),
    }
    return PodGroup("default", "scaled", min_member=minimum, **(defaults | fields))


def busy(rig: Rig, *, runs: int = 3, seen: PodGroup | None = None) -> None:
    """Of 16 cpu the gang of ``q2`` has some, a filler of ``q1`` the rest; one of ``q1`` waits.

    ``seen``: its PodGroup as a process that has just started finds it.
    """
    rig.node("n1", cpu=16_000)
    rig.queue(make_queue("q1"))
    rig.queue(make_queue("q2"))
    rig.see("podgroups", seen or group(runs))
    for number in range(runs):
        rig.pod(f"scaled-{number}", group="scaled", node=N1, phase="Running")
    rig.group("filler", minimum=1, queue=Q1, phase=GroupPhase.RUNNING)
    rest = make_shape(cpu=16_000 - 1000 * runs)
    rig.pod("filler", group="filler", node=N1, phase="Running", shape=rest)
    rig.group("older", minimum=6, queue=Q1, created=10.0, min_resources=make_amounts(cpu=6000))
    for number in range(6):
        rig.pod(f"older-{number}", group="older")


def scale(rig: Rig, *, to: int, runs: int = 3) -> None:
    """Its minimum is raised, and the pods for that are made."""
    rig.see("podgroups", group(to))
    for number in range(runs, to):
        rig.pod(f"scaled-{number}", group="scaled")


def view(rig: Rig) -> Gang:
    gang = rig.cache.registry.view(rig.key("scaled"))
    assert gang is not None
    return gang


def placed(rig: Rig, name: str) -> int:
    members = rig.cache.groups[rig.key(name)].members.values()
    return sum(member.reserved for member in members)


def stored(rig: Rig) -> Mapping[str, int]:
    return rig.cache.groups[rig.key("scaled")].reached


@pytest.mark.parametrize("again", [False, True], ids=["before", "after a restart"])
async def test_what_a_gang_asks_beyond_what_it_had_takes_its_queue_s_turn(*, again: bool) -> None:
    rig = Rig()
    busy(rig)
    await rig.cycle()
    scale(rig, to=14)
    await rig.cycle()
    if again:
        kept, before = stored(rig), rig
        rig = Rig()
        busy(rig, seen=group(14, reached=kept))
        for pod in before.api.pods.values():
            rig.store(pod)
        await rig.cycle()
    rig.delete("filler")
    await rig.cycle()
    assert placed(rig, "older") == 6
    assert placed(rig, "scaled") == 0


@pytest.mark.parametrize("again", [False, True], ids=["before", "after a restart"])
async def test_a_member_that_was_lost_comes_first_and_what_is_asked_beyond_it_does_not(
    *, again: bool
) -> None:
    rig = Rig()
    busy(rig)
    await rig.cycle()
    scale(rig, to=14)
    await rig.cycle()
    if again:
        kept, before = stored(rig), rig
        rig = Rig()
        busy(rig, seen=group(14, reached=kept))
        for pod in before.api.pods.values():
            rig.store(pod)
    gone = rig.api.pods["default/scaled-0"]
    rig.delete("scaled-0")
    rig.delete("filler")
    await rig.cycle()
    assert (placed(rig, "scaled"), placed(rig, "older")) == (1, 6)
    [heir] = [m for m in rig.cache.members.values() if m.group == "default/scaled" and m.node]
    call = rig.bind(heir.pod.name)
    await call.task
    assert call.answer == ""
    assert gone.uid not in rig.cache.members


async def test_a_crash_in_the_middle_of_binding_puts_the_rest_first() -> None:
    """Nothing was reached, or less than is bound: of a gang that was being scaled up too."""

    for kept in ({}, {"members": 2}):
        rig = Rig()
        busy(rig, seen=group(14, reached=kept))
        scale(rig, to=14)
        rig.delete("filler")
        await rig.cycle()
        assert (placed(rig, "scaled"), placed(rig, "older")) == (11, 0)


async def test_members_beyond_the_minimum_are_not_lost_when_it_is_raised() -> None:
    rig = Rig()
    busy(rig, runs=5, seen=group(3))
    await rig.cycle()
    assert stored(rig) == {"members": 3}
    scale(rig, to=14, runs=5)
    assert stored(rig) == {"members": 5}
    assert not view(rig).partial


async def test_a_minimum_that_is_lowered_is_all_that_was_reached() -> None:
    rig = Rig()
    busy(rig, runs=5)
    await rig.cycle()
    rig.see("podgroups", group(2))
    rig.delete("scaled-4", "scaled-3", "scaled-2")
    await rig.cycle()
    rig.see("podgroups", group(5))
    await rig.cycle()
    assert stored(rig) == {"members": 2}
    assert not view(rig).partial


async def test_of_a_role_whose_minimum_is_raised_only_what_it_had_comes_first() -> None:
    rig = Rig()
    labels = {"volcano.sh/task-spec": "worker"}
    rig.node("n1", cpu=8000)
    rig.queue(make_queue("q2"))
    rig.see("podgroups", group(2, role_minimum={"worker": 2}))
    for number in range(2):
        rig.pod(f"w-{number}", group="scaled", labels=labels, node=N1, phase="Running")
    await rig.cycle()
    rig.see("podgroups", group(5, role_minimum={"worker": 5}))
    assert not view(rig).partial
    rig.delete("w-0")
    gang = view(rig)
    assert gang.partial
    assert (gang.as_it_was.min_member, gang.as_it_was.role_minimum) == (2, {"worker": 2})


async def test_a_gang_that_is_gone_and_comes_again_comes_as_one_that_had_nothing() -> None:
    rig = Rig()
    busy(rig)
    await rig.cycle()
    rig.delete("scaled-0", "scaled-1", "scaled-2")
    assert stored(rig) == {}


async def test_what_was_reached_is_written_with_the_phase() -> None:
    rig = Rig()
    rig.node("n1", cpu=16_000)
    rig.queue(make_queue("q2"))
    rig.see("podgroups", group(3, phase=GroupPhase.INQUEUE))
    for number in range(4):
        rig.pod(f"scaled-{number}", group="scaled", node=N1, phase="Running")
    with working(rig):
        await advance(1)
    [write] = rig.api.of("group-status")
    assert write.body["metadata"]["annotations"] == {
        "pumice.sh/reached": '{"members":3,"uid":"uid-scaled"}'
    }
    assert write.body["status"]["phase"] == "Running"


async def test_what_was_taken_away_is_written_again() -> None:
    rig = Rig()
    busy(rig, seen=group(3, reached={"members": 3}))
    with working(rig):
        await advance(10)
        rig.api.writes.clear()
        rig.see("podgroups", group(3, resource_version="3"))
        await advance(10)
    [write] = [w for w in rig.api.of("group-status") if w.target == "default/scaled"]
    assert "pumice.sh/reached" in write.body["metadata"]["annotations"]
