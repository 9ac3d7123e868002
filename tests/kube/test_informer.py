"""The informer against a server that does everything an API server may do."""

import json
import logging

import pytest

from app.kube import informer
from app.kube.config import Connection
from app.kube.decode import decoder
from app.kube.informer import Informer, Watched
from app.kube.stream import (
    Added,
    Batch,
    Decoder,
    Deleted,
    Line,
    LineType,
    ListDone,
    ListStarted,
    Malformed,
    Modified,
    Page,
    PageListed,
)
from app.telemetry import metrics
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
    PATIENCE_S,
    Handler,
    ScriptedServer,
    answer,
    bookmark,
    cut_off,
    failure,
    item,
    line,
    page,
    raw_item,
    resumed,
    silent,
    status_body,
    too_deep,
    watch,
)


def test_pages_are_handed_over_as_they_arrive_and_then_the_changes(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [
            page([item("a", 1), item("b", 2)], version=5, token="more"),
            page([item("c", 3)], version=5),
        ],
        [
            watch(
                line("ADDED", item("d", 6)),
                line("MODIFIED", item("a", 7)) + line("DELETED", item("b", 8)),
            )
        ],
    )
    sink = Collector()
    with informing(connection, sink, selectors={"fieldSelector": "status.phase!=Failed"}) as one:
        assert sink.wait_for(Deleted("b")) == [
            ListStarted(),
            PageListed(["a", "b"]),
            PageListed(["c"]),
            ListDone("5"),
            Added("d"),
            Modified("a"),
            Deleted("b"),
        ]
        assert one.synced
        assert 0.0 <= one.lag_s < PATIENCE_S
    first, second, watching = server.asked("GET", PODS)
    assert first.query == {"fieldSelector": "status.phase!=Failed", "limit": "2"}
    assert second.query == {**first.query, "continue": "more"}
    assert watching.query == {
        "fieldSelector": "status.phase!=Failed",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "240",
    }


def test_lines_of_one_piece_are_one_batch(server: ScriptedServer, connection: Connection) -> None:
    lines = [line("ADDED", item(str(n), n)) for n in range(10, 60)]
    script(server, [page([], version=1)], [watch(b"".join(lines))])
    sink = Collector()
    with informing(connection, sink):
        sink.wait_for(Added("59"))
    assert len(sink.batches) <= 3


def test_a_line_may_arrive_in_pieces(server: ScriptedServer, connection: Connection) -> None:
    whole = line("ADDED", item("a", 2, filler="x" * 100_000))
    script(server, [page([], version=1)], [watch(whole[:10], whole[10:70_000], whole[70_000:])])
    sink = Collector()
    with informing(connection, sink):
        sink.wait_for(Added("a"))


def test_a_watch_that_ended_by_its_time_goes_on_without_a_listing_or_a_pause(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [page([], version=1)],
        [watch(line("ADDED", item("a", 7)), then="end"), watch(line("ADDED", item("b", 8)))],
    )
    sink = Collector()
    with informing(connection, sink):
        sink.wait_for(Added("b"))
    assert versions(server) == ["1", "7"]


def test_a_bookmark_moves_the_version_to_resume_from(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [page([], version=1)],
        [watch(bookmark(50), then="end"), watch(line("ADDED", item("b", 51)))],
    )
    sink = Collector()
    with informing(connection, sink):
        events = sink.wait_for(Added("b"))
    assert events == [ListStarted(), PageListed([]), ListDone("1"), Added("b")]
    assert versions(server) == ["1", "50"]


