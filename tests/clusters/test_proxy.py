"""The proxy: the server is asked what the caller asks, no more."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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


@pytest.mark.parametrize(
    "headers", [{}, {"accept-encoding": "gzip"}, {"accept": "application/json", "user-agent": "me"}]
)
def test_only_what_the_caller_asks_for_is_asked_for(
    headers: dict[str, str], tmp_path: Path
) -> None:
    with _server(tmp_path) as server, Proxy(server, token="t") as proxy:
        [cluster] = yaml.safe_load(proxy.kubeconfig.read_text())["clusters"]
        caller = http.client.HTTPConnection(cluster["cluster"]["server"].removeprefix("http://"))
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
