"""Done once for all who ask at a time."""

import asyncio

import pytest

from app.kit.shared import Shared
from tests.service.virtual_time import advance


class Work:
    """Takes a second; it fails when it is told to."""

    def __init__(self) -> None:
        self.done = 0
        self.fails = False

    async def __call__(self) -> int:
        await asyncio.sleep(1)
        self.done += 1
        if self.fails:
            raise ValueError("broken")
        return self.done


async def test_all_who_ask_at_a_time_have_one_answer_and_the_next_one_another() -> None:
    work = Work()
    shared = Shared(work)
    asking = [asyncio.ensure_future(shared.get()) for _ in range(5)]
    await advance(2)
    assert [await each for each in asking] == [1] * 5
    later = asyncio.ensure_future(shared.get())
    await advance(2)
    assert await later == 2


async def test_an_error_goes_to_all_of_them_and_is_not_kept() -> None:
    work = Work()
    shared, work.fails = Shared(work), True
    asking = [asyncio.ensure_future(shared.get()) for _ in range(3)]
    await advance(2)
    for each in asking:
        with pytest.raises(ValueError, match="broken"):
            await each
    work.fails = False
    later = asyncio.ensure_future(shared.get())
    await advance(2)
    assert await later == 2


async def test_one_that_hangs_up_takes_the_answer_from_no_other() -> None:
    work = Work()
    shared = Shared(work)
    first, second = (asyncio.ensure_future(shared.get()) for _ in range(2))
    await advance(0.5)
    first.cancel()
    await advance(1)
    assert await second == 1
    assert first.cancelled()
