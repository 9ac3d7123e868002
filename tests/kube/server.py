"""An API server that does what the test wrote down, on 127.0.0.1 and a free port.

It runs in a thread with an event loop of its own, so that informers (threads) and the client (the
test's event loop) are tested the same way. For each method and path the handlers are used in turn;
the last one stays. What was asked is kept in ``seen``.
"""

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from aiohttp import web

PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came in."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> object:
        """The decoded body."""
        return json.loads(self.body)


Handler = Callable[["ScriptedServer", web.BaseRequest], Awaitable[web.StreamResponse]]


class _Serving(web.Server):
    """Listens, and ends with every connection's socket closed.

    asyncio loses a connection that it is just accepting when its server closes, so accepting ends
    first. aiohttp asks its connections to close, which those with unsent bytes never do.
    """

    def __init__(self, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(handle)
        self._open: dict[web.RequestHandler, asyncio.Transport] = {}
        self._none_open = asyncio.Event()
        self._none_open.set()

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._open[handler] = transport
        self._none_open.clear()

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self._open.pop(handler, None)
        if not self._open:
            self._none_open.set()

    async def listen(self, tls: ssl.SSLContext | None) -> asyncio.Server:
        """Serve on a free port."""
        return await asyncio.get_running_loop().create_server(self, "127.0.0.1", 0, ssl=tls)

    async def end(self, listening: asyncio.Server) -> None:
        """Accept nothing more, then close what is open."""
        for sock in listening.sockets:
            asyncio.get_running_loop().remove_reader(sock)
        # One turn of the loop makes the transport of what was accepted last, the next tells us.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        listening.close()
        await self.shutdown(0.1)
        for transport in list(self._open.values()):
            transport.abort()
        await self._none_open.wait()


class ScriptedServer:
    """Started on entering, ended on leaving, whatever happened in between."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.seen: list[Seen] = []
        self.closing = asyncio.Event()
        self.base = ""
        self._script: dict[tuple[str, str], list[Handler]] = {}
        self._changed = threading.Condition()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="scripted-server")

    def on(self, method: str, path: str, *handlers: Handler) -> None:
        """Answer requests to ``path`` by these, in turn."""
        self._script[method, path] = list(handlers)

    def asked(self, method: str, path: str) -> list[Seen]:
        """The requests to ``path`` so far."""
        with self._changed:
            return [s for s in self.seen if (s.method, s.path) == (method, path)]

    def wait_for(self, enough: Callable[[list[Seen]], bool]) -> None:
        """Return when what was asked so far is enough; fail if that takes too long."""
        with self._changed:
            assert self._changed.wait_for(lambda: enough(self.seen), PATIENCE_S), self.seen

    def kubeconfig(
        self,
        folder: Path,
        *,
        cluster: Mapping[str, object] | None = None,
        user: Mapping[str, object] | None = None,
    ) -> Path:
        """A kubeconfig that leads here, by default without credentials."""
        path = folder / "kubeconfig"
        here = {"server": self.base, **(cluster or {})}
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "here",
                    "clusters": [{"name": "here", "cluster": here}],
                    "users": [{"name": "me", "user": dict(user or {})}],
                    "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
                }
            )
        )
        return path

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop serving; its port is closed when this returns."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.closing.set)
            self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        serving = _Serving(self._handle)
        listening = await serving.listen(self._tls)
        host, port = listening.sockets[0].getsockname()[:2]
        self.base = f"{'https' if self._tls else 'http'}://{host}:{port}"
        self._ready.set()
        await self.closing.wait()
        await serving.end(listening)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        method, path = request.method, request.path
        with self._changed:
            self.seen.append(Seen(method, path, dict(request.query), dict(request.headers), body))
            self._changed.notify_all()
        handlers = self._script.get((method, path))
        if not handlers:
            return web.Response(status=404, body=status_body(404, "NotFound", f"no {path}"))
        handler = handlers.pop(0) if len(handlers) > 1 else handlers[0]
        return await handler(self, request)


def status_body(
    code: int, reason: str, message: str, *, causes: Sequence[Mapping[str, str]] = ()
) -> bytes:
    """A ``v1.Status`` of a failure."""
    return json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
            **({"details": {"causes": list(causes)}} if causes else {}),
        }
    ).encode()


def answer(body: object = None, *, status: int = 200) -> Handler:
    """``body`` as JSON, or as it is when it is bytes."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def handle(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=raw, content_type="application/json")

    return handle


def answer_once(free: threading.Event) -> Handler:
    """An empty object, when ``free`` is set; until then the connection is busy."""

    async def handle(_server: ScriptedServer, _request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.to_thread(free.wait, PATIENCE_S)
        return web.json_response({})

    return handle


def failure(
    code: int,
    reason: str = "",
    message: str = "",
    headers: Mapping[str, str] | None = None,
    *,
    causes: Sequence[Mapping[str, str]] = (),
) -> Handler:
    """A failure as the API server words it."""
    body = status_body(code, reason, message, causes=causes)

    async def handle(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=code, body=body, headers=headers)

    return handle


LOGIN_PAGE = b"<html>\n<body>please log in</body>\n</html>\n"
"""What a proxy in between may answer, as a success."""


def item(name: str, version: int, **more: object) -> dict[str, object]:
    """An object with as much as a decoder of these tests reads."""
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return {"metadata": metadata | {"resourceVersion": str(version)}} | more


def raw_item(name: str, version: int) -> bytes:
    """The same as text."""
    return json.dumps(item(name, version)).encode()


TOO_DEEP: Final = b'{"a": ' * 20_000 + b"1" + b"}" * 20_000
"""Python's limit for decoders is 1,000 levels in 3.11, 1,500 in 3.12 and 10,000 in 3.13."""


def too_deep(name: str, version: int) -> bytes:
    """An object that only somebody who wants to can make, with its managedFields."""
    managed = b'"managedFields": [{"fieldsV1": %s}], "name"' % TOO_DEEP
    return raw_item(name, version).replace(b'"name"', managed)[:-1] + b', "spec": %s}' % TOO_DEEP


def page(items: Sequence[object], *, version: int, token: str = "") -> Handler:
    """One page of a list; ``token`` when more follow."""
    return answer(
        {
            "kind": "List",
            "metadata": {"resourceVersion": str(version), "continue": token},
            "items": items,
        }
    )


def line(kind: str, obj: object) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    """A line that only moves the version on."""
    return line("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def watch(
    *chunks: bytes,
    then: Literal["end", "hold", "drop", "break"] = "hold",
    sent: threading.Event | None = None,
) -> Handler:
    """A watch that sends the chunks and then ends cleanly, stays silent, or breaks off.

    What was not read may be lost when it drops the connection, not when it breaks off in a chunk.
    ``sent`` is set in between.
    """

    async def handle(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if sent is not None:
            sent.set()
        if then == "hold":
            await server.closing.wait()
        elif then == "drop":
            assert request.transport is not None
            request.transport.abort()
        elif then == "break":
            assert request.transport is not None
            request.transport.write(b"fff\r\n{")
            request.transport.close()
        return response

    return handle


def plain_watch(*chunks: bytes) -> Handler:
    """A watch that sends them as HTTP/1.0 does, where an answer goes on until its connection ends.

    It stays silent then.
    """

    async def handle(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n")
        for chunk in chunks:
            request.transport.write(chunk)
        await server.closing.wait()
        return web.Response()

    return handle


def lists_and_watches(lists: Sequence[Handler], watches: Sequence[Handler]) -> Handler:
    """Lists and watches ask the same path; each kind of request has its own turn."""
    listing, watching = list(lists), list(watches)

    async def handle(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        handlers = watching if "watch" in request.query else listing
        handler = handlers.pop(0) if len(handlers) > 1 else handlers[0]
        return await handler(server, request)

    return handle


def resumed(watches: Mapping[str, Handler]) -> Handler:
    """Each watch is answered by the version that it goes on from, however often it is asked."""

    async def handle(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        return await watches[request.query["resourceVersion"]](server, request)

    return handle


def silent() -> Handler:
    """Takes the request and never answers."""

    async def handle(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        await server.closing.wait()
        return web.Response(status=503)

    return handle


def cut_off() -> Handler:
    """Takes the request and closes the connection instead of answering."""

    async def handle(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return handle
