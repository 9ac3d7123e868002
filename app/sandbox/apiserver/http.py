"""The API server as an ASGI application: discovery, objects, watches.

Plain ASGI and no framework: there is one route shape (``paths``), and a watch has to notice at once
that its client has gone or that the server stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import msgspec

from app.sandbox.apiserver import discovery, errors, openapi
from app.sandbox.apiserver.messages import (
    JSON,
    Reply,
    Request,
    json_reply,
    parse_query,
    text_reply,
)
from app.sandbox.apiserver.numbers import whole_number
from app.sandbox.apiserver.operations import Operations
from app.sandbox.apiserver.paths import parse_target
from app.sandbox.apiserver.resources import Resources
from app.sandbox.apiserver.stock_rules import CRDS
from app.sandbox.apiserver.target import Target
from app.sandbox.apiserver.watches import Watch
from app.wire.documents import Document

logger = logging.getLogger(__name__)

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

WATCH_S = 1800.0
"""How long a watch lasts that does not say."""

BOOKMARK_EVERY_S = 60.0
_PROBES = frozenset({"/healthz", "/livez", "/readyz"})


class HttpApi:
    """The ASGI callable."""

    def __init__(self, operations: Operations, resources: Resources) -> None:
        self._operations = operations
        self._registry = operations.registry
        self._resources = resources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI scope; a watch lasts until its client goes or the server ends it."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] == "websocket":
            await _refuse_handshake(receive, send)
            return
        request = await _read(scope, receive)
        target = parse_target(self._registry, request.path)
        if target is not None and _is_watch(request):
            await self._watch(request, target, receive=receive, send=send)
            return
        await _send_reply(self._reply(request, target), send)

    def _reply(self, request: Request, target: Target | None) -> Reply:
        try:
            if target is not None:
                return self._resources.answer(request, target)
            return self._discovery(request)
        except errors.ApiError as refusal:
            return json_reply(refusal.status(), code=refusal.code)
        except Exception:
            logger.exception("request failed", extra={"path": request.path})
            failure = errors.ApiError(500, "InternalError", "Internal error occurred")
            return json_reply(failure.status(), code=500)

    def _discovery(self, request: Request) -> Reply:
        steps = request.path.strip("/").split("/")
        match steps:
            case ["api"] | ["apis"] if "as=APIGroupDiscoveryList" in request.accept:
                document = discovery.aggregated(self._registry, core=steps == ["api"])
                body = msgspec.json.encode(document)
                return Reply(body=body, content_type=discovery.AGGREGATED)
            case ["api"]:
                return json_reply(discovery.core_versions(request.host))
            case ["apis"]:
                return json_reply(discovery.group_list(self._registry))
            case ["apis", group]:
                return _found(discovery.one_group(self._registry, group))
            case ["api", version]:
                return _found(discovery.resource_list(self._registry, "", version))
            case ["apis", group, version]:
                return _found(discovery.resource_list(self._registry, group, version))
            case ["version"]:
                return json_reply(discovery.version_info())
            case ["openapi", *rest]:
                return self._openapi(rest)
            case _ if request.path in _PROBES:
                return text_reply("ok")
        return self._nothing(steps)

    def _nothing(self, steps: list[str]) -> Reply:
        """Unknown groups are not found in plain text, unknown kinds of known groups as Status."""
        known = len(steps) > 3 and self._registry.of_group(steps[1], steps[2])
        if steps[0] == "apis" and len(steps) > 3 and not known:
            return text_reply("404 page not found\n", code=404)
        raise errors.no_such_path()

    def _openapi(self, steps: list[str]) -> Reply:
        if steps == ["v2"]:
            # The real answer is a protobuf document; an empty one is a valid, empty description.
            kind = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
            return Reply(body=b"", content_type=kind)
        if steps == ["v3"]:
            revision = self._operations.store.revision
            return json_reply(openapi.index(self._registry, revision=revision))
        root = "/".join(steps[1:])
        crds = self._operations.store.ordered(CRDS)
        return _found(openapi.document(self._registry, root, crds=crds))

    async def _watch(
        self, request: Request, target: Target, *, receive: Receive, send: Send
    ) -> None:
        try:
            seconds = whole_number(request.query.get("timeoutSeconds", "0")) or WATCH_S
            watch = Watch(self._operations, target, request.query)
        except errors.ApiError as refusal:
            if refusal.code != 410:
                await _send_reply(json_reply(refusal.status(), code=refusal.code), send)
                return
            await _start_stream(send)
            await _send_chunk(send, _line("ERROR", refusal.status()), more=False)
            return
        try:
            await self._stream(request, target, watch, seconds=seconds, receive=receive, send=send)
        finally:
            watch.close()

    async def _stream(
        self,
        request: Request,
        target: Target,
        watch: Watch,
        *,
        seconds: float,
        receive: Receive,
        send: Send,
    ) -> None:
        await _start_stream(send)
        clock = self._operations.clock
        gone = asyncio.create_task(_until_disconnect(receive))
        over = asyncio.create_task(clock.sleep(seconds))
        bookmark = asyncio.create_task(clock.sleep(BOOKMARK_EVERY_S))
        arrived: asyncio.Task[None] | None = None
        try:
            while not (gone.done() or over.done() or watch.is_over):
                lines = [self._line(request, target, event) for event in watch.events()]
                if bookmark.done():
                    marked = watch.bookmark()
                    lines += [_line(*marked)] if marked else []
                    bookmark = asyncio.create_task(clock.sleep(BOOKMARK_EVERY_S))
                if lines:
                    await _send_chunk(send, b"".join(lines))
                arrived = asyncio.create_task(watch.wait())
                waited = {arrived, gone, over, bookmark}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                arrived.cancel()
            if not gone.done():
                await _send_chunk(send, b"", more=False)
        finally:
            await _cancel(gone, over, bookmark)

    def _line(self, request: Request, target: Target, event: tuple[str, Document]) -> bytes:
        kind, document = event
        if request.wants_table and kind != "BOOKMARK":
            metadata = {"resourceVersion": document["metadata"]["resourceVersion"]}
            document = self._resources.table(request, target, [document], metadata=metadata)
        return _line(kind, document)


def _is_watch(request: Request) -> bool:
    return request.method == "GET" and request.query.get("watch") in {"true", "1"}


def _found(document: Document | None) -> Reply:
    if document is None:
        raise errors.no_such_path()
    return json_reply(document)


def _line(kind: str, document: Document) -> bytes:
    return msgspec.json.encode({"type": kind, "object": document}) + b"\n"


async def _read(scope: Scope, receive: Receive) -> Request:
    headers = dict(scope["headers"])
    chunks: list[bytes] = []
    more = True
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        more = bool(message.get("more_body"))
    return Request(
        method=scope["method"],
        path=scope["path"],
        query=parse_query(scope["query_string"]),
        accept=headers.get(b"accept", b"").decode("latin-1"),
        content_type=headers.get(b"content-type", b"").decode("latin-1"),
        host=headers.get(b"host", b"").decode("latin-1"),
        body=b"".join(chunks),
    )


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _start_stream(send: Send) -> None:
    headers = [(b"content-type", JSON.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _send_chunk(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def _send_reply(reply: Reply, send: Send) -> None:
    await send({"type": "http.response.start", "status": reply.code, "headers": reply.headers})
    await send({"type": "http.response.body", "body": reply.body})


async def _refuse_handshake(receive: Receive, send: Send) -> None:
    """Nothing here speaks WebSocket; kubectl then tries the older way and reads why not."""
    await receive()
    await send({"type": "websocket.close"})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