def test_a_watch_that_breaks_off_is_resumed_from_the_last_whole_line(
    server: ScriptedServer, connection: Connection
) -> None:
    half = line("ADDED", item("b", 8))[:20]
    script(
        server,
        [page([], version=1)],
        [
            watch(line("ADDED", item("a", 7)), half, then="drop"),
            watch(line("ADDED", item("b", 8))),
        ],
    )
    before = restarts("transport")
    sink = Collector()
    with informing(connection, sink):
        sink.wait_for(Added("b"))
    assert versions(server) == ["1", "7"]
    assert restarts("transport") == before + 1
    assert sink.events.count(ListStarted()) == 1


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(watch(GONE_LINE), id="as a line of the watch"),
        pytest.param(failure(410, "Expired", "too old"), id="instead of the watch"),
    ],
)
def test_gone_lists_again(server: ScriptedServer, connection: Connection, gone: Handler) -> None:
    script(
        server,
        [page([item("a", 1)], version=1), page([item("b", 2)], version=9)],
        [gone, watch(line("ADDED", item("c", 10)))],
    )
    sink = Collector()
    with informing(connection, sink) as one:
        assert sink.wait_for(Added("c")) == [
            ListStarted(),
            PageListed(["a"]),
            ListDone("1"),
            ListStarted(),
            PageListed(["b"]),
            ListDone("9"),
            Added("c"),
        ]
        assert one.synced
    assert versions(server) == ["1", "9"]


def test_what_came_before_an_error_line_is_handed_over(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [page([], version=1)],
        [watch(line("ADDED", item("a", 2)) + GONE_LINE), watch()],
    )
    sink = Collector()
    with informing(connection, sink):
        events = sink.wait(lambda e: e.count(ListDone("1")) == 2)
    assert Added("a") in events


def test_an_error_line_of_another_kind_resumes_where_it_was(
    server: ScriptedServer, connection: Connection
) -> None:
    broken = line("ERROR", json.loads(status_body(500, "InternalError", "etcd")))
    script(
        server,
        [page([], version=1)],
        [watch(bookmark(4) + broken), watch(line("ADDED", item("a", 5)))],
    )
    sink = Collector()
    with informing(connection, sink):
        events = sink.wait_for(Added("a"))
    assert events.count(ListStarted()) == 1
    assert versions(server) == ["1", "4"]


def test_a_listing_whose_token_expired_is_begun_again(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [
            page([item("a", 1)], version=5, token="old"),
            failure(410, "Expired", "continue token"),
            page([item("b", 1)], version=6),
        ],
        [watch()],
    )
    sink = Collector()
    with informing(connection, sink):
        events = sink.wait_for(ListDone("6"))
    assert events == [
        ListStarted(),
        PageListed(["a"]),
        ListStarted(),
        PageListed(["b"]),
        ListDone("6"),
    ]


@pytest.mark.parametrize(
    ("trouble", "cause"),
    [
        pytest.param(failure(500, "InternalError"), "servererror", id="500"),
        pytest.param(failure(403, "Forbidden"), "forbidden", id="403"),
        pytest.param(failure(429, "TooManyRequests"), "throttled", id="429"),
        pytest.param(cut_off(), "transport", id="cut off"),
        pytest.param(answer(b"{"), "unreadable", id="not JSON"),
        pytest.param(answer(LOGIN_PAGE), "unreadable", id="a login page"),
    ],
)
def test_trouble_with_the_listing_is_tried_again(
    server: ScriptedServer, connection: Connection, trouble: Handler, cause: str
) -> None:
    script(server, [trouble, page([item("a", 1)], version=5)], [watch()])
    before = restarts(cause)
    sink = Collector()
    with informing(connection, sink):
        sink.wait_for(ListDone("5"))
    assert restarts(cause) == before + 1


def test_an_error_line_that_cannot_be_read_is_an_error_of_the_server(
    server: ScriptedServer, connection: Connection
) -> None:
    script(
        server,
        [page([], version=1)],
        [watch(bookmark(3) + line("ERROR", None)), watch(line("ADDED", item("a", 4)))],
    )
    before = restarts("servererror")
    sink = Collector()
    with informing(connection, sink):
        events = sink.wait_for(Added("a"))
    assert events == [ListStarted(), PageListed([]), ListDone("1"), Added("a")]
    assert versions(server) == ["1", "3"]
    assert restarts("servererror") == before + 1


