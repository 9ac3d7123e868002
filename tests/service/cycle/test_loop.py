"""When cycles run."""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace

import pytest

from app.core.planner import plan_around_faults
from app.model.ids import GroupKey, NodeName
from app.service.calls.filtering import Chosen
from app.service.cycle import planning_cycle
from app.service.cycle.pace import LONGEST_REST_S
from tests.builders import make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import START, advance, clock


async def test_a_cycle_follows_a_change_at_once_and_silence_within_a_second() -> None:
    rig = Rig()
    times: list[float] = []

    def note(_changed: Collection[GroupKey]) -> None:
        times.append(round(clock() - START, 3))

    rig.planning.cycle.after.append(note)
    running = asyncio.create_task(rig.planning.loop.run())
    await advance(0.5)
    rig.node("n1")
    await advance(0.1)
    assert times == [0.02, 0.5]
    await advance(2.4)
    assert times == pytest.approx([0.02, 0.5, 1.5, 2.5])
    running.cancel()


async def test_the_next_cycle_comes_within_seconds_though_the_machine_stood_still_in_one() -> None:
    rig = Rig()
    times: list[float] = []

    def note(_changed: Collection[GroupKey]) -> None:
        times.append(clock() - START)
        rig.planning.log.last_s = 60.0

    rig.planning.cycle.after.append(note)
    running = asyncio.create_task(rig.planning.loop.run())
    await advance(LONGEST_REST_S + 1)
    assert times == pytest.approx([0.02, LONGEST_REST_S + 0.02])
    running.cancel()


async def test_cycles_end_when_they_are_told_to_though_something_changes_at_that_moment() -> None:
    rig = Rig()
    running = asyncio.create_task(rig.planning.loop.run())
    await advance(0.5)
    rig.node("n1")
    running.cancel()
    await advance(1)
    assert running.cancelled()


async def test_a_stream_of_changes_sets_off_a_cycle_every_20_ms() -> None:
    rig = Rig()
    running = asyncio.create_task(rig.planning.loop.run())
    await advance(0.1)
    before = rig.planning.log.cycles
    for number in range(1000):
        rig.node(f"n{number % 7}", cpu=1000 + number)
        await asyncio.sleep(0.001)
    assert 45 <= rig.planning.log.cycles - before <= 51
    running.cancel()


async def test_room_that_others_take_and_give_back_sets_off_cycles_only_while_somebody_waits() -> (
    None
):
    """Most pods of a cluster are others', and a cycle costs where there is nothing to do."""

    rig = Rig()
    rig.node("n1", cpu=8000)
    rig.pod("taken", scheduler="default", node=NodeName("n1"), shape=make_shape(cpu=4000))
    running = asyncio.create_task(rig.planning.loop.run())
    await advance(0.1)

    async def cycles_while_others_come_and_go() -> int:
        before = rig.planning.log.cycles
        for number in range(100):
            rig.pod(f"other-{number}", scheduler="default", node=NodeName("n1"))
            await asyncio.sleep(0.005)
            rig.delete(f"other-{number}")
            await asyncio.sleep(0.005)
        return rig.planning.log.cycles - before

    assert await cycles_while_others_come_and_go() <= 2
    rig.pod("large", shape=make_shape(cpu=5000))
    assert await cycles_while_others_come_and_go() >= 40
    running.cancel()


async def test_a_cycle_that_fails_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p")
    whole = plan_around_faults

    def broken(*_given: object, **_named: object) -> object:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(planning_cycle, "plan_around_faults", broken)
    running = asyncio.create_task(rig.planning.loop.run())
    with caplog.at_level(logging.ERROR):
        await advance(5)
    assert {record.message for record in caplog.records} == {"planning cycle failed"}
    assert 3 <= len(caplog.records) <= 6
    rig.pod("asked")
    assert rig.filter("asked") == Chosen(NodeName("n1")), "on demand"
    monkeypatch.setattr(planning_cycle, "plan_around_faults", whole)
    await advance(2)
    assert rig.place("p") == "n1"
    running.cancel()


@pytest.mark.parametrize(
    ("fails", "error"), [("planning", ZeroDivisionError), ("telling", ExceptionGroup)]
)
async def test_what_changed_is_told_after_a_cycle_that_failed(
    monkeypatch: pytest.MonkeyPatch, fails: str, error: type[Exception]
) -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("waits", size=1)
    rig.gang("g", size=1)
    await rig.cycle()
    told: list[GroupKey] = []

    def broken(*_given: object, **_named: object) -> object:
        raise ZeroDivisionError("oh")

    with monkeypatch.context() as patched:
        if fails == "planning":
            patched.setattr(planning_cycle, "plan_around_faults", broken)
        else:
            patched.setattr(rig.planning.cycle, "after", [broken])
        rig.pod("more", group="waits")
        rig.store(replace(rig.api.pods["default/g-0"], phase="Succeeded"))
        with pytest.raises(error):
            await rig.cycle()
    rig.planning.cycle.after.append(told.extend)
    await rig.cycle()
    assert rig.key("g") in told


async def test_the_first_cycle_makes_it_ready() -> None:
    rig = Rig()
    assert not rig.planning.leadership.first_cycle.is_set()
    await rig.cycle()
    assert rig.planning.leadership.first_cycle.is_set()
