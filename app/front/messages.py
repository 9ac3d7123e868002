"""Where calls end, found by llhttp while their bytes are kept."""

from enum import Enum
from typing import Final

import httptools

COLLECTED: Final = 2**20
"""Bytes of a body that are waited for; a Filter call with the names of 5,000 nodes has 0.1 MiB."""

HEAD: Final = 2**16
"""Bytes of a head that are waited for."""

PIECES: Final = 2**12
"""In which a call may come: each takes memory of its own, however small it is."""

_OTHER: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade"})
"""Headers with which a request is not one of kube-scheduler's."""


class Seen(Enum):
    """What has come so far."""

    PART = "part of a call"
    WHOLE = "a call and nothing after it"
    OTHER = "something else"


class Requests:
    """The calls of one connection: POST of HTTP/1.1 with a body of known length, kept alive.

    No more is kept of one than a call has, whatever comes.

    What is something else stays so: nothing is fed any more then.
    """

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._parts: list[bytes] = []
        self._begin()

    def _begin(self) -> None:
        self.path = b""
        self._parts.clear()
        self._body: list[bytes] = []
        self._messages = 0
        self._headed = self._whole = self._other = False
        self._length = -1
        self._size = 0

    @property
    def size(self) -> int:
        """How many bytes of the call there are."""
        return self._size

    @property
    def raw(self) -> bytes:
        """All bytes of the call."""
        return b"".join(self._parts)

    @property
    def body(self) -> bytes:
        """The body of the request."""
        return b"".join(self._body)

    def feed(self, data: bytes) -> Seen:
        """What there is with ``data``; after a whole call the next one begins."""
        if self._whole:
            self._begin()
        self._parts.append(data)
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._other = True
        if self._other or self._messages > 1 or self._is_too_much():
            return Seen.OTHER
        return Seen.WHOLE if self._whole else Seen.PART

    def _is_too_much(self) -> bool:
        return len(self._parts) > PIECES or (not self._headed and self._size > HEAD)

    # --- called by the parser --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self._messages += 1

    def on_url(self, url: bytes) -> None:
        """A piece of the request's target."""
        self.path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of its headers."""
        name = name.lower()
        if name == b"content-length" and value.isdigit():
            self._length = int(value)
        elif name in _OTHER:
            self._other = True

    def on_headers_complete(self) -> None:
        """The head of the request is here."""
        self._headed = True
        parser = self._parser
        is_post = parser.get_method() == b"POST" and parser.get_http_version() == "1.1"
        if not (is_post and parser.should_keep_alive() and 0 <= self._length <= COLLECTED):
            self._other = True

    def on_body(self, body: bytes) -> None:
        """A piece of the request's body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """The request ends."""
        self._whole = True
