"""How long one part of ``pumice all`` lets another go first."""

import asyncio

from app.main.together import HEAD_START_S, head_start
from tests.service import virtual_time


async def waited_for(event: asyncio.Event) -> float:
    """Seconds that a head start lasted."""
    began = virtual_time.clock()
    await head_start(event.wait)
    return virtual_time.clock() - began


def test_it_ends_when_the_other_is_ready() -> None:
    async def story() -> float:
        ready = asyncio.Event()
        asyncio.get_running_loop().call_later(3.0, ready.set)
        return await waited_for(ready)

    assert virtual_time.run(story()) == 3.0


def test_it_ends_when_the_other_is_never_ready() -> None:
    async def story() -> float:
        return await waited_for(asyncio.Event())

    assert virtual_time.run(story()) == HEAD_START_S
