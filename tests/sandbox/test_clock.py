from __future__ import annotations

import asyncio

import pytest

from app.sandbox.clock import SimClock, WallClock, micro_timestamp, parse_timestamp, timestamp


async def test_sleepers_wake_in_the_order_of_their_due_times() -> None:
    clock = SimClock(start=100.0)
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(f"{name}@{clock.now():g}")

    tasks = [
        asyncio.create_task(sleeper(name, seconds))
        for name, seconds in (("late", 5), ("early", 1), ("middle", 3))
    ]
    await clock.advance(4)
    assert clock.now() == 104.0
    await clock.advance(4)
    await asyncio.gather(*tasks)
    assert woken == ["early@101", "middle@103", "late@105"]


async def test_advance_until_stops_where_the_condition_holds() -> None:
    clock = SimClock(start=0.0)
    task = asyncio.create_task(clock.sleep(7))
    await clock.advance_until(task.done, limit=60)
    assert clock.now() == 7.0


async def test_advance_until_gives_up_after_the_limit() -> None:
    with pytest.raises(TimeoutError, match="not reached within 1 simulated seconds"):
        await SimClock().advance_until(lambda: False, limit=1)


async def test_a_cancelled_sleeper_does_not_move_time() -> None:
    clock = SimClock(start=0.0)
    first = asyncio.create_task(clock.sleep(2))
    second = asyncio.create_task(clock.sleep(5))
    await clock.settle()
    first.cancel()
    await clock.advance_until(second.done, limit=60)
    assert clock.now() == 5.0


def test_timestamps_are_those_of_the_api() -> None:
    assert timestamp(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    assert micro_timestamp(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"
    assert parse_timestamp("2023-11-14T22:13:20Z") == 1_700_000_000.0


async def test_the_wall_clock_runs() -> None:
    clock = WallClock()
    before = clock.now()
    await clock.sleep(0)
    assert clock.now() >= before > 1_600_000_000
