"""A proxy in front of the API server that lets one client have a bad time.

The extender gets a kubeconfig that points here. What passes is decided by `fault`: an answer
instead of the server's, after a delay, or nothing. `late` holds back what watches say, each by so
much that their order among each other is lost, as it may be. `cut` breaks off every watch there is.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import httpx2

from tests.clusters import kubeconfigs
from tests.clusters.certificates import Authority
from tests.clusters.client import Object, tls_context

_HOP_BY_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive", "host"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Said instead of the API server; `code` 0 lets the request pass, after `delay_s`."""

    code: int = 0
    reason: str = ""
    delay_s: float = 0
    retry_after_s: int | None = None

    def body(self) -> bytes:
        status: Object = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        return json.dumps(
            status | {"code": self.code, "reason": self.reason, "message": f"fault: {self.reason}"}
        ).encode()


Fault = Callable[[str, str], Answer | None]
"""Method and path (with its query) to what is to be done; None: pass on."""


def nothing(_method: str, _path: str) -> Answer | None:
    """All is well."""
    return None


Lateness = Callable[[str], float]
"""The path of a watch (with its query) to the seconds by which all it says arrives late."""


def in_time(_path: str) -> float:
    """No watch is late."""
    return 0


_Said = queue.SimpleQueue[tuple[float, bytes] | None]
"""When the server said what; None: that was all."""


class Upstream(Protocol):
    """What passes goes here."""

    @property
    def folder(self) -> Path:
        """Where files may be kept."""

    @property
    def url(self) -> str:
        """Its address."""

    @property
    def authority(self) -> Authority:
        """Who signed its certificate."""


class Proxy:
    """Passes requests on with the caller's credentials; `with` starts and ends it."""

    def __init__(self, server: Upstream, *, token: str) -> None:
        self._folder = server.folder
        self._token = token
        self.fault: Fault = nothing
        self.late: Lateness = in_time
        self.client = httpx2.Client(
            base_url=server.url,
            verify=tls_context(server.authority.certificate),
            timeout=None,
            limits=httpx2.Limits(max_connections=None),
            trust_env=False,
        )
        # Only what the caller asks for, above all nothing compressed: bodies are passed on raw.
        self.client.headers.clear()
        self._generation = 0
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig that leads here."""
        port = self._server.server_address[1]
        path = self._folder / f"proxy-{port}.kubeconfig"
        return kubeconfigs.write(path, server=f"http://127.0.0.1:{port}", token=self._token)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The client is not closed: a thread may read a stream until the server's next line, and
        # goes on with the same descriptor, which after a close is that of another connection.
        self.cut()
        self._server.shutdown()
        self._server.server_close()

    @property
    def generation(self) -> int:
        """Grows with every `cut`; a stream of an earlier one is to end."""
        return self._generation

    def cut(self) -> None:
        """Break off every stream; each ends with the next line the server sends."""
        self._generation += 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        answer = self.server.proxy.fault(self.command, self.path)
        if answer is not None:
            time.sleep(answer.delay_s)
            if answer.code:
                self._refuse(answer)
                return
        try:
            self._pass_on(body)
        except (httpx2.TransportError, OSError):
            self.close_connection = True

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve

    def _refuse(self, answer: Answer) -> None:
        body = answer.body()
        self.send_response(answer.code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if answer.retry_after_s is not None:
            self.send_header("Retry-After", str(answer.retry_after_s))
        self.end_headers()
        self.wfile.write(body)

    def _pass_on(self, body: bytes) -> None:
        proxy = self.server.proxy
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
        with proxy.client.stream(
            self.command, self.path, content=body or None, headers=headers
        ) as response:
            self.send_response(response.status_code)
            for name, value in response.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            relay = self._relay_watch if "watch=" in self.path else self._relay
            if relay(response):
                self.wfile.write(b"0\r\n\r\n")
            else:
                self.close_connection = True

    def _relay(self, response: httpx2.Response) -> bool:
        """Pass all of it on; returns whether that came to its end."""
        generation = self.server.proxy.generation
        for part in response.iter_raw():
            if self.server.proxy.generation != generation:
                return False
            self._write(part)
        return True

    def _relay_watch(self, response: httpx2.Response) -> bool:
        """The same, with each part as late as the proxy says, and no later for those before it.

        The thread that reads is this one, which closes the stream: see `Proxy.__exit__`.
        """
        generation = self.server.proxy.generation
        said: _Said = queue.SimpleQueue()
        writer = threading.Thread(target=self._write_late, args=(said, generation), daemon=True)
        writer.start()
        whole = False
        try:
            for part in response.iter_raw():
                if not writer.is_alive() or self.server.proxy.generation != generation:
                    break
                said.put((time.monotonic(), part))
            else:
                whole = True
        finally:
            said.put(None)
            writer.join()
        return whole

    def _write_late(self, said: _Said, generation: int) -> None:
        proxy = self.server.proxy
        with contextlib.suppress(OSError):  # the caller is gone
            while (heard := said.get()) is not None:
                said_at, part = heard
                time.sleep(max(said_at + proxy.late(self.path) - time.monotonic(), 0))
                if proxy.generation != generation:
                    # What is held back is lost: the caller is to hear of that now, not when the
                    # server says more.
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self._write(part)

    def _write(self, part: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        self.wfile.flush()
