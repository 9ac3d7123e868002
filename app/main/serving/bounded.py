"""What the connections of a port may take of the process: bytes, headers, requests, and time.

A body has its limit where it is read. All bodies that are under way at one port have one too: the
connection ends whose unfinished body began first, which is one that comes slowly. All else of a
request is counted here: what has come since the last piece of a body, so that chunks and trailers
are within the limit too. An Upgrade is not offered: such a request is answered as if it did not ask
for one.
"""

from http import HTTPStatus
from typing import Any, Final

from app.kit.holdings import Holdings
from app.main.serving.one_write import OneWrite

HEAD: Final = 2**16
"""Bytes that may come without being part of a body."""

HEADERS: Final = 128

BODIES: Final = 2**28
"""Bytes of all bodies of one port that are not answered; a large Filter call has 20 MiB."""

PIPELINED: Final = 16
"""Requests that may wait on a connection for the answer of one before; clients in Go send none."""

REQUEST_S: Final = 30.0
"""From the first byte of a request to its last."""

IDLE_S: Final = 120.0
"""For a connection on which no request has begun, and for a client that takes no answer.

Longer than kube-scheduler and the API server keep an idle connection (90 s). They open some ahead
of need, and one that is closed at the moment of its first use costs them that call.
"""

PAUSE_S: Final = 1.0
"""A client may take so long for what the transport keeps, about 50 KB, however large the answer is.

The time beyond that is counted over all of its pauses, which may take `IDLE_S` together.
"""

_VERSIONS: Final = frozenset({"1.0", "1.1"})


class _Refused(Exception):
    """The parser is to stop here."""


class Bounded(OneWrite):
    """A connection that keeps within those limits; its server asks the rest of this class."""

    def __init__(self, *args: Any, bodies: "Holdings[Bounded] | None" = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self._bodies: Holdings[Bounded] = Holdings(most=BODIES) if bodies is None else bodies
        """Those of all connections of the port."""
        self._held = 0
        self.since = self.loop.time()
        """When the connection was opened, or when its last request was over."""
        self.has_asked = False
        """Whether a whole request has come on it."""
        self._opened: float | None = None
        self._stalled: float | None = None
        self._late_s = 0.0
        """By how much the client was too slow in its pauses so far."""
        self._between = 0
        self._moved = False
        self._status = HTTPStatus.BAD_REQUEST

    @property
    def is_established(self) -> bool:
        """Whether the connection counts as one of its server's, or did."""
        return self.transport is not None

    @property
    def is_waited_for(self) -> bool:
        """Whether a whole request is being answered, and its client takes the answer."""
        cycle = self.cycle
        if cycle is None or self._stalled is not None:
            return False
        return bool(self.pipeline) or not (cycle.response_complete or cycle.more_body)

    def is_overdue(self, now: float) -> bool:
        """Whether the client had time enough to ask something, or to take an answer."""
        if self._stalled is not None:
            return now > self._stalled + IDLE_S - self._late_s
        if self.is_waited_for:
            return False
        if self._opened is not None:
            return now > self._opened + REQUEST_S
        return not self.has_asked and now > self.since + IDLE_S

    def end(self) -> None:
        """End the connection, whatever has come or is to be sent; it does not count from now on."""
        self.connections.discard(self)
        self._let_go()
        self.transport.abort()

    # --- called by the transport -----------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Read on, within the limits."""
        self._moved = False
        super().data_received(data)
        self._between = 0 if self._moved else self._between + len(data)
        if self._between > HEAD and not self.transport.is_closing():
            self._status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.send_400_response(self._status.phrase)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._let_go()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes no more for now."""
        self._stalled = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client has taken what there was."""
        if self._stalled is not None:
            paused_s = self.loop.time() - self._stalled
            self._late_s = max(self._late_s + paused_s - PAUSE_S, 0.0)
        self._stalled = None
        super().resume_writing()

    # --- called by the parser --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self._opened = self.loop.time()
        if len(self.pipeline) >= PIPELINED:
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS)
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of its headers, or what follows its body in the form of headers."""
        if len(self.headers) >= HEADERS:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head of the request is here."""
        if self.parser.get_http_version() not in _VERSIONS:
            self._refuse(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        self._moved = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the request's body."""
        self._moved = True
        super().on_body(body)
        if not (self.cycle.response_complete or self.transport.is_closing()):
            self._hold(self._held + len(body))

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._moved = self.has_asked = True
        self._opened = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The request is answered."""
        self.since = self.loop.time()
        super().on_response_complete()
        if self.cycle.response_complete:
            self._let_go()

    # --- what bodies take ------------------------------------------------------------------------

    def _hold(self, size: int) -> None:
        """The bodies on this connection have that many bytes; others may end for them."""
        self._held = size
        self._bodies.hold(self, size)
        while self._bodies.is_too_much:
            next((each for each in self._bodies if not each.is_waited_for), self).end()

    def _let_go(self) -> None:
        self._held = 0
        self._bodies.hold(self, 0)

    # --- what the class above says ---------------------------------------------------------------

    def _refuse(self, status: HTTPStatus) -> None:
        self._status = status
        raise _Refused(status.phrase)

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong, as the last thing on this connection."""
        status = self._status
        text = msg if status is HTTPStatus.BAD_REQUEST else status.phrase
        self.transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: text/plain; charset=utf-8\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%b"
            % (status, status.phrase.encode(), len(text), text.encode())
        )
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """A client may offer an upgrade in every request; nothing is wrong then."""
