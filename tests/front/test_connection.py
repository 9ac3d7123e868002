"""Connections over real sockets: what the front answers, hands on as a call, or gives away."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from app.front import connection, doors
from app.front.connection import Client
from app.front.control import Asker
from app.front.messages import COLLECTED
from app.front.places import Places
from app.model.ids import NodeName, PodUid
from app.wire import filter_by_name
from app.wire.front import PlaceChanges, PodPlace
from app.wire.paths import VERBS
from tests.front.test_messages import call
from tests.front.test_places import body

pytestmark = pytest.mark.real_time

OURS = call("/v1/filter", body(names=["n1"]))
OTHERS = call("/v1/filter", body("another", ["n1"]))
ANSWER = filter_by_name.answer([NodeName("n1")])


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that was handed on."""

    number: int
    asker: Asker
    verb: str
    body: bytes


class Extender:
    """Is asked, and given connections."""

    def __init__(self) -> None:
        self.places = Places(lambda _told: None)
        self.places.learn(PlaceChanges({PodUid("u"): PodPlace(NodeName("n1"))}))
        self.asked: asyncio.Queue[Asked] = asyncio.Queue()
        self.given_up: asyncio.Queue[int] = asyncio.Queue()
        self.entrance, self.doors = doors.pair()
        self.refusals = 0
        """How often it takes no connection right now."""
        self.held: dict[Client, int] = {}
        """Bytes of their unfinished calls."""
        self.over: list[Client] = []
        self._number = 0

    def ask(self, asker: Asker, verb: int, body: bytes) -> int:
        self._number += 1
        self.asked.put_nowait(Asked(self._number, asker, VERBS[verb], body))
        return self._number

    def give_up(self, number: int) -> None:
        self.given_up.put_nowait(number)

    def give_away(self, number: int, begun: bytes) -> bool:
        if self.refusals:
            self.refusals -= 1
            return False
        return doors.give(self.doors, number, begun)

    async def given(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        """The next connection, and what had come of it."""
        while True:
            try:
                came = doors.take(self.entrance)
            except BlockingIOError:
                await asyncio.sleep(0.001)
                continue
            assert came is not None
            theirs, begun = came
            theirs.setblocking(False)
            return *(await asyncio.open_connection(sock=theirs)), begun

    def client(self) -> Client:
        """Whose connection is not there yet."""
        return Client(
            self, give_away=self.give_away, holds=self.held.__setitem__, over=self.over.append
        )

    @asynccontextmanager
    async def connected(
        self, client: Client | None = None
    ) -> AsyncIterator[tuple[Client, asyncio.StreamReader, asyncio.StreamWriter]]:
        """One end of a connection, and both of the other."""
        theirs, ours = socket.socketpair()
        theirs.setblocking(False)
        client = client or self.client()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: client, theirs)
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            yield client, reader, writer
        finally:
            writer.close()
            await asyncio.sleep(0.01)

    def close(self) -> None:
        for each in (self.entrance, self.doors):
            each.close()


@asynccontextmanager
async def extender() -> AsyncIterator[Extender]:
    made = Extender()
    try:
        yield made
    finally:
        made.close()


