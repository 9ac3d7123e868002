"""How long one part of ``pumice all`` lets another go first."""

import asyncio

from app.main.together import HEAD_START_S, head_start
from tests.service import virtual_time


async def waited_for(event: asyncio.Event) -> float:
    """Seconds that a head start lasted."""
    began = virtual_time.clock()
    await head_start(event.wait)
    return virtual_time.clock() - began


async def test_it_ends_when_the_other_is_ready() -> None:
    ready = asyncio.Event()
    asyncio.get_running_loop().call_later(3.0, ready.set)
    assert await waited_for(ready) == 3.0


async def test_it_ends_when_the_other_is_never_ready() -> None:
    assert await waited_for(asyncio.Event()) == HEAD_START_S
