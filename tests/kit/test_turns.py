"""A few callers have a turn at a time, some wait, and more are turned away."""

import asyncio

import pytest

from app.kit.turns import TooMany, Turns


class Crowd:
    """Callers that all want a turn, and stay in it until ``end``."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.inside = 0
        self.most = 0
        self.end = asyncio.Event()

    async def come(self) -> str:
        """Have a turn, or not."""
        try:
            async with self.turns.turn():
                self.inside += 1
                self.most = max(self.most, self.inside)
                await self.end.wait()
                self.inside -= 1
        except TooMany as error:
            return str(error)
        return "served"


async def test_no_more_have_a_turn_or_wait_than_are_taken() -> None:
    crowd = Crowd(Turns("readers", at_once=2, most=5))
    coming = [asyncio.ensure_future(crowd.come()) for _ in range(8)]
    await asyncio.sleep(0)
    crowd.end.set()
    told = await asyncio.gather(*coming)
    assert told == ["served"] * 5 + ["5 readers wait already; ask again later"] * 3
    assert crowd.most == 2


async def test_a_caller_that_fails_or_goes_leaves_its_turn_to_others() -> None:
    turns = Turns("readers", most=2)
    with pytest.raises(ValueError, match="failed"):
        async with turns.turn():
            raise ValueError("failed")
    crowd = Crowd(turns)
    first, second = (asyncio.ensure_future(crowd.come()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    crowd.end.set()
    assert await crowd.come() == "served"
