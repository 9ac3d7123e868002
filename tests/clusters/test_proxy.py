"""The proxy: the server is asked what the caller asks, no more."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.clusters.certificates import Authority
from tests.clusters.proxy import Proxy


@dataclass(frozen=True)
class Server:
    """Answers every GET with `{}`, and keeps what it was asked."""

    folder: Path
    url: str
    authority: Authority
    seen: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def _server(folder: Path) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.seen.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told = Server(folder, f"http://127.0.0.1:{server.server_port}", Authority(folder))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()


def _address(proxy: Proxy) -> str:
    [cluster] = yaml.safe_load(proxy.kubeconfig.read_text())["clusters"]
    return str(cluster["cluster"]["server"])


@pytest.mark.parametrize(
    "headers", [{}, {"accept-encoding": "gzip"}, {"accept": "application/json", "user-agent": "me"}]
)
def test_only_what_the_caller_asks_for_is_asked_for(
    headers: dict[str, str], tmp_path: Path
) -> None:
    with _server(tmp_path) as server, Proxy(server, token="t") as proxy:
        caller = http.client.HTTPConnection(_address(proxy).removeprefix("http://"))
        caller.putrequest("GET", "/version", skip_accept_encoding=True)
        for name, value in headers.items():
            caller.putheader(name, value)
        caller.endheaders()
        assert caller.getresponse().read() == b"{}"
        caller.close()
        proxy.client.close()
    [seen] = server.seen
    asked = {name: value for name, value in seen.items() if name not in {"host", "connection"}}
    assert asked == headers


@pytest.mark.parametrize(("path", "late"), [("/pods?watch=1", True), ("/pods", False)])
def test_what_a_watch_says_can_be_held_back(path: str, late: bool, tmp_path: Path) -> None:
    held_back_s = 0.2
    with _server(tmp_path) as server, Proxy(server, token="t") as proxy:
        asked_about: list[str] = []

        def lateness(watch: str) -> float:
            asked_about.append(watch)
            return held_back_s

        proxy.late = lateness
        began = time.monotonic()
        assert httpx2.get(_address(proxy) + path).read() == b"{}"
        took_s = time.monotonic() - began
        proxy.client.close()
    assert asked_about == ([path] if late else [])
    assert not late or took_s >= held_back_s
