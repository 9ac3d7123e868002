"""A server of the page with answers that the test gives: states that a cluster rarely is in."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

PAGE = Path(__file__).resolve().parents[2] / "app" / "page"
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none';"
    " object-src 'none'"
)
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_TYPES |= {".svg": "image/svg+xml"}
_END = object()

Document = dict[str, Any]


@dataclass
class Site:
    """What the server answers; a test changes it at any time."""

    whole: Document
    answers: dict[str, Any] = field(default_factory=dict)
    """Path without parameters -> the JSON answer to GET or POST."""
    token: str = ""
    """What is wanted of readers; empty: nothing."""
    refusal: tuple[int, str] | None = None
    """What every data path answers instead."""
    asked: list[tuple[str, Any]] = field(default_factory=list)
    """Bodies of POSTs, by path."""
    namespaces: list[str] = field(default_factory=list)
    """Of each stream, the namespaces it is about."""
    url: str = ""
    _streams: list[queue.Queue[Any]] = field(default_factory=list)

    def change(self, **sections: list[Document]) -> None:
        """Tell all readers of rows that are new or otherwise."""
        self._step({"changed": sections})

    def remove(self, **sections: list[str]) -> None:
        self._step({"gone": sections})

    def _step(self, delta: Document) -> None:
        before = self.whole["generation"]
        self.whole = {**self.whole, "generation": before + 1, "at": self.whole["at"] + 1}
        said = {"generation": before + 1, "before": before, "at": self.whole["at"], **delta}
        self.tell("delta", said)

    def tell(self, event: str, said: Document) -> None:
        """An event to all readers."""
        line = f"event: {event}\nid: 1\ndata: {json.dumps(said)}\n\n"
        for each in self._streams:
            each.put(line)

    def cut(self) -> None:
        """End all streams, as a proxy between may."""
        for each in self._streams:
            each.put(_END)
        self._streams.clear()

    def stream(self) -> Iterator[str]:
        mine: queue.Queue[Any] = queue.Queue()
        self._streams.append(mine)
        yield f"event: whole\nid: 1\ndata: {json.dumps(self.whole)}\n\n"
        while (line := mine.get()) is not _END:
            yield line


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """The site on a free port of this machine."""
    handler = type("Handler", (_Handler,), {"site": site})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        site.cut()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/ui" or path.startswith("/ui/"):
            self._file(path.removeprefix("/ui").removeprefix("/") or "index.html")
        elif self._let_in():
            if path == "/view/stream":
                self._stream()
            else:
                self._answer(unquote(path))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._let_in():
            self.site.asked.append((self.path, body))
            self._answer(self.path)

    def _file(self, name: str) -> None:
        file = PAGE / name
        if not file.is_file():
            self._send(404, b"no such file")
            return
        more = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        self._send(200, file.read_bytes(), kind=_TYPES[file.suffix], more=more)

    def _let_in(self) -> bool:
        wanted = self.site.token
        if self.site.refusal is not None:
            status, text = self.site.refusal
            self._send(status, text.encode())
        elif wanted and self.headers.get("Authorization") != f"Bearer {wanted}":
            self._send(401, b"show a bearer token")
        else:
            return True
        return False

    def _stream(self) -> None:
        asked = parse_qs(urlsplit(self.path).query).get("namespace", [""])
        self.site.namespaces.append(asked[0])
        self.send_response_only(200)  # without the time of this machine
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for line in self.site.stream():
                self.wfile.write(line.encode())
        except (BrokenPipeError, ConnectionResetError):
            pass  # the reader has gone

    def _answer(self, path: str) -> None:
        found = self.site.answers.get(path)
        if found is None:
            self._send(404, f"nothing is known of {path}".encode())
        elif isinstance(found, tuple):
            self._send(found[0], found[1].encode())
        else:
            self._send(200, json.dumps(found).encode(), kind="application/json")

    def _send(
        self,
        status: int,
        body: bytes,
        *,
        kind: str = "text/plain",
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **(more or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing on the terminal."""
