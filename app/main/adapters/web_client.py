"""GETs of servers that are not the API server: few, large perhaps, and in no hurry."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import aiohttp

from app.controllers.ports import WebError, WebRequest

T = TypeVar("T")

TIMEOUT_S = 30.0
"""For the whole answer, as in Volcano."""
_CONNECT_S = 10.0
_CHUNK = 1 << 16


class WebClient:
    """A connection each, which is closed again: the next question comes minutes later."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s

    async def get(self, request: WebRequest, read: Callable[[bytes], T]) -> T:
        """What ``read`` makes of the answer; raises `WebError`."""
        return await asyncio.to_thread(read, await self._body(request))

    async def _body(self, request: WebRequest) -> bytes:
        timeout = aiohttp.ClientTimeout(
            total=self._timeout_s, sock_connect=min(_CONNECT_S, self._timeout_s)
        )
        # What is compressed could grow without bound when it is read.
        headers = {**request.headers, "accept-encoding": "identity"}
        with failures_told(self._timeout_s):
            connector = aiohttp.TCPConnector(ssl=_context(request))
            async with (
                aiohttp.ClientSession(
                    connector=connector, timeout=timeout, auto_decompress=False
                ) as session,
                session.get(request.url, headers=headers, allow_redirects=False) as answer,
            ):
                return await read_answer(answer, request.most_bytes)


@contextmanager
def failures_told(timeout_s: float) -> Iterator[None]:
    """Inside, what fails of a request raises `WebError`."""
    try:
        yield
    except TimeoutError as error:
        raise WebError(f"no answer within {timeout_s:g} s") from error
    except aiohttp.ClientConnectorCertificateError as error:
        why = error.certificate_error
        raise WebError(f"the server's certificate is not trusted: {why}") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise WebError(str(error) or type(error).__name__) from error


async def read_answer(answer: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """The body of an answer of status 200; raises `WebError` for others, and for longer ones."""
    if answer.status != 200:
        raise WebError(f"HTTP {answer.status}")
    pieces: list[bytes] = []
    left = most_bytes
    async for piece in answer.content.iter_chunked(_CHUNK):
        left -= len(piece)
        if left < 0:
            raise WebError(f"the answer is longer than {most_bytes} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _context(request: WebRequest) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=request.authority or None)
    except ssl.SSLError as error:
        raise WebError("the authority is no certificate in PEM") from error
    # Authorities of firms are often made without the key identifiers that newer Pythons insist on.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if request.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
