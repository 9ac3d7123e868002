"""Why a request got no whole answer, in words of our own.

Both clients wrap what the operating system or TLS says in exceptions of theirs, several deep, with
names of functions and objects in the text. What lies at the bottom is what a user can act upon; so
are the server and the proxy that were asked, without the passwords that their URLs may hold.
"""

import http.client
import os
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import urllib3

from app.kube import errors

_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")
_DEEPEST: Final = 10
_CLOSED: Final = "the connection was closed before an answer came"
_TLS: Final = {"WRONG_VERSION_NUMBER": "what answers does not speak TLS"}


def failure(
    error: BaseException, *, request: str, proxy: str | None, sent: bool
) -> errors.Transport:
    """The error for a request (``GET https://host/path``) that ended so."""
    through = f" through the proxy {shown(proxy)}" if proxy else ""
    return errors.Transport(f"{request}{through}: {cause(error)}", sent=sent)


def shown(url: str) -> str:
    """A URL as it may be told: without a user and a password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def cause(error: BaseException) -> str:
    """The error at the bottom of ``error``."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers {error.status} {error.message}"
    said = _bottom(list(_chain(error)))
    if isinstance(error, (aiohttp.ClientProxyConnectionError, urllib3.exceptions.ProxyError)):
        return f"the proxy cannot be reached: {said}"
    return said


def _bottom(chain: list[BaseException]) -> str:
    found = _untrusted(chain[0])
    if found is not None:
        return f"the certificate is not trusted: {found.verify_message}"
    for link in reversed(chain):
        said = _said(link)
        if said:
            return said
    return " ".join(str(chain[0]).split()) or type(chain[0]).__name__


def _said(link: BaseException) -> str:
    if isinstance(link, ssl.SSLError) and link.reason:
        return _TLS.get(link.reason) or f"TLS fails: {link.reason.replace('_', ' ').lower()}"
    if isinstance(link, socket.gaierror):
        return "the name of the host cannot be resolved"
    if isinstance(link, (TimeoutError, urllib3.exceptions.TimeoutError)):
        return "no answer in time"
    if isinstance(link, OSError):
        return _of_system(link)
    if isinstance(link, aiohttp.ServerDisconnectedError):
        return _CLOSED
    if isinstance(link, (aiohttp.ClientPayloadError, http.client.IncompleteRead)):
        return "the answer broke off"
    if isinstance(link, (aiohttp.ClientResponseError, http.client.HTTPException)):
        return "the answer is not HTTP"
    return ""


def _of_system(error: OSError) -> str:
    """The words of the operating system; several addresses may have failed, one is told."""
    numbers = [str(error.errno)] if error.errno else _ERRNO.findall(str(error))
    if numbers:
        return os.strerror(int(numbers[0]))
    return _CLOSED if isinstance(error, ConnectionError) else ""


def _untrusted(error: BaseException) -> ssl.SSLCertVerificationError | None:
    links = reversed(list(_chain(error)))  # clients have subclasses of it, that say nothing
    return next((each for each in links if isinstance(each, ssl.SSLCertVerificationError)), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was made of, the deepest last."""
    link: BaseException | None = error
    for _ in range(_DEEPEST):
        if link is None:
            return
        yield link
        link = _inside(link)


def _inside(error: BaseException) -> BaseException | None:
    fields = (getattr(error, name, None) for name in ("certificate_error", "os_error"))
    candidates = (*fields, *reversed(error.args), error.__cause__, error.__context__)
    return next((each for each in candidates if isinstance(each, BaseException)), None)
