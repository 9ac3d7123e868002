"""Advice takes its turn among the questions, and no longer than it may."""

import asyncio

import pytest

from app.kit.turns import TooMany
from app.service.cycle import advising, simulations
from app.service.cycle.advising import Advice, advise
from app.service.cycle.simulations import Simulations
from tests.builders import make_shape
from tests.service.rig import Rig


def waiting() -> Rig:
    """A gang of eight of which two have room."""
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.gang("g", size=8, shape=make_shape(cpu=1000))
    return rig


async def advice(rig: Rig) -> Advice | None:
    group = rig.cache.groups[rig.key("g")]
    refusal = rig.parts.reasons.of(group)
    assert refusal is not None
    asked: Simulations = rig.planning.simulations
    return await advise(asked, rig.key("g"), refusal)


async def test_a_smaller_minimum_is_found() -> None:
    rig = waiting()
    await rig.cycle()
    found = await advice(rig)
    assert found is not None
    assert found.complete
    assert found.changes


async def test_advice_counts_among_the_questions_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulations, "MOST_WAITING", 3)
    rig = waiting()
    await rig.cycle()
    async with rig.planning.simulations.turn():
        asked = [asyncio.ensure_future(advice(rig)) for _ in range(5)]
        for _ in range(50):
            await asyncio.sleep(0)
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in found] == [Advice] * 2 + [TooMany] * 3
    assert isinstance(await advice(rig), Advice), "there is room again"


async def test_the_search_for_a_minimum_ends_when_the_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advising, "MOST_S", -1.0)
    rig = waiting()
    await rig.cycle()
    assert await advice(rig) == Advice((), tried=0, complete=False)
