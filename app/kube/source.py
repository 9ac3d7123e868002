"""The streaming connection of one informer: blocking reads that another thread can break off.

Built on the pool of the `kubernetes` package, so proxies, client certificates and its TLS settings
hold here too. The one connection is tracked from the moment it stands, because a read (of headers
or of a body) ends early only when its socket is shut down.
"""

import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Final
from urllib.parse import urlencode

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import BaseHTTPResponse
from urllib3.util import wait_for_read

from app.kube import errors
from app.kube.config import Connection
from app.kube.failures import cause, failure, shown

CONNECT_S: Final = 3.0
PIECE: Final = 1 << 14
"""Bytes that are handed over together, or a chunk of the server's; eight pods or so."""
GATHER_S: Final = 0.005
_AT_HAND_S: Final = 0.0005
"""A chunk that comes sooner was there already: read ahead with the one before."""


class Source:
    """GETs of one thread, at most one at a time; `cancel` may be called by any thread."""

    def __init__(
        self, connection: Connection, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._connection = connection
        self._pause = pause
        self._lock = threading.Lock()
        self._current: HTTPConnection | None = None
        self._cancelled = False
        self._tls = connection.tls()
        self._pool = self._new_pool()

    def read(self, path: str, params: Mapping[str, str], *, silence_s: float) -> bytes:
        """The whole answer."""
        with self._opened(path, params, silence_s) as response:
            return response.read()

    def pieces(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        silence_s: float,
        gather_s: float = GATHER_S,
        begun: Callable[[], object] = lambda: None,
    ) -> Generator[bytes, None, None]:
        """The answer as it arrives; a silence of ``silence_s`` is an error (`errors.Silence`).

        ``begun`` is called once the server has accepted the request, before anything arrives.

        What comes after a lull is handed over at once. What comes sooner after that is given the
        rest of ``gather_s`` to be more: a thread that wakes for each of a thousand events a second
        takes the interpreter from the event loop as often. Not where more has come already: a read
        that takes long is no proof of the contrary, as its thread may have waited for a core.
        """
        with (
            self._opened(path, params, silence_s) as response,
            closing(_chunks(response, path)) as chunks,
        ):
            begun()
            handed_at = -math.inf
            for chunk in chunks:
                waited_s = time.monotonic() - handed_at
                if _AT_HAND_S < waited_s < gather_s and self._has_more() is False:
                    self._pause(gather_s - waited_s)
                piece = [chunk]
                try:
                    piece.extend(self._at_hand(chunks, space=PIECE - len(chunk)))
                finally:  # what came before a failure counts
                    yield b"".join(piece)
                handed_at = time.monotonic()

    def cancel(self) -> None:
        """Break off the request in progress, and refuse all later ones."""
        with self._lock:
            self._cancelled = True
            self._shut_down()

    def close(self) -> None:
        """Give the connection back; only when no request is in progress."""
        self._pool.clear()

    @contextmanager
    def _opened(
        self, path: str, params: Mapping[str, str], silence_s: float
    ) -> Iterator[BaseHTTPResponse]:
        if self._cancelled:
            raise errors.Transport("cancelled", sent=False)
        response = None
        try:
            response = self._request(path, params, silence_s)
            if response.status >= 300:
                raise errors.from_answer(response.status, response.read(), response.headers)
            yield response
        except errors.ConfigError as error:
            raise errors.Unauthorized(str(error)) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            request = f"GET {shown(self._connection.host)}{path}"
            raise failure(
                error, request=request, proxy=self._connection.proxy, sent=True
            ) from error
        finally:
            if response is not None:
                # What was not read to its end cannot be used for another request.
                if not response.closed:
                    response.close()
                response.release_conn()

    def _request(self, path: str, params: Mapping[str, str], silence_s: float) -> BaseHTTPResponse:
        login = self._connection.headers()
        response = self._fresh_pool().request(
            "GET",
            f"{self._connection.host}{path}?{urlencode(params)}",
            headers={"accept": "application/json", **login},
            preload_content=False,
            redirect=False,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_S, read=silence_s),
        )
        if response.status == 401:
            self._connection.refused(login)
        return response

    def _fresh_pool(self) -> urllib3.PoolManager:
        """The pool, without connections under a certificate that is replaced."""
        tls = self._connection.tls()
        if tls is not self._tls:
            self._pool.clear()
            self._pool, self._tls = self._new_pool(), tls
        return self._pool

    def _new_pool(self) -> urllib3.PoolManager:
        pool = self._connection.pool()
        pool.pool_classes_by_scheme = _tracking_pools(self._track)
        return pool

    def _track(self, connection: HTTPConnection) -> None:
        with self._lock:
            self._current = connection
            if self._cancelled:
                self._shut_down()

    def _at_hand(self, chunks: Iterator[bytes], *, space: int) -> Iterator[bytes]:
        """What more there is without waiting for it, until ``space`` bytes are full."""
        while space > 0 and self._has_more() and (chunk := next(chunks, b"")):
            space -= len(chunk)
            yield chunk

    def _has_more(self) -> bool | None:
        """Whether more has come than was read of the socket; None where that cannot be seen.

        The socket is hidden, for one, behind a proxy that is spoken to in TLS itself.
        """
        sock = self._socket()
        if not isinstance(sock, socket.socket):
            return None
        decrypted = sock.pending() if isinstance(sock, ssl.SSLSocket) else 0
        return decrypted > 0 or wait_for_read(sock, timeout=0.0)

    def _socket(self) -> socket.socket | None:
        return self._current.sock if self._current is not None else None

    def _shut_down(self) -> None:
        sock = self._socket()
        if sock is not None:
            with suppress(OSError):
                # Not SSLSocket's own, which would pull the TLS state from under the reader.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _chunks(response: BaseHTTPResponse, path: str) -> Generator[bytes, None, None]:
    """The body as it comes: an event of a watch is a chunk."""
    try:
        if response.chunked:
            yield from response.read_chunked()
        else:
            yield from iter(partial(response.read1, PIECE), b"")
    except urllib3.exceptions.ReadTimeoutError as error:
        raise errors.Silence(f"GET {path}: {cause(error)}", sent=True) from error


def _tracking_pools(
    track: Callable[[HTTPConnection], None],
) -> dict[str, type[HTTPConnectionPool]]:
    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            track(self)

    class Tls(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            track(self)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = Tls

    return {"http": PlainPool, "https": TlsPool}
