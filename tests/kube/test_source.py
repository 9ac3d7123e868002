"""How an informer's connection is read."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from urllib3 import HTTPResponse

from app.kube.config import load
from app.kube.errors import Transport
from app.kube.source import PIECE, Source
from tests.kube.server import PATIENCE_S, ScriptedServer, plain_watch, watch
from tests.kube.tls import self_signed

PATH = "/api/v1/pods"
LINE = b"x" * 3000 + b"\n"
"""As long as what a watch says of a pod."""
COUNT = 100
SLOW_S = 0.001
"""What a read takes where its thread has to wait for a core."""


@pytest.fixture(params=["http", "https"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ScriptedServer]:
    tls = self_signed(tmp_path)[0] if request.param == "https" else None
    with ScriptedServer(tls) as running:
        yield running


@pytest.fixture
def source(server: ScriptedServer, tmp_path: Path, pauses: list[float]) -> Iterator[Source]:
    unverified = {"insecure-skip-tls-verify": True}
    reading = Source(load(server.kubeconfig(tmp_path, cluster=unverified)), pause=pauses.append)
    yield reading
    reading.close()


@pytest.fixture
def pauses() -> list[float]:
    return []


def once_sent(source: Source, sent: threading.Event) -> list[bytes]:
    """The pieces of a watch of ``COUNT`` lines, which have come after the first piece."""
    with closing(source.pieces(PATH, {}, silence_s=PATIENCE_S, gather_s=0.05)) as pieces:
        came = [next(pieces)]
        assert sent.wait(PATIENCE_S)
        while sum(map(len, came)) < COUNT * len(LINE):
            came.append(next(pieces))
    return came


def test_what_has_come_is_read_without_pauses_though_each_read_is_slow(
    server: ScriptedServer,
    source: Source,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = threading.Event()
    read = HTTPResponse.read_chunked

    def slowly(response: HTTPResponse) -> Iterator[bytes]:
        for chunk in read(response):
            time.sleep(SLOW_S)
            yield chunk

    monkeypatch.setattr(HTTPResponse, "read_chunked", slowly)
    server.on("GET", PATH, watch(*[LINE] * COUNT, sent=sent))
    assert b"".join(once_sent(source, sent)) == LINE * COUNT
    assert len(pauses) <= 5  # what was read ahead of the last line counts for little


def test_what_has_come_is_handed_over_together(server: ScriptedServer, source: Source) -> None:
    """A batch costs the event loop a wake-up."""
    sent = threading.Event()
    server.on("GET", PATH, watch(*[LINE] * COUNT, sent=sent))
    came = once_sent(source, sent)
    assert len(came) <= COUNT * len(LINE) / PIECE + 10  # the first ones had not come together
    assert max(map(len, came)) < PIECE + len(LINE)


def test_what_was_read_ahead_is_handed_over_without_pauses(
    server: ScriptedServer, source: Source, pauses: list[float]
) -> None:
    """Eight lines, of which the first read of the socket brings the others too."""
    short = LINE[-900:]
    server.on("GET", PATH, watch(*[short] * 8))
    came = b""
    with closing(source.pieces(PATH, {}, silence_s=PATIENCE_S, gather_s=PATIENCE_S)) as pieces:
        while len(came) < 8 * len(short):
            came += next(pieces)
    assert len(pauses) <= 3  # a thread that waits for a core looks as if it waited for them


def test_what_came_before_a_connection_broke_is_handed_over(
    server: ScriptedServer, source: Source
) -> None:
    """Else a server that breaks off again and again would never be understood."""
    server.on("GET", PATH, watch(*[LINE] * 3, then="break"))
    came: list[bytes] = []
    with pytest.raises(Transport):
        came.extend(source.pieces(PATH, {}, silence_s=PATIENCE_S))
    assert b"".join(came) == LINE * 3


def test_an_answer_that_is_not_in_chunks_is_read_as_it_comes(
    server: ScriptedServer, source: Source
) -> None:
    """Not when so much is there as was asked for: a proxy may speak HTTP/1.0."""
    server.on("GET", PATH, plain_watch(LINE, LINE))
    with closing(source.pieces(PATH, {}, silence_s=PATIENCE_S)) as pieces:
        came = b""
        while len(came) < 2 * len(LINE):
            came += next(pieces)
    assert came == 2 * LINE
