"""Callers that go on together leave turns of the loop to others."""

import asyncio

from app.service.calls.fair_turns import AT_A_TURN, end_in_turns

CALLERS = 10 * AT_A_TURN


async def test_all_go_on_and_others_have_turns_in_between() -> None:
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(CALLERS)]
    order: list[str] = []

    async def caller(future: asyncio.Future[str]) -> None:
        order.append(await future)

    async def other() -> None:
        while order.count("told") < CALLERS:
            order.append("other")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for future in futures:
            group.create_task(caller(future))
        await asyncio.sleep(0)
        end_in_turns(futures, "told")
        group.create_task(other())
    runs = [len(run_) for run_ in "".join(word[0] for word in order).split("o")]
    assert sum(runs) == CALLERS
    assert max(runs) <= AT_A_TURN


async def test_who_gave_up_keeps_nobody_from_going_on() -> None:
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(CALLERS)]
    for future in futures[::2]:
        future.cancel()
    end_in_turns(futures, "told")
    told = await asyncio.gather(*futures[1::2])
    assert told == ["told"] * (CALLERS // 2)


async def test_nobody_to_tell_is_no_failure() -> None:
    end_in_turns((), "told")
    await asyncio.sleep(0)