def test_garbage_is_not_heard(server: ScriptedServer, connection: Connection) -> None:
    script(server, [page([], version=1)], [watch(LOGIN_PAGE)])
    sink, now = Collector(), [0.0]

    def a_minute_each(batch: Batch[str]) -> None:
        now[0] += 60.0
        sink(batch)

    watched = Watched(kind=KIND, path=PODS, decoder=decoder(named))
    one = Informer(watched, connection=connection, sink=a_minute_each, clock=lambda: now[0])
    one.start()
    try:
        sink.wait(lambda events: len(events) > 3)
        assert one.lag_s == 120.0
    finally:
        one.stop()


def test_an_informer_that_was_never_started_can_be_stopped(connection: Connection) -> None:
    watched = Watched(kind=KIND, path=PODS, decoder=decoder(named))
    one = Informer(watched, connection=connection, sink=Collector())
    one.stop()
    assert not one.synced


@pytest.mark.parametrize("code", [403, 404])
def test_of_an_optional_kind_that_cannot_be_had_there_is_none(
    server: ScriptedServer, connection: Connection, code: int
) -> None:
    script(server, [failure(code)], [watch()])
    sink = Collector()
    with informing(connection, sink, optional=True) as one:
        assert sink.wait_for(ListDone("")) == [ListStarted(), ListDone("")]
        assert one.synced
        assert one.lag_s == 0, "there is nobody to lag behind"
    assert len(server.asked("GET", PODS)) == 1, "it is not asked for again and again"


