"""One connection of a client, and the calls that it hands on.

As long as one call comes after the other, each is looked at when it is whole: answered here, or
handed on over a connection to the extender that is free, which is free again after the answer. From
the first thing on that is not such a call (a GET, a body without a length, a call before the last
one is answered) one connection to the extender is the client's own.
"""

import asyncio
from typing import Final, cast

from app.front.inner import Inner, Inners
from app.front.messages import Requests, Seen
from app.front.places import Places
from app.wire.front import FILTER_PATHS

KEEP_ALIVE_S: Final = 120.0
"""Longer than kube-scheduler keeps an idle connection (90 s), so it never meets a closed one."""

_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\ncontent-type: application/json\r\n\r\n"


class Client(asyncio.Protocol):
    """What a client sends, and gets."""

    def __init__(self, places: Places, inners: Inners) -> None:
        self._places = places
        self._inners = inners
        self._inner: Inner | None = None
        """While a call waits for its answer, and for good once it is the client's own."""
        self._requests = Requests()
        self._owns = False
        self._time = asyncio.get_running_loop().time
        self._last = self._time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._transport = cast("asyncio.Transport", transport)

    def end_if_idle(self) -> None:
        """End it when nothing is awaited and nothing was said for long."""
        awaits = self._inner is not None and not self._owns
        if not awaits and self._last < self._time() - KEEP_ALIVE_S:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Answer a whole call, or hand on what there is."""
        self._last = self._time()
        if self._inner is not None:
            self._owns = True
            self._inner.write(data)
            return
        match self._requests.feed(data):
            case Seen.WHOLE:
                self._serve()
            case Seen.OTHER:
                self._owns = True
                self._hand_on()

    def _serve(self) -> None:
        requests = self._requests
        answer = self._places.answer(requests.body) if requests.path in FILTER_PATHS else None
        if answer is None:
            self._hand_on()
        else:
            self._transport.write(_HEAD % len(answer) + answer)

    def _hand_on(self) -> None:
        self._inner = self._inners.take(self)
        self._inner.write(self._requests.raw)

    def answered(self, data: bytes) -> None:
        """The extender says so much."""
        self._last = self._time()
        self._transport.write(data)
        inner = self._inner
        if inner is None or self._owns or not inner.ends_answer(data):
            return
        self._inner = None
        self.go_on()
        if inner.is_over:
            self._transport.close()
        else:
            self._inners.give_back(inner)

    def left(self) -> None:
        """The extender ended the connection before its answer."""
        self._inner = None
        self._transport.close()

    def pause_writing(self) -> None:
        """The client does not take what there is for it."""
        if self._inner is not None:
            self._inner.slow_down()

    def resume_writing(self) -> None:
        """It does again."""
        if self._inner is not None:
            self._inner.go_on()

    def slow_down(self) -> None:
        """The extender does not take what the client sends."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def go_on(self) -> None:
        """It does again."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        """The client is gone: what it waits for is not wanted any more."""
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.close()
