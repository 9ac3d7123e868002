"""The whole state for the page and for programs that follow it: once, and live.

The live view is a stream of server-sent events: the whole, and then what changed. Each step is made
once for all readers of the same rights (:mod:`app.service.telling.view.views`).
"""

import asyncio
from asyncio import FIRST_COMPLETED
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from app.api.access import Access
from app.api.body import JSON, BadRequest, json_text, refusals
from app.api.services import ExtenderServices
from app.service.telling.view.audience import Audience, Readers
from app.service.telling.view.rows import Whole
from app.service.telling.view.views import TooManyViewers, Views

EVENTS: Final = "text/event-stream"
_EVENTS: Final = {"content": {EVENTS: {"schema": {"type": "string"}}}}
BEAT_S: Final = 10.0
"""From one sign of life to the next while nothing changes."""
LEAST_S: Final = 0.05
"""Between two looks of a reader for what is new, at least."""
PIECE: Final = 2**16
"""Bytes that are handed to the server at a time: a slow reader holds no more of them."""
NAMESPACES: Final = 20
"""Of so many namespaces one reader is told at most."""

_REFUSALS = refusals(
    {
        400: "the question cannot be read; says why",
        429: "this account reads too often, or too many tokens are looked at",
        503: "too many readers, or the token cannot be looked at now",
        "default": "refused; says why",
    }
)
_GONE: Final = (401, 403)
"""What the token comes to when it has expired, or its account has lost the right."""


def view_router(services: ExtenderServices) -> APIRouter:
    """``/view`` and what is below it."""
    router = APIRouter(prefix="/view", tags=["view"])
    views, access = services.views, services.access

    @router.get("", responses=_REFUSALS | {200: {"model": Whole}})
    async def view(request: Request, namespace: str = "") -> Response:
        """The whole state: queues, jobs, nodes, domains of the network, and what is to come.

        ``namespace`` are namespaces with commas between; a tenant names its own. A replica that
        stands by has no rows, and says which one leads.
        """
        user, readers = await access.readers(request, _namespaces(namespace))
        try:
            found = await views.audience(readers)
        except TooManyViewers as error:
            raise _too_many(error) from None
        return StreamingResponse(_pieces(found.whole(user)), media_type=JSON)

    @router.get("/stream", response_class=Response, responses=_REFUSALS | {200: _EVENTS})
    async def stream(namespace: str = "") -> Response:
        """The whole state as server-sent events: ``whole``, then ``delta`` at most once a second.

        The stream ends with ``expired`` when the token is valid no more, and with ``stopping`` when
        the process ends.
        """
        return _Stream(views, access, asked=_namespaces(namespace))

    return router


def _namespaces(text: str) -> frozenset[str]:
    """The namespaces that the query names; none: it does not say."""
    found = frozenset(each.strip() for each in text.split(",") if each.strip())
    if len(found) > NAMESPACES:
        raise BadRequest(f"namespace: {len(found)} are more than {NAMESPACES}")
    return found


def _too_many(error: TooManyViewers) -> BadRequest:
    return BadRequest(str(error), status=429 if error.of_account else 503)


async def _pieces(texts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for text in texts:
        for at in range(0, len(text), PIECE):
            yield text[at : at + PIECE]


class _Stream(Response):
    """The live view of one reader.

    The server stops taking pieces while the reader takes none, so nothing piles up: a reader that
    comes back after more steps than are kept is told the whole. One that takes nothing for longer
    is ended by the server.
    """

    media_type = EVENTS

    def __init__(
        self,
        views: Views,
        access: Access,
        *,
        asked: frozenset[str],
    ) -> None:
        self._views = views
        self._access = access
        self._asked = asked
        self.status_code = 200
        self.background = None
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell the reader until it goes, its token expires, or the process stops."""
        request = Request(scope)
        user, readers = await self._access.readers(request, self._asked)
        try:
            with self._views.opened(user):
                told = _Told(user, readers, await self._views.audience(readers))
                await send(_begin(self.raw_headers, self.status_code))
                await self._tell(told, request, receive, send)
        except TooManyViewers as error:
            raise _too_many(error) from None

    async def _tell(self, told: "_Told", request: Request, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_disconnected(receive))
        stopping = asyncio.ensure_future(self._views.stopping.wait())
        clock = self._views.sources.clock
        checked = clock()
        try:
            while not gone.done():
                for event in told.news():
                    async for piece in _pieces(event):
                        await send(_piece(piece))
                if stopping.done():
                    await self._end(send, "stopping", "the process stops; connect again")
                    return
                wait_s = max(self._views.due - clock(), LEAST_S)
                await asyncio.wait({gone, stopping}, timeout=wait_s, return_when=FIRST_COMPLETED)
                if clock() - checked >= BEAT_S:
                    checked = clock()
                    await send(_piece(b": beat\n\n"))
                    refused = await self._judge(told, request)
                    if refused:
                        await self._end(send, "expired", refused)
                        return
                told.audience = await self._views.audience(told.readers)
        finally:
            gone.cancel()
            stopping.cancel()

    async def _judge(self, told: "_Told", request: Request) -> str:
        """See whether the token is valid still; why not, else empty."""
        try:
            told.user, told.readers = await self._access.readers(request, self._asked)
        except BadRequest as error:
            return str(error) if error.status in _GONE else ""
        return ""

    async def _end(self, send: Send, name: str, why: str) -> None:
        await send(_piece(b"".join(_event(name, 0, [json_text({"why": why})]))))
        await send(_piece(b"", more=False))


@dataclass(slots=True, eq=False)
class _Told:
    """What one reader has been told so far: the view it was, and its generation."""

    user: str
    readers: Readers
    audience: Audience
    _seen: Audience | None = None
    _generation: int = 0

    def news(self) -> Iterator[Iterable[bytes]]:
        """The events that come next."""
        audience = self.audience
        deltas = audience.since(self._generation) if audience is self._seen else None
        self._seen, self._generation = audience, audience.generation
        if deltas is None:
            yield _event("whole", audience.generation, audience.whole(self.user))
            return
        for delta in deltas:
            yield _event("delta", delta.generation, [delta.text])


def _event(name: str, generation: int, data: Iterable[bytes]) -> Iterator[bytes]:
    yield b"event: %b\nid: %d\ndata: " % (name.encode(), generation)
    yield from data
    yield b"\n\n"


def _begin(headers: Sequence[tuple[bytes, bytes]], status: int) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _piece(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
