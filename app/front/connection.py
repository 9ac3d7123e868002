"""One connection of a client.

As long as one of kube-scheduler's calls comes after the other, each is looked at when it is whole,
and answered here or by the extender. With the first thing that is no such call (a GET, a body
without a length) the connection itself is given to the extender, and what has come of it.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol, cast

from app.front.control import Asker
from app.front.messages import COLLECTED, Requests, Seen
from app.front.places import Places
from app.wire.paths import VERB_OF, VERBS

KEEP_ALIVE_S: Final = 120.0
"""Longer than kube-scheduler keeps an idle connection (90 s), so it never meets a closed one."""

REQUEST_S: Final = 30.0
"""From the first byte of a call to its last."""

AGAIN_S: Final = 0.002

GiveAway = Callable[[int, bytes], bool]
"""Gives the extender a connection and what has come of it; False when it takes none right now.

OSError when it takes no more at all.
"""

_VERBS: Final = {path.encode(): VERBS.index(verb) for path, verb in VERB_OF.items()}
_FILTER: Final = VERBS.index("filter")
_PHRASES: Final = {each.value: each.phrase.encode() for each in HTTPStatus}
_JSON: Final = b"application/json"
_TEXT: Final = b"text/plain; charset=utf-8"
_LAST: Final = b"connection: close\r\n"


class Extender(Protocol):
    """The extender, which answers what the places do not."""

    places: Places

    def ask(self, asker: Asker, verb: int, body: bytes) -> int:
        """Hand a call on for ``asker``; returns its number."""

    def give_up(self, number: int) -> None:
        """Tell the extender that the caller of ``number`` does not wait for the answer any more."""


class Client(asyncio.Protocol):
    """What a client sends, and gets.

    ``holds`` is told how many bytes of an unfinished call there are, ``over`` when the client is
    gone.
    """

    def __init__(
        self,
        extender: Extender,
        *,
        give_away: GiveAway,
        holds: Callable[["Client", int], None],
        over: Callable[["Client"], None],
    ) -> None:
        self._extender = extender
        self._give_away = give_away
        self._holds = holds
        self._over = over
        self._requests = Requests()
        self._call = 0
        """The number of the one that the extender is to answer; 0 when there is none."""
        self._early = bytearray()
        """What came before that answer. It is read so that the end of the connection is seen: a
        Bind call that is held must be given up then. Only a client that sends very much goes
        unread."""
        self._lags = False
        """Whether the client does not take its answers: nothing more is read then until it does."""
        self._is_there = self._leaves = self._ends = False
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._part: float | None = None
        """When the first byte came of a call that is not whole."""
        self.has_asked = False
        """Whether a whole call has come."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there, a turn of the loop after it was accepted."""
        self._transport = cast("asyncio.Transport", transport)
        self._is_there = True
        if self._ends:
            transport.close()

    def end_if_idle(self) -> None:
        """End the connection when nothing is awaited, and it was silent for long or all is said."""
        if self._call or not self._is_there:
            return
        now = self._loop.time()
        is_slow = self._part is not None and self._part < now - REQUEST_S
        if is_slow or self._last < now - KEEP_ALIVE_S:
            self._transport.abort()

    @property
    def can_end(self) -> bool:
        """Whether the connection is there and no answer is awaited on it."""
        return self._is_there and not self._call

    @property
    def since(self) -> float:
        """When the client's unfinished call began, else when it last sent or got something."""
        return self._last if self._part is None else self._part

    def end_now(self) -> None:
        """End the connection to make place for another one."""
        self._transport.abort()

    def end_soon(self) -> None:
        """End the connection, after the answer if one is awaited."""
        self._ends = True
        if self._is_there and not self._call and not self._leaves:
            self._transport.close()

    def end(self) -> None:
        """End the connection, once the client has taken what there is for it."""
        self._ends = True
        if self._is_there:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Answer a whole call, or see to it that the extender does."""
        self._last = self._loop.time()
        if self._call or self._lags:
            self._early += data
            if len(self._early) > COLLECTED:
                self._transport.pause_reading()
            return
        match self._requests.feed(data):
            case Seen.PART:
                if self._part is None:
                    self._part = self._last
                self._holds(self, self._requests.size)
            case Seen.WHOLE:
                self._part = None
                self.has_asked = True
                self._holds(self, 0)
                self._serve()
            case Seen.OTHER:
                self._holds(self, self._requests.size)
                self._leave()

    def _serve(self) -> None:
        requests = self._requests
        verb = _VERBS.get(requests.path)
        if verb is None:
            self._leave()
            return
        answer = self._extender.places.answer(requests.body) if verb == _FILTER else None
        if answer is None:
            self._call = self._extender.ask(self, verb, requests.body)
        else:
            self._write(HTTPStatus.OK, answer)

    def answered(self, status: int, body: bytes) -> None:
        """The extender has the answer."""
        self._last = self._loop.time()
        self._call = 0
        self._write(status, body)
        if self._ends:
            self._transport.close()
        elif not self._lags:
            self._go_on()

    def pause_writing(self) -> None:
        """Answers pile up."""
        self._lags = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The bytes that were written were taken."""
        self._last = self._loop.time()
        self._lags = False
        if not self._call and not self._leaves and not self._transport.is_closing():
            self._go_on()

    def _go_on(self) -> None:
        """Read on, what came early first."""
        self._transport.resume_reading()
        if self._early:
            early, self._early = bytes(self._early), bytearray()
            self.data_received(early)

    def _write(self, status: int, body: bytes) -> None:
        if self._transport.is_closing():
            return
        kind = _JSON if status == HTTPStatus.OK else _TEXT
        last = _LAST if self._ends else b""
        self._transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-length: %d\r\ncontent-type: %b\r\n%b\r\n%b"
            % (status, _PHRASES[status], len(body), kind, last, body)
        )

    def _leave(self) -> None:
        """Be the extender's, once the answers so far have left."""
        if not self._leaves:
            self._leaves = True
            self._transport.pause_reading()
        if self._transport.is_closing():
            return
        number = self._transport.get_extra_info("socket").fileno()
        try:
            left = not self._transport.get_write_buffer_size() and self._give_away(
                number, self._requests.raw
            )
        except OSError:
            left = True
        if left:
            self._transport.close()
        else:
            self._loop.call_later(AGAIN_S, self._leave)

    def connection_lost(self, _error: Exception | None) -> None:
        """The client is gone: what it waits for is not wanted any more."""
        if self._call:
            self._extender.give_up(self._call)
        self._over(self)
