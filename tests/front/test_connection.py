"""Connections over real sockets: what the front answers, and what it only passes on."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from app.front import connection
from app.front.connection import Client
from app.front.inner import Inners
from app.front.messages import COLLECTED
from app.front.places import Places
from app.model.ids import NodeName, PodUid
from app.wire.front import Change, the_one
from tests.front.test_messages import call
from tests.front.test_places import body

OURS = call("/v1/filter", body(names=["n1"]))
OTHERS = call("/v1/filter", body("another", ["n1"]))
ANSWER = the_one(NodeName("n1"))

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answer(text: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"content-length: %d" % len(text), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + text


class Stand:
    """A front whose extender does with its connections what ``handle`` does."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.taken = 0
        self.refuses: list[OSError | None] = []
        """For the next connections: why it takes none, or None for "not now"."""
        self.places = Places(lambda _told: None)
        self.places.learn(Change({PodUid("u"): NodeName("n1")}))
        self.inners = Inners(self._hand_over)
        self.clients: list[Client] = []
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def connected(
        self, *, ends: bool = True
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A client's end of a connection."""
        theirs, ours = socket.socketpair()
        loop = asyncio.get_running_loop()

        def client() -> Client:
            self.clients.append(Client(self.places, self.inners))
            return self.clients[-1]

        theirs.setblocking(False)
        await loop.connect_accepted_socket(client, theirs)
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            yield reader, writer
        finally:
            writer.close()
            await asyncio.sleep(0.02)
            if ends:
                await self.end()

    async def end(self) -> None:
        """The extender ends."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hand_over(self, end: socket.socket) -> bool:
        if self.refuses:
            why = self.refuses.pop(0)
            if why is not None:
                raise why
            return False
        self.taken += 1
        self._tasks.append(asyncio.create_task(self._serve(end.dup())))
        return True

    async def _serve(self, end: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=end)
        try:
            await self._handle(reader, writer)
        finally:
            writer.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers every piece with what it was."""
    while data := await reader.read(2**20):
        writer.write(answer(data))


def run(scenario: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await scenario

    uvloop.run(main())


def test_calls_are_answered_or_handed_on_one_after_the_other() -> None:
    async def scenario() -> None:
        stand = Stand(echo)
        async with stand.connected() as (reader, writer):
            for sent, told in [(OURS, ANSWER), (OTHERS, OTHERS), (OURS, ANSWER), (OTHERS, OTHERS)]:
                writer.write(sent)
                assert await head_and_body(reader) == told
            writer.write(call("/bind", body(names=["n1"])))
            assert await head_and_body(reader) == call("/bind", body(names=["n1"]))
        assert stand.taken == 1

    run(scenario())


def test_a_connection_that_needs_no_extender_has_none() -> None:
    async def scenario() -> None:
        stand = Stand(echo)
        async with stand.connected() as (reader, writer):
            for _ in range(3):
                writer.write(OURS)
                assert await head_and_body(reader) == ANSWER
        assert stand.taken == 0

    run(scenario())


def test_from_a_get_on_all_goes_to_the_extender() -> None:
    async def scenario() -> None:
        get = b"GET /livez HTTP/1.1\r\n\r\n"
        async with Stand(echo).connected() as (reader, writer):
            for sent in (get, OURS):
                writer.write(sent)
                assert await head_and_body(reader) == sent

    run(scenario())


def test_calls_that_do_not_wait_for_each_other_are_answered_in_their_order() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(OTHERS) + len(OURS))
        writer.write(answer(b"first") + answer(b"second"))
        await reader.read()

    async def scenario() -> None:
        async with Stand(slow).connected() as (reader, writer):
            writer.write(OTHERS)
            await asyncio.sleep(0.01)
            writer.write(OURS)
            assert await head_and_body(reader) == b"first"
            assert await head_and_body(reader) == b"second"

    run(scenario())


def test_a_client_that_hangs_up_is_hung_up_on_the_extender() -> None:
    async def scenario() -> None:
        gone = asyncio.Event()

        async def hold(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            while await reader.read(2**20):
                pass
            gone.set()

        async with Stand(hold).connected() as (_, writer):
            writer.write(call("/bind", b"{}"))
            await asyncio.sleep(0.01)
            assert not gone.is_set()
            writer.close()
            await gone.wait()

    run(scenario())


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\ncontent-le", b"nonsense\r\n"])
def test_an_extender_that_hangs_up_on_a_call_hangs_up_on_its_client(said: bytes) -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(2**20)
        writer.write(said)

    async def scenario() -> None:
        async with Stand(leave).connected() as (reader, writer):
            writer.write(OTHERS)
            assert await reader.read() == said

    run(scenario())


def test_a_connection_to_the_extender_serves_one_client_after_the_other() -> None:
    async def scenario() -> None:
        stand = Stand(echo)
        for _ in range(3):
            async with stand.connected(ends=False) as (reader, writer):
                writer.write(OTHERS)
                assert await head_and_body(reader) == OTHERS
        assert stand.taken == 1
        await stand.end()

    run(scenario())


def test_clients_that_wait_at_the_same_time_have_connections_of_their_own() -> None:
    async def scenario() -> None:
        held, both = [], asyncio.Event()

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(2**20):
                held.append(data)
                if len(held) == 2:
                    both.set()
                await both.wait()
                writer.write(answer(data))

        stand = Stand(hold)
        async with stand.connected() as (one, to_one), stand.connected() as (other, to_other):
            to_one.write(call("/bind", b"one"))
            to_other.write(call("/bind", b"other"))
            assert await head_and_body(one) == call("/bind", b"one")
            assert await head_and_body(other) == call("/bind", b"other")
        assert stand.taken == 2

    run(scenario())


def test_what_nobody_asked_for_reaches_nobody() -> None:
    async def chatty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(2**20):
            writer.write(answer(data))
            await asyncio.sleep(0.01)
            writer.write(answer(b"and another thing"))

    async def scenario() -> None:
        stand = Stand(chatty)
        async with stand.connected() as (reader, writer):
            for _ in range(2):
                writer.write(OTHERS)
                assert await head_and_body(reader) == OTHERS
                await asyncio.sleep(0.03)
        assert stand.taken == 2

    run(scenario())


def test_an_answer_before_the_end_of_a_large_call_leaves_the_connection_in_use() -> None:
    large = call("/bind", b"x" * COLLECTED)

    async def rash(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(answer(b"too large"))
        await asyncio.sleep(0.05)
        while data := await reader.read(2**22):
            if data.endswith(OTHERS):
                writer.write(answer(OTHERS))

    async def scenario() -> None:
        async with Stand(rash).connected() as (reader, writer):
            writer.write(large)
            assert await head_and_body(reader) == b"too large"
            writer.write(OTHERS)
            assert await head_and_body(reader) == OTHERS

    run(scenario())


def test_an_answer_that_is_the_last_ends_the_connection() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(2**20)
        writer.write(answer(b"bye", b"connection: close"))

    async def scenario() -> None:
        async with Stand(leave).connected() as (reader, writer):
            writer.write(OTHERS)
            assert (await reader.read()).endswith(b"bye")

    run(scenario())


def test_an_extender_that_tires_of_an_idle_connection_does_not_end_the_clients() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(await reader.read(2**20)))

    async def scenario() -> None:
        stand = Stand(once)
        async with stand.connected() as (reader, writer):
            for _ in range(3):
                writer.write(OTHERS)
                assert await head_and_body(reader) == OTHERS
                await asyncio.sleep(0.02)
                writer.write(OURS)
                assert await head_and_body(reader) == ANSWER
        assert stand.taken == 3

    run(scenario())


def test_an_extender_that_takes_none_for_a_moment_is_asked_again() -> None:
    async def scenario() -> None:
        stand = Stand(echo)
        stand.refuses = [None, None, None]
        async with stand.connected() as (reader, writer):
            writer.write(OTHERS)
            assert await head_and_body(reader) == OTHERS
        assert stand.taken == 1

    run(scenario())


def test_an_extender_that_takes_no_more_ends_the_connection() -> None:
    async def scenario() -> None:
        stand = Stand(echo)
        stand.refuses = [BrokenPipeError()]
        async with stand.connected() as (reader, writer):
            writer.write(OTHERS)
            assert await reader.read() == b""

    run(scenario())


def test_a_client_that_does_not_read_holds_the_extender_up() -> None:
    async def scenario() -> None:
        written = 0

        async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal written
            await reader.read(2**20)
            for _ in range(200):
                writer.write(bytes(2**18))
                await writer.drain()
                written += 1

        async with Stand(flood).connected() as (reader, writer):
            writer.write(b"GET /debug HTTP/1.1\r\n\r\n")
            await asyncio.sleep(0.3)
            assert written < 100, "50 MiB are not kept in memory"
            received = 0
            while received < 200 * 2**18:
                received += len(await reader.read(2**20))
        assert written == 200

    run(scenario())


def test_connections_that_nobody_uses_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hold(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def scenario() -> None:
        stand = Stand(hold)
        async with stand.connected() as (reader, writer), stand.connected() as (_, waiting):
            writer.write(OURS)
            await head_and_body(reader)
            waiting.write(call("/bind", b"{}"))
            await asyncio.sleep(0.02)
            for each in stand.clients:
                each.end_if_idle()
            assert not reader.at_eof()
            monkeypatch.setattr(connection, "KEEP_ALIVE_S", 0.01)
            await asyncio.sleep(0.02)
            idle, busy = stand.clients
            idle.end_if_idle()
            assert await reader.read() == b""
            busy.end_if_idle()
            await asyncio.sleep(0.02)
            assert not waiting.is_closing(), "a held call is no idle one"

    run(scenario())


async def head_and_body(reader: asyncio.StreamReader) -> bytes:
    """The body of the next answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    return await reader.readexactly(length)