def test_an_optional_kind_comes_soon_after_the_right_to_it(
    server: ScriptedServer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(informer, "FORBIDDEN_S", 0.01)
    script(server, [failure(403), page([item("a", 1)], version=5)], [watch()])
    sink = Collector()
    with informing(connection, sink, optional=True):
        assert PageListed(["a"]) in sink.wait_for(ListDone("5"))


def test_an_optional_kind_that_is_served_no_longer_is_gone(
    server: ScriptedServer, connection: Connection
) -> None:
    script(server, [page([item("a", 1)], version=1)], [failure(404)])
    sink = Collector()
    with informing(connection, sink, optional=True):
        assert sink.wait_for(ListDone(""))[-2:] == [ListStarted(), ListDone("")]


def test_an_optional_kind_whose_right_is_lost_is_not_gone(
    server: ScriptedServer, connection: Connection
) -> None:
    lists = [page([item("a", 1)], version=1), failure(403), page([item("b", 7)], version=7)]
    script(server, lists, [failure(410, "Expired", "too old"), watch()])
    sink = Collector()
    restarts = metrics.INFORMER_RESTARTS.labels(KIND, "forbidden")
    before = restarts._value.get()
    with informing(connection, sink, optional=True):
        sink.wait_for(ListDone("7"))
    assert [each for each in sink.events if isinstance(each, ListDone)] == [
        ListDone("1"),
        ListDone("7"),
    ]
    assert restarts._value.get() - before == 1


def test_an_optional_kind_is_waited_for_while_the_server_fails(
    server: ScriptedServer, connection: Connection
) -> None:
    script(server, [failure(500), page([item("a", 1)], version=1)], [watch()])
    sink = Collector()
    with informing(connection, sink, optional=True):
        assert sink.wait_for(ListDone("1"))[-2:] == [PageListed(["a"]), ListDone("1")]


def test_a_silent_watch_is_given_up_and_resumed(
    server: ScriptedServer, connection: Connection
) -> None:
    goes_on = resumed({"1": watch(bookmark(3)), "3": watch(line("ADDED", item("a", 4)))})
    script(server, [page([], version=1)], [goes_on])
    sink = Collector()
    with informing(connection, sink, silence_s=0.1):
        sink.wait_for(Added("a"))
    assert is_listed_once(server)


def malformed() -> float:
    labels = {"kind": KIND}
    return metrics.REGISTRY.get_sample_value("pumice_informer_malformed_total", labels) or 0.0


def test_malformed_objects_are_told_of_and_stop_nothing(
    server: ScriptedServer, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    script(
        server,
        [page([item("a", 1, broken=1), item("b", 1)], version=1)],
        [
            watch(
                line("MODIFIED", item("a", 2, broken=1)) + b"nonsense\n",
                line("DELETED", item("a", 3, broken=1)) + line("ADDED", item("c", 4)),
            )
        ],
    )
    sink = Collector()
    with caplog.at_level(logging.WARNING), informing(connection, sink):
        events = sink.wait_for(Added("c"))
    why = "spec.broken: must not be there"
    assert events[:5] == [
        ListStarted(),
        PageListed(["b"]),
        Malformed(key="ns/a", message=why, uid="uid-a"),
        ListDone("1"),
        Malformed(key="ns/a", message=why, uid="uid-a"),
    ]
    nonsense = events[5]
    assert isinstance(nonsense, Malformed)
    assert nonsense.key == ""
    assert events[6:] == [
        Malformed(key="ns/a", message=why, uid="uid-a", deleted=True),
        Added("c"),
    ]
    reported = [r for r in caplog.records if r.message == "object cannot be decoded"]
    assert [vars(r)["key"] for r in reported] == ["ns/a", ""]


def test_an_object_too_deep_to_be_read_is_told_of_once_and_stops_nothing(
    server: ScriptedServer, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    deep = too_deep("a", 1)
    listed = b'{"metadata": {"resourceVersion": "1"}, "items": [%s, %s]}' % (deep, raw_item("b", 1))
    changed = b'{"type": "MODIFIED", "object": %s}\n' % deep
    script(server, [answer(listed)], [watch(changed, line("ADDED", item("c", 4)))])
    before = malformed()
    sink = Collector()
    with caplog.at_level(logging.WARNING), informing(connection, sink) as one:
        events = sink.wait_for(Added("c"))
        assert one.synced
    assert PageListed(["b"]) in events
    told = [event for event in events if isinstance(event, Malformed)]
    assert [(event.key, event.uid) for event in told] == [("ns/a", "uid-a")] * 2
    assert malformed() == before + 2
    reported = [r for r in caplog.records if r.message == "object cannot be decoded"]
    assert [vars(r)["key"] for r in reported] == ["ns/a"]


def test_a_decoder_with_a_bug_in_its_pages_is_tried_again(
    server: ScriptedServer, connection: Connection
) -> None:
    failures = [RuntimeError("bug")]

    def decode_page(raw: bytes) -> Page[str]:
        if failures:
            raise failures.pop()
        return Page(["a"], [], "5", "")

    def decode_line(raw: bytes) -> Line[str]:
        return Line(LineType.BOOKMARK, "6")

    script(server, [page([], version=5)], [watch()])
    sink = Collector()
    with informing(connection, sink, decode=Decoder(decode_page, decode_line)):
        assert sink.wait_for(ListDone("5")) == [ListStarted(), PageListed(["a"]), ListDone("5")]


@pytest.mark.parametrize(
    ("listing", "watching", "requests"),
    [
        pytest.param(page([], version=1), watch(), 2, id="while the watch is silent"),
        pytest.param(page([], version=1), silent(), 2, id="while the watch is not answered"),
        pytest.param(silent(), watch(), 1, id="while the listing is slow"),
        pytest.param(failure(500), watch(), 2, id="while it backs off"),
    ],
)
def test_stop_ends_the_thread_whatever_it_waits_for(
    server: ScriptedServer,
    connection: Connection,
    *,
    listing: Handler,
    watching: Handler,
    requests: int,
) -> None:
    script(server, [listing], [watching])
    with informing(connection, Collector()):
        server.wait_for(lambda seen: len(seen) >= requests)


def test_lag_is_shown_while_it_runs_and_not_after(
    server: ScriptedServer, connection: Connection
) -> None:
    def lag() -> float | None:
        labels = {"kind": KIND}
        return metrics.REGISTRY.get_sample_value("pumice_informer_lag_seconds", labels)

    script(server, [page([], version=1)], [watch()])
    sink = Collector()
    with informing(connection, sink):
        sink.wait_for(ListDone("1"))
        shown = lag()
        assert shown is not None
        assert shown >= 0.0
    assert lag() is None