async def answer(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """The next one: its status line, and its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status, *headers = head.strip().split("\r\n")
    [length] = [line.partition(":")[2] for line in headers if line.startswith("content-length")]
    return status, await reader.readexactly(int(length))


OK = "HTTP/1.1 200 OK"


async def test_calls_are_answered_or_handed_on_one_after_the_other() -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        for verb in ("filter", *VERBS):
            writer.write(OURS)
            assert await answer(reader) == (OK, ANSWER)
            writer.write(call(f"/{verb}", b"for the extender"))
            asked = await ours.asked.get()
            assert (asked.verb, asked.body) == (verb, b"for the extender")
            asked.asker.answered(200, b"said it")
            assert await answer(reader) == (OK, b"said it")
        assert ours.asked.empty()
        assert ours.given_up.empty()


async def test_refusals_are_one_line_of_text() -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        writer.write(OTHERS)
        (await ours.asked.get()).asker.answered(503, b"not ready\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head == (
            b"HTTP/1.1 503 Service Unavailable\r\n"
            b"content-length: 10\r\ncontent-type: text/plain; charset=utf-8\r\n\r\n"
        )
        assert await reader.readexactly(10) == b"not ready\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /livez HTTP/1.1\r\n\r\n",
        call("/nowhere", b"{}"),
        call("/filter?x=1", b"{}"),
        b"POST /bind HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"nonsense\r\n\r\n",
    ],
)
async def test_a_connection_is_given_away_with_the_first_thing_that_is_no_call(sent: bytes) -> None:
    async with extender() as ours, ours.connected() as (client, reader, writer):
        writer.write(OURS)
        assert await answer(reader) == (OK, ANSWER)
        writer.write(sent)
        read, write, begun = await ours.given()
        assert begun == sent
        await asyncio.sleep(0.01)
        assert ours.over == [client], "the front has nothing to do with it any more"
        writer.write(OURS)
        assert await read.readexactly(len(OURS)) == OURS
        write.write(b"all that the extender says")
        assert await reader.read(100) == b"all that the extender says"
        writer.close()
        assert await read.read() == b""
        write.close()


@pytest.mark.parametrize("closes", ["client", "extender"])
async def test_either_side_ends_a_connection_that_was_given_away(closes: str) -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        read, write, _ = await ours.given()
        (writer if closes == "client" else write).close()
        assert await (read if closes == "client" else reader).read() == b""
        write.close()


async def test_what_is_much_goes_whole_to_the_extender() -> None:
    async with extender() as ours, ours.connected() as (_, _, writer):
        sent = call("/bind", bytes(range(256)) * (COLLECTED // 256)) + OURS
        writer.write(sent[:-5])
        read, write, begun = await ours.given()
        writer.write(sent[-5:])
        rest = await read.readexactly(len(sent) - len(begun))
        assert begun + rest == sent
        assert ours.asked.empty()
        write.close()


async def test_a_body_of_any_size_that_is_waited_for_is_handed_on_whole() -> None:
    async with extender() as ours, ours.connected() as (_, _, writer):
        text = bytes(range(256)) * (COLLECTED // 256)
        writer.write(call("/prioritize", text))
        assert (await ours.asked.get()).body == text


async def test_an_extender_that_takes_no_connection_for_a_moment_is_asked_again() -> None:
    async with extender() as ours, ours.connected() as (_, _, writer):
        ours.refusals = 3
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        _, write, begun = await ours.given()
        assert begun == b"GET / HTTP/1.1\r\n\r\n"
        write.close()


async def test_an_extender_that_takes_no_more_connections_ends_them() -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        ours.entrance.close()
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == b""


async def test_a_connection_is_given_away_after_the_answers_that_came_before() -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        writer.write(call("/prioritize", b"{}"))
        much = bytes(2**23)  # more than the socket takes while nobody reads
        (await ours.asked.get()).asker.answered(200, much)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        given = asyncio.create_task(ours.given())
        await asyncio.sleep(0.05)
        assert not given.done()
        assert await answer(reader) == (OK, much)
        _, write, _ = await given
        write.close()


async def test_a_call_that_comes_before_the_answer_to_the_last_one_waits_for_that() -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        writer.write(OTHERS)
        asked = await ours.asked.get()
        writer.write(OURS[:10])
        await asyncio.sleep(0.01)
        writer.write(OURS[10:])
        await asyncio.sleep(0.01)
        asked.asker.answered(200, b"first")
        assert await answer(reader) == (OK, b"first")
        assert await answer(reader) == (OK, ANSWER)


async def test_calls_that_come_all_at_once_go_to_the_extender_in_their_order() -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        writer.write(OTHERS)
        asked = await ours.asked.get()
        writer.write(OURS + OTHERS + OURS)
        asked.asker.answered(200, b"first")
        assert await answer(reader) == (OK, b"first")
        _, write, begun = await ours.given()
        assert begun == OURS + OTHERS + OURS
        write.close()


async def test_a_client_that_hangs_up_does_not_wait_any_more() -> None:
    async with extender() as ours, ours.connected() as (_, _, writer):
        writer.write(call("/bind", b"{}"))
        asked = await ours.asked.get()
        assert ours.given_up.empty()
        writer.close()
        assert await ours.given_up.get() == asked.number
        asked.asker.answered(200, b"too late")  # and that is all right


async def test_a_client_that_hangs_up_after_a_further_call_does_not_wait_any_more() -> None:
    async with extender() as ours, ours.connected() as (_, _, writer):
        writer.write(call("/bind", b"{}"))
        asked = await ours.asked.get()
        writer.write(OURS)
        await asyncio.sleep(0.01)
        writer.close()
        assert await ours.given_up.get() == asked.number


async def test_of_what_comes_early_not_all_is_read_and_nothing_is_lost() -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        writer.write(OTHERS)
        asked = await ours.asked.get()
        much = call("/bind", bytes(2**24))
        writer.write(much)
        await asyncio.sleep(0.05)
        assert writer.transport.get_write_buffer_size() > 2**23, "it is not taken"
        asked.asker.answered(200, b"first")
        assert await answer(reader) == (OK, b"first")
        read, write, begun = await ours.given()
        assert begun + await read.readexactly(len(much) - len(begun)) == much
        write.close()


async def test_a_client_that_takes_no_answers_is_not_asked_for_more_calls() -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        much = bytes(2**21)
        writer.write(call("/prioritize", b"0"))
        (await ours.asked.get()).asker.answered(200, much)
        writer.write(call("/prioritize", b"1"))
        await asyncio.sleep(0.01)
        assert ours.asked.empty()
        assert await answer(reader) == (OK, much)
        (await ours.asked.get()).asker.answered(200, b"little")
        assert await answer(reader) == (OK, b"little")
        writer.write(OURS)
        assert await answer(reader) == (OK, ANSWER)


async def test_what_came_before_an_answer_that_is_not_taken_waits_for_that() -> None:
    async with extender() as ours, ours.connected() as (_, reader, writer):
        writer.write(call("/prioritize", b"{}"))
        asked = await ours.asked.get()
        writer.write(OTHERS)
        await asyncio.sleep(0.01)
        asked.asker.answered(200, much := bytes(2**21))
        await asyncio.sleep(0.01)
        assert ours.asked.empty()
        assert await answer(reader) == (OK, much)
        (await ours.asked.get()).asker.answered(200, b"little")
        assert await answer(reader) == (OK, b"little")


async def test_connections_that_nobody_uses_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        extender() as ours,
        ours.connected() as (idle, reader, writer),
        ours.connected() as (busy, _, waiting),
    ):
        writer.write(OURS)
        await answer(reader)
        waiting.write(call("/bind", b"{}"))
        await ours.asked.get()
        for each in (idle, busy):
            each.end_if_idle()
        await asyncio.sleep(0.01)
        assert ours.over == []
        monkeypatch.setattr(connection, "KEEP_ALIVE_S", 0.001)
        for each in (idle, busy):
            each.end_if_idle()
        assert await reader.read() == b""
        await asyncio.sleep(0.01)
        assert ours.over == [idle], "a held call is no idle one"


@pytest.mark.parametrize("then", [b"", b"GET / HTTP/1.1\r\n\r\n"])
async def test_clients_that_never_take_their_answers_are_ended(
    monkeypatch: pytest.MonkeyPatch, then: bytes
) -> None:
    async with extender() as ours, ours.connected() as (client, _, writer):
        writer.write(call("/prioritize", b"{}"))
        asked = await ours.asked.get()
        writer.write(then)
        await asyncio.sleep(0.01)
        asked.asker.answered(200, bytes(2**23))
        await asyncio.sleep(0.01)
        monkeypatch.setattr(connection, "KEEP_ALIVE_S", 0.001)
        client.end_if_idle()
        await asyncio.sleep(0.01)
        assert ours.over == [client]


async def test_an_extender_that_drains_ends_connections_after_their_answers() -> None:
    async with (
        extender() as ours,
        ours.connected() as (idle, nothing, _),
        ours.connected() as (busy, reader, writer),
    ):
        writer.write(call("/bind", b"{}"))
        asked = await ours.asked.get()
        for each in (idle, busy):
            each.end_soon()
        assert await nothing.read() == b""
        await asyncio.sleep(0.01)
        assert ours.over == [idle]
        asked.asker.answered(200, b"the last")
        assert await reader.read() == (
            b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\ncontent-type: application/json\r\n"
            b"connection: close\r\n\r\nthe last"
        )


@pytest.mark.parametrize("end", [Client.end, Client.end_soon])
async def test_a_connection_that_is_not_there_yet_is_ended_when_it_is(
    end: Callable[[Client], None],
) -> None:
    async with extender() as ours:
        end(client := ours.client())
        async with ours.connected(client) as (_, reader, _):
            assert await reader.read() == b""
        assert ours.over == [client]


async def test_a_connection_that_is_ended_gives_its_client_what_there_is_for_it() -> None:
    async with extender() as ours, ours.connected() as (client, reader, writer):
        writer.write(call("/prioritize", b"{}"))
        much = bytes(2**23)
        (await ours.asked.get()).asker.answered(200, much)
        client.end()
        assert await answer(reader) == (OK, much)
        assert await reader.read() == b""
