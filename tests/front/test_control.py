"""What the front and the extender tell each other, over a real socket."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.front.control import TOLD_S, Control
from app.model.ids import NodeName, PodUid
from app.wire.front import (
    Frame,
    Frames,
    MessageType,
    PlaceChanges,
    PodPlace,
    Told,
    change_frame,
    decode_told,
)
from tests.front.test_places import body

pytestmark = pytest.mark.real_time


class Asker:
    def __init__(self) -> None:
        self.said: list[tuple[int, bytes]] = []

    def answered(self, status: int, body: bytes) -> None:
        self.said.append((status, body))


class Extender:
    """The other end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Frames()

    async def hears(self) -> list[Frame]:
        await asyncio.sleep(2 * TOLD_S)
        return self._frames.feed(await self._reader.read(2**20))

    async def says(self, *frames: bytes) -> None:
        self._writer.writelines(frames)
        await asyncio.sleep(0.01)

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Control, Extender]]:
    mine, theirs = socket.socketpair()
    mine.setblocking(False)
    control = Control()
    await asyncio.get_running_loop().create_connection(lambda: control, sock=mine)
    extender = Extender(*(await asyncio.open_connection(sock=theirs)))
    try:
        yield control, extender
    finally:
        extender.close()
        await control.ended.wait()


async def test_answers_reach_who_asked_in_whatever_order_they_come() -> None:
    async with connected() as (control, extender):
        first, second = Asker(), Asker()
        one, other = control.ask(first, 0, b"a"), control.ask(second, 2, b"b")
        assert await extender.hears() == [
            Frame(MessageType.CALL, b"a", one, 0),
            Frame(MessageType.CALL, b"b", other, 2),
        ]
        await extender.says(
            Frame(MessageType.ANSWER, b"B", other, 200).encode(),
            Frame(MessageType.ANSWER, b"A", one, 404).encode(),
        )
        assert (first.said, second.said) == ([(404, b"A")], [(200, b"B")])


async def test_who_gave_up_gets_no_answer_and_the_extender_knows() -> None:
    async with connected() as (control, extender):
        asker = Asker()
        number = control.ask(asker, 2, b"")
        control.give_up(number)
        control.give_up(number)
        assert await extender.hears() == [
            Frame(MessageType.CALL, b"", number, 2),
            Frame(MessageType.GONE, number=number),
        ]
        await extender.says(Frame(MessageType.ANSWER, b"late", number, 200).encode())
        assert asker.said == []


async def test_the_extender_is_told_who_was_told_its_place() -> None:
    async with connected() as (control, extender):
        place = PlaceChanges({PodUid("u"): PodPlace(NodeName("n1"))})
        await extender.says(change_frame(place))
        assert control.places.answer(body(names=["n1"])) is not None
        [heard] = await extender.hears()
        assert heard.kind == MessageType.TOLD, "soon, though nothing else is said"
        told = decode_told(heard.body)
        assert (told.uid, told.node) == ("u", "n1")
        assert isinstance(told, Told)


async def test_what_was_told_comes_before_what_is_asked_after_it() -> None:
    async with connected() as (control, extender):
        pods = [PodUid(f"u{number}") for number in range(3)]
        given = {uid: PodPlace(NodeName("n1")) for uid in pods}
        await extender.says(change_frame(PlaceChanges(given)))
        for uid in pods:
            assert control.places.answer(body(uid, ["n1"])) is not None
        control.ask(Asker(), 2, b"")
        heard = await extender.hears()
        assert [frame.kind for frame in heard] == [*[MessageType.TOLD] * 3, MessageType.CALL]
        assert [decode_told(frame.body).uid for frame in heard[:3]] == pods
        assert control.places.answer(body(pods[0], ["n1"])) is not None
        assert [frame.kind for frame in await extender.hears()] == [MessageType.TOLD]


async def test_when_the_extender_is_gone_nobody_is_told_anything() -> None:
    async with connected() as (control, extender):
        number = control.ask(Asker(), 2, b"")
        await extender.hears()
        await extender.says(change_frame(PlaceChanges({PodUid("u"): PodPlace(NodeName("n1"))})))
        extender.close()
        await control.ended.wait()
        await asyncio.sleep(0.01)
        control.give_up(number)
        control.give_up(control.ask(Asker(), 2, b""))
        assert control.places.answer(body(names=["n1"])) is None
