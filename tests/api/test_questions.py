"""Questions of tenants leave the event loop to others."""

import asyncio

import pytest

from app.api.body import BadRequest
from app.api.questions import MOST_IN_TURN, SHARE, Questions
from app.model.viewer import NEARBY, Viewer
from tests.service.virtual_time import advance, clock, settle

TOM = Viewer("tom", "team-a")


async def answered(questions: Questions, viewer: Viewer, *, takes_s: float) -> float:
    """When the answer to such a question begins."""
    async with questions.in_turn(viewer):
        began = clock()
        await asyncio.sleep(takes_s)
        return began


async def test_a_namespace_takes_a_small_share_of_the_loop() -> None:
    questions, began = Questions(), clock()
    asking = [
        asyncio.ensure_future(answered(questions, TOM, takes_s=0.1)) for _ in range(MOST_IN_TURN)
    ]
    await settle()
    other = asyncio.ensure_future(answered(questions, Viewer("ann", "team-b"), takes_s=0.1))
    operator = asyncio.ensure_future(answered(questions, NEARBY, takes_s=0.1))
    with pytest.raises(BadRequest, match="32 questions about namespace team-a"):
        await answered(questions, TOM, takes_s=0.1)
    await advance(60)
    times = [await each - began for each in asking]
    apart = 0.1 + SHARE * 0.1
    assert times == pytest.approx([apart * number for number in range(MOST_IN_TURN)])
    assert [await other - began, await operator - began] == pytest.approx([0.0, 0.0])


async def test_a_question_that_fails_takes_its_share_too() -> None:
    questions, began = Questions(), clock()

    async def fail() -> None:
        async with questions.in_turn(TOM):
            await asyncio.sleep(0.1)
            raise BadRequest("nothing of that name is known", status=404)

    failing = asyncio.ensure_future(fail())
    later = asyncio.ensure_future(answered(questions, TOM, takes_s=0.1))
    await advance(5)
    with pytest.raises(BadRequest, match="nothing of that name"):
        await failing
    assert await later - began == pytest.approx(0.1 + SHARE * 0.1)
