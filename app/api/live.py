"""The live view of one reader: the whole state, and then what changed, as server-sent events."""

import asyncio
from asyncio import FIRST_COMPLETED
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request, Response
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from app.api.access import Access
from app.api.body import BadRequest, json_text
from app.service.telling.view.audience import Audience, Readers
from app.service.telling.view.views import TooManyViewers, Views

EVENTS: Final = "text/event-stream"
BEAT_S: Final = 10.0
"""From one sign of life to the next while nothing changes."""
LEAST_S: Final = 0.05
"""Between two looks of a reader for what is new, at least."""
PIECE: Final = 2**16
"""Bytes that are handed to the server at a time: a slow reader holds no more of them."""

_GONE: Final = (401, 403)
"""What the token comes to when it has expired, or its account has lost the right."""


def too_many(error: TooManyViewers) -> BadRequest:
    """The refusal of one reader too many."""
    return BadRequest(str(error), status=429 if error.of_tenant else 503)


async def pieces(texts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """The texts as pieces that are not too large for a slow reader."""
    for text in texts:
        for at in range(0, len(text), PIECE):
            yield text[at : at + PIECE]


class WholeView(StreamingResponse):
    """The whole view of one reader, that counts among those that follow it while it is taken."""

    def __init__(
        self, content: AsyncIterator[bytes], views: Views, user: str, readers: Readers, **how: Any
    ) -> None:
        super().__init__(content, **how)
        self._opened = views.opened(user, readers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            with self._opened:
                await super().__call__(scope, receive, send)
        except TooManyViewers as error:
            raise too_many(error) from None


class LiveView(Response):
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
            with self._views.opened(user, readers):
                told = _Told(user, readers, await self._views.audience(readers))
                await send(_begin(self.raw_headers, self.status_code))
                await self._tell(told, request, receive, send)
        except TooManyViewers as error:
            raise too_many(error) from None

    async def _tell(self, told: "_Told", request: Request, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_disconnected(receive))
        stopping = asyncio.ensure_future(self._views.stopping.wait())
        clock = self._views.sources.clock
        checked = clock()
        try:
            while not gone.done():
                for event in told.news(clock()):
                    async for piece in pieces(event):
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

    def news(self, now: float) -> Iterator[Iterable[bytes]]:
        """The events that come next."""
        audience = self.audience
        deltas = audience.since(self._generation) if audience is self._seen else None
        self._seen, self._generation = audience, audience.generation
        if deltas is None:
            yield _event("whole", audience.generation, audience.whole(self.user, at=now))
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
