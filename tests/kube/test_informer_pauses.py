"""How long an informer waits before it asks again."""

import logging
import threading
from collections.abc import Callable

import pytest
from aiohttp import web

from app.kube.config import Connection
from app.kube.decode import decoder
from app.kube.informer import Informer, Watched
from app.kube.stream import Added, Event, ListDone
from tests.kube.informing import (
    GONE_LINE,
    KIND,
    PODS,
    Collector,
    informing,
    is_listed_once,
    named,
    restarts,
    script,
    versions,
)
from tests.kube.server import (
    LOGIN_PAGE,
    ScriptedServer,
    answer,
    bookmark,
    failure,
    item,
    line,
    page,
    silent,
    watch,
)


class Instant(threading.Event):
    """Waits for nothing, and remembers how long it was asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        return self.is_set()


def waits_until(
    connection: Connection,
    enough: Callable[[list[Event[str]]], bool],
    *,
    silence_s: float = 60.0,
) -> list[float]:
    """How long an informer paused, time after time, until it had brought enough."""
    sink, stopping = Collector(), Instant()
    watched = Watched(kind=KIND, path=PODS, decoder=decoder(named), silence_s=silence_s)
    informer = Informer(
        watched, connection=connection, sink=sink, random=lambda: 1.0, stopping=stopping
    )
    informer.start()
    try:
        sink.wait(enough)
    finally:
        informer.stop()
    return stopping.waits


def test_throttling_waits_as_long_as_the_server_asks(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [failure(429, "TooManyRequests", "", {"Retry-After": "17"}), page([], version=5)],
        [watch()],
    )
    assert waits_until(connection, lambda events: ListDone("5") in events) == [17.0]


def test_a_wait_longer_than_a_thread_can_sleep_is_cut_short(
    server: ScriptedServer, connection: Connection
) -> None:
    for_ever = failure(429, "TooManyRequests", "", {"Retry-After": "99999999999"})
    script(server, [page([], version=1)], [for_ever, watch(line("ADDED", item("a", 2)))])
    waits = waits_until(connection, lambda events: Added("a") in events)
    assert waits == [30.0]


def test_a_server_that_forgets_at_once_is_listed_less_and_less_often(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [page([], version=1)],
        [watch(GONE_LINE), failure(410, "Expired"), watch(GONE_LINE), watch()],
    )
    waits = waits_until(connection, lambda events: events.count(ListDone("1")) == 4)
    assert waits[:3] == [pytest.approx(0.2), pytest.approx(0.4), pytest.approx(0.8)]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(LOGIN_PAGE, id="a login page"),
        pytest.param(line("ERROR", None), id="an error that says nothing"),
        pytest.param(line("ERROR", {"code": "410"}), id="a code as text"),
        pytest.param(bookmark(1), id="a bookmark of what is known"),
        pytest.param(line("ADDED", {"broken": 1}), id="an object that is none"),
    ],
)
def test_watches_that_say_nothing_are_opened_less_and_less_often(
    server: ScriptedServer, connection: Connection, said: bytes
) -> None:
    nothing = watch(said, then="end")
    script(
        server,
        [page([], version=1)],
        [nothing, nothing, nothing, watch(line("ADDED", item("a", 2)))],
    )
    waits = waits_until(connection, lambda events: Added("a") in events)
    assert waits == [pytest.approx(0.2), pytest.approx(0.4), pytest.approx(0.8)]


def test_a_watch_that_stood_in_silence_is_resumed_at_once_every_time(
    server: ScriptedServer, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """The silence itself is the pause. Nobody wants to read of each."""
    before = restarts("silence")

    async def thrice_silent(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        is_over = restarts("silence") >= before + 3
        chosen = watch(line("ADDED", item("a", 2))) if is_over else watch()
        return await chosen(server, request)

    script(server, [page([], version=1)], [thrice_silent])
    with caplog.at_level(logging.INFO):
        waits = waits_until(connection, lambda events: Added("a") in events, silence_s=0.1)
    assert len([waited for waited in waits if waited == pytest.approx(0.2)]) >= 3
    interrupted = [r for r in caplog.records if r.message == "informer interrupted"]
    told = [vars(record)["cause"] for record in interrupted]
    warned = {vars(r)["cause"] for r in interrupted if r.levelno >= logging.WARNING}
    assert "silence" not in warned, "it happens all the time, and means nothing"
    # Of the lull, perhaps of the next, and anew after an answer that was late.
    assert 1 <= told.count("silence") <= 2 + told.count("transport")
    assert versions(server)[:4] == ["1"] * 4
    assert is_listed_once(server)


def test_a_server_that_does_not_answer_is_asked_less_and_less_often(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [page([], version=1)],
        [silent(), silent(), watch(line("ADDED", item("a", 2)))],
    )
    waits = waits_until(connection, lambda events: Added("a") in events, silence_s=0.1)
    assert waits[:2] == [pytest.approx(0.2), pytest.approx(0.4)]


def test_a_line_makes_the_waits_short_again(server: ScriptedServer, connection: Connection) -> None:
    script(
        server,
        [page([], version=1)],
        [failure(500), failure(500), watch(bookmark(2) + GONE_LINE), watch()],
    )
    waits = waits_until(connection, lambda events: events.count(ListDone("1")) == 2)
    assert waits[:3] == [pytest.approx(0.2), pytest.approx(0.4), pytest.approx(0.2)]


def test_a_listing_without_a_version_is_no_listing(
    server: ScriptedServer, connection: Connection
) -> None:
    script(server, [answer({"metadata": {}, "items": []}), page([], version=5)], [watch()])
    waits = waits_until(connection, lambda events: ListDone("5") in events)
    assert waits == [pytest.approx(0.2)]


def test_a_watch_that_ends_at_once_without_a_word_is_not_hammered(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [page([], version=1)],
        [watch(then="end"), watch(line("ADDED", item("a", 4)))],
    )
    before = restarts("transport")
    sink = Collector()
    with informing(connection, sink):
        sink.wait_for(Added("a"))
    assert restarts("transport") == before + 1
