"""How fast an informer's connection is read."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from urllib3 import HTTPResponse

from app.kube.config import load
from app.kube.source import Source
from tests.kube.server import PATIENCE_S, ScriptedServer, watch
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


def test_what_has_come_is_read_without_pauses_though_each_read_is_slow(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = threading.Event()
    read = HTTPResponse.read1

    def slowly(response: HTTPResponse, *amount: Any) -> bytes:
        time.sleep(SLOW_S)
        return read(response, *amount)

    monkeypatch.setattr(HTTPResponse, "read1", slowly)
    server.on("GET", PATH, watch(*[LINE] * COUNT, sent=sent))
    connection = load(server.kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True}))
    pauses: list[float] = []
    source = Source(connection, pause=pauses.append)
    pieces = source.pieces(PATH, {}, silence_s=PATIENCE_S, gather_s=0.05)
    came = len(next(pieces))
    assert sent.wait(PATIENCE_S)
    while came < COUNT * len(LINE):
        came += len(next(pieces))
    pieces.close()
    source.close()
    assert len(pauses) <= 5  # what was read ahead of the last line counts for little
