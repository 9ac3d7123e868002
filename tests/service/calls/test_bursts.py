"""Callers that go on together, in virtual time."""

import asyncio
from itertools import pairwise

from app.service.calls.bursts import Bursts
from tests.service.virtual_time import advance, clock

GAP_S = 0.02


async def joined(bursts: Bursts, left: list[float]) -> None:
    await bursts.join()
    left.append(round(clock(), 6))


async def test_the_first_after_a_pause_leaves_at_once() -> None:
    bursts, left = Bursts(GAP_S), list[float]()
    start = clock()
    await joined(bursts, left)
    await advance(1)
    await joined(bursts, left)
    assert left == [round(start, 6), round(start + 1, 6)]


async def test_those_that_follow_leave_together() -> None:
    bursts, left = Bursts(GAP_S), list[float]()
    start = clock()
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(joined(bursts, left))
            await advance(0.004)
        await advance(1)
    assert left == [round(start, 6)] + [round(start + GAP_S, 6)] * 4


async def test_bursts_are_a_gap_apart() -> None:
    bursts, left = Bursts(GAP_S), list[float]()
    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(joined(bursts, left))
            await advance(0.005)
        await advance(1)
    times = sorted(set(left))
    assert len(left) == 100
    assert all(b - a >= GAP_S - 1e-6 for a, b in pairwise(times))


async def test_a_caller_that_gives_up_keeps_nobody_from_leaving() -> None:
    bursts, left = Bursts(GAP_S), list[float]()
    await bursts.join()
    impatient = asyncio.create_task(joined(bursts, left))
    patient = asyncio.create_task(joined(bursts, left))
    await asyncio.sleep(0)
    impatient.cancel()
    await advance(1)
    await patient
    assert len(left) == 1
