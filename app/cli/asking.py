"""Questions to the extender over HTTP, whose answer is a JSON object."""

import os
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import msgspec

from app.cli.endings import Code, CommandFailed
from app.kube.web_url import is_loopback

Answer = Mapping[str, Any]

TOKEN: Final = "PUMICE_EXTENDER_TOKEN"
TOKEN_FILE: Final = "PUMICE_EXTENDER_TOKEN_FILE"
"""What is shown to an extender that is not on this machine: the token, or where it is."""

_DEADLINE_S: Final = 30.0
_FILE_DEADLINE_S: Final = 300.0
"""For the next piece of a long answer, which may have to be made first."""
_LONGEST: Final = 500
_PIECE: Final = 65_536
_CODES: Final = {
    400: Code.USAGE,
    401: Code.REFUSED,
    403: Code.REFUSED,
    404: Code.NOT_FOUND,
    409: Code.REFUSED,
    422: Code.REFUSED,
}
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def require(url: str) -> str:
    """The address without its last slash; CommandFailed where none is given."""
    if not url:
        why = "say where the extender answers: --extender-url or PUMICE_EXTENDER_URL"
        raise CommandFailed(Code.USAGE, why)
    return url.rstrip("/")


def _authorization() -> Mapping[str, str]:
    """The token of the environment, if there is one; CommandFailed where its file is unreadable.

    A file is for tokens that are renewed, as those of service accounts are.
    """
    token, path = os.environ.get(TOKEN, ""), os.environ.get(TOKEN_FILE, "")
    if path and not token:
        try:
            token = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise CommandFailed(Code.USAGE, f"{TOKEN_FILE}: {path}: {error}") from error
    if not (token.isascii() and token.isprintable()):
        raise CommandFailed(Code.USAGE, f"{path or TOKEN}: this is no token")
    return {"authorization": f"Bearer {token}"} if token else {}


class _NoRedirects(HTTPRedirectHandler):
    """A redirection is an answer as any other: the token is for this address only."""

    def redirect_request(self, *_: Any) -> None:
        """None: it is not followed."""


def ask_extender(
    url: str,
    path: str,
    *,
    params: Mapping[str, str] | None = None,
    question: Mapping[str, Any] | None = None,
    deadline_s: float = _DEADLINE_S,
) -> Answer:
    """The answer to a GET, or where there is a ``question`` to a POST of that.

    CommandFailed when the extender gives none, with its words.
    """
    body = None if question is None else msgspec.json.encode(question)
    answer = b"".join(_chunks(url, path, params or {}, body=body, deadline_s=deadline_s))
    try:
        return _decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _silent(url, error) from error


def lines_of(url: str, path: str, *, params: Mapping[str, str]) -> Iterator[str]:
    """The lines of an answer to a GET as they come; CommandFailed when the extender gives none."""
    left = b""
    for chunk in _chunks(url, path, params):
        *lines, left = (left + chunk).split(b"\n")
        yield from (line.decode() for line in lines)
    if left:
        yield left.decode()


def content_of(url: str, path: str) -> bytes:
    """The whole answer to a GET as it is; CommandFailed when the extender gives none."""
    return b"".join(_chunks(url, path, {}))


def _chunks(
    url: str,
    path: str,
    params: Mapping[str, str],
    *,
    body: bytes | None = None,
    deadline_s: float = _FILE_DEADLINE_S,
) -> Iterator[bytes]:
    headers = {"Content-Type": "application/json", **_authorization()}
    query = f"?{urlencode(params)}" if params else ""
    try:
        if not url.startswith(("http://", "https://")):
            raise ValueError("its address begins neither with http:// nor with https://")
        proxies = ProxyHandler({}) if is_loopback(url) else ProxyHandler()  # of the environment
        asked = Request(f"{url}{path}{query}", data=body, headers=headers)
        with build_opener(proxies, _NoRedirects).open(asked, timeout=deadline_s) as answer:
            while piece := answer.read1(_PIECE):
                yield piece
    except HTTPError as refusal:
        with refusal:
            text = refusal.read(_LONGEST).decode("utf-8", "replace")
        raise CommandFailed(_CODES.get(refusal.code, Code.UNREACHABLE), text) from None
    except (OSError, HTTPException, ValueError) as error:
        raise _silent(url, error) from error


def _silent(url: str, error: Exception) -> CommandFailed:
    return CommandFailed(Code.UNREACHABLE, f"the extender at {url} does not tell: {error}")
