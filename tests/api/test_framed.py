"""Calls in frames have the answers that they have over HTTP."""

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from app.api.extender import Call, extender_calls
from app.api.framed import Framed
from app.model.ids import NodeName
from app.service.calls.binding import Gone
from app.wire.front import Frame, Frames, MessageType
from app.wire.paths import VERBS
from tests.api.stand import Stand, args, binding, services_of, stand
from tests.service.rig import Rig


class Front:
    """Asks, and keeps what it is told."""

    def __init__(self, calls: Mapping[str, Call]) -> None:
        self.said: asyncio.Queue[Frame] = asyncio.Queue()
        self.framed = Framed(calls, send=self._hear)
        self._frames = Frames()

    def _hear(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            self.said.put_nowait(frame)

    def begin(self, verb: str, body: bytes, *, number: int = 1) -> None:
        self.framed.begin(Frame(MessageType.CALL, body, number, VERBS.index(verb)))

    async def ask(self, verb: str, body: bytes) -> Frame:
        self.begin(verb, body)
        return await self.said.get()


def calls(**odd: Call) -> dict[str, Call]:
    """The four, those that are not given saying which they are."""

    def saying(verb: str) -> Call:
        async def call(body: bytes, _gone: Gone) -> bytes:
            return verb.encode() + b" " + body

        return call

    return {verb: odd.get(verb, saying(verb)) for verb in VERBS}


@pytest.mark.parametrize("verb", VERBS)
async def test_each_verb_is_the_call_of_that_name(verb: str) -> None:
    answer = await Front(calls()).ask(verb, b"{}")
    assert answer == Frame(MessageType.ANSWER, verb.encode() + b" {}", 1, 200)


BODIES = {
    "filter": [args(), args("unknown", nodes=["n1", "nowhere"]), args(nodes=["nowhere"])],
    "prioritize": [args(), args(nodes=["nowhere"])],
    "bind": [binding(node="nowhere"), {"PodName": ""}],
    "preempt": [{"Pod": args()["Pod"]}, args()],
}


@pytest.mark.parametrize(
    ("verb", "body"), [(verb, body) for verb, bodies in BODIES.items() for body in bodies]
)
async def test_answers_and_refusals_are_those_over_http(verb: str, body: dict[str, Any]) -> None:
    async def asked(at: Stand) -> tuple[int, bytes]:
        response = await at.post(f"/{verb}", body)
        return response.status_code, response.content

    async with stand(_rig()) as over_http, stand(_rig()) as framed:
        front = Front(extender_calls(services_of(framed.rig)))
        answer = await front.ask(verb, json.dumps(body).encode())
        assert (answer.detail, answer.body) == await asked(over_http)


def _rig() -> Rig:
    rig = Rig()
    rig.node("n1")
    return rig


async def test_a_call_that_fails_is_said_and_logged_and_the_next_one_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(_body: bytes, _gone: Gone) -> bytes:
        raise ValueError("by mistake")

    with caplog.at_level(logging.ERROR):
        front = Front(calls(filter=fail))
        answer = await front.ask("filter", b"")
        assert (answer.detail, answer.body) == (500, b"Internal Server Error\n")
        assert (await front.ask("bind", b"")).detail == 200
    assert "by mistake" in caplog.text


def held_until_gone(ended: list[int]) -> Call:
    async def hold(body: bytes, gone: Gone) -> bytes:
        await gone()
        ended.append(int(body))
        return b"nobody hears this"

    return hold


async def test_a_call_knows_that_nobody_waits_for_it_any_more() -> None:
    ended: list[int] = []
    front = Front(calls(bind=held_until_gone(ended)))
    for number in (1, 2):
        front.begin("bind", b"%d" % number, number=number)
    await asyncio.sleep(0)
    front.framed.give_up(2)
    front.framed.give_up(77)
    assert (await front.said.get()).number == 2
    assert ended == [2]
    front.framed.give_up_all()
    await front.framed.finish(within_s=10)
    assert ended == [2, 1]


async def test_what_is_under_way_is_waited_for_as_long_as_that_is_allowed() -> None:
    ended: list[int] = []
    front = Front(calls(bind=held_until_gone(ended)))
    await front.framed.finish(within_s=10)  # nothing is
    front.begin("bind", b"1")
    await front.framed.finish(within_s=0.01)
    assert ended == []
    waiting = asyncio.create_task(front.framed.finish(within_s=10))
    await asyncio.sleep(0)
    front.framed.give_up_all()
    await waiting
    assert (ended, front.said.qsize()) == ([1], 1)


async def test_a_place_is_the_answer_as_it_is_over_http() -> None:
    rig = _rig()
    rig.pod("p")
    await rig.cycle()
    async with stand(rig) as at:
        answer = await Front(extender_calls(services_of(at.rig))).ask(
            "filter", json.dumps(args()).encode()
        )
        assert json.loads(answer.body)["NodeNames"] == [NodeName("n1")]
