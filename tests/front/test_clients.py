"""How many clients there may be, which of them end for others, and how long a call may take."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from app.front import clients, connection
from app.front.clients import Clients
from tests.front.test_connection import ANSWER, OK, OURS, Extender, answer, extender
from tests.front.test_messages import call

pytestmark = pytest.mark.real_time

LIMIT = 8


@dataclass(frozen=True, slots=True)
class Served:
    """A front that clients come to."""

    extender: Extender
    clients: Clients
    where: tuple[str, int]

    async def connect(
        self, begun: bytes = b""
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.where)
        writer.write(begun)
        await asyncio.sleep(0.002)
        return reader, writer


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    async with extender() as ours:
        met = Clients(ours, give_away=ours.give_away, limit=LIMIT)
        listener = socket.create_server(("127.0.0.1", 0))
        web = await asyncio.get_running_loop().create_server(met.connect, sock=listener)
        yield Served(ours, met, listener.getsockname())
        web.close()
        await met.end(0.01)


async def is_served(front: Served) -> bool:
    reader, writer = await front.connect(OURS)
    told = await answer(reader)
    writer.close()
    return told == (OK, ANSWER)


async def test_unfinished_calls_keep_the_memory_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "BODIES", 200_000)
    begun = call("/v1/filter", b" " * 100_000)[:-1]
    async with served() as front:
        idle = [await front.connect(begun) for _ in range(4)]
        await asyncio.sleep(0.05)
        assert [reader.at_eof() for reader, _ in idle] == [True, True, True, False]
        assert await is_served(front)
        for _, writer in idle:
            writer.close()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("begun", [b"", OURS[:10], OURS], ids=["nothing", "part", "an answer"])
async def test_a_front_that_is_full_of_idle_clients_serves_others(begun: bytes) -> None:
    async with served() as front:
        idle = [await front.connect(begun) for _ in range(3 * LIMIT)]
        assert [await is_served(front) for _ in range(LIMIT)] == [True] * LIMIT
        assert idle[0][0].at_eof() or begun == OURS
        for _, writer in idle:
            writer.close()


async def test_a_client_that_has_asked_something_stays_before_those_that_have_not() -> None:
    async with served() as front:
        reader, writer = await front.connect()
        others = []
        for _ in range(3):
            writer.write(OURS)
            assert await answer(reader) == (OK, ANSWER)
            others += [await front.connect() for _ in range(2 * LIMIT)]
        for _, other in (*others, (reader, writer)):
            other.close()


async def test_calls_that_are_held_stay_and_new_clients_go() -> None:
    async with served() as front:
        held = [await front.connect(call("/bind", b"{}")) for _ in range(LIMIT)]
        asked = [await front.extender.asked.get() for _ in held]
        reader, writer = await front.connect(OURS)
        assert await reader.read() == b""
        writer.close()
        for each in asked:
            each.asker.answered(200, b"bound")
        for reader, writer in held:
            assert await answer(reader) == (OK, b"bound")
            writer.close()


async def test_a_call_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async with extender() as ours, ours.connected() as (client, reader, writer):
        writer.write(OURS[:10])
        await asyncio.sleep(0.01)
        client.end_if_idle()
        writer.write(OURS[10:])
        assert await answer(reader) == (OK, ANSWER)
        monkeypatch.setattr(connection, "REQUEST_S", 0.0)
        await asyncio.sleep(0.01)
        client.end_if_idle()
        writer.write(OURS[:10])
        await asyncio.sleep(0.01)
        assert ours.over == []
        client.end_if_idle()
        assert await reader.read() == b""


def test_the_limit_is_what_the_process_has_descriptors_for() -> None:
    assert 0 < clients.most() <= clients.MOST
