"""A front over real sockets, and what becomes of its clients when the extender ends."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from app.front import doors
from app.front.__main__ import Sockets, serve
from app.model.ids import NodeName, PodUid
from app.wire.front import Frame, MessageType, PlaceChanges, PodPlace, change_frame
from tests.front.test_connection import ANSWER, OK, OURS, answer
from tests.front.test_messages import call

pytestmark = pytest.mark.real_time


@dataclass(frozen=True, slots=True)
class Served:
    """What the extender has of a front."""

    listener: socket.socket
    accepting: socket.socket
    """The front's own of it, closed when it accepts nothing more."""
    control: asyncio.StreamWriter
    serving: asyncio.Task[None]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.listener.getsockname())


@asynccontextmanager
async def front() -> AsyncIterator[Served]:
    listener = socket.create_server(("127.0.0.1", 0))
    control, its_control = socket.socketpair()
    entrance, its_doors = doors.pair()
    for each in (listener, its_control):
        each.setblocking(False)
    _, writer = await asyncio.open_connection(sock=control)
    accepting = listener.dup()
    serving = asyncio.create_task(serve(Sockets(accepting, its_control, its_doors)))
    with listener, entrance, its_doors:
        try:
            yield Served(listener, accepting, writer, serving)
        finally:
            writer.close()
            await serving


async def test_who_comes_when_the_extender_has_ended_waits_for_the_next_front() -> None:
    async with front() as served:
        reader, writer = await served.connect()
        served.control.write(change_frame(PlaceChanges({PodUid("u"): PodPlace(NodeName("n1"))})))
        await asyncio.sleep(0.01)
        writer.write(OURS)
        assert await answer(reader) == (OK, ANSWER)
        writer.write(call("/prioritize", b"{}"))
        await asyncio.sleep(0.01)
        served.control.write(Frame(MessageType.ANSWER, bytes(2**23), 1, 200).encode())
        await served.control.drain()
        served.control.close()
        while served.accepting.fileno() != -1:  # noqa: ASYNC110 - a socket tells nobody
            await asyncio.sleep(0.001)
        assert not served.serving.done(), "a client has not taken its answer yet"
        _, late = await served.connect()
        late.write(OURS)
        await asyncio.sleep(0.05)
        taken, _ = served.listener.accept()
        with taken:
            taken.settimeout(20)
            assert taken.recv(len(OURS)) == OURS
        for each in (writer, late):
            each.close()
