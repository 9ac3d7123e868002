"""Questions to the extender over HTTP, whose answer is a JSON object."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

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
    # Only this needs it, and it takes a while to load.
    import httpx2

    try:
        answer = httpx2.request(
            "GET" if question is None else "POST",
            f"{url}{path}",
            params=params or {},
            content=None if question is None else msgspec.json.encode(question),
            headers={"content-type": "application/json", **_authorization()},
            timeout=deadline_s,
            trust_env=not is_loopback(url),  # where proxies stand
        )
        if answer.status_code == httpx2.codes.OK:
            return _decode(answer.content)
    except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.DecodeError, ImportError, ValueError) as e:
        why = f"the extender at {url} does not tell: {e}"
        raise CommandFailed(Code.UNREACHABLE, why) from e
    code = _CODES.get(answer.status_code, Code.UNREACHABLE)
    raise CommandFailed(code, answer.text[:_LONGEST])


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


def _chunks(url: str, path: str, params: Mapping[str, str]) -> Iterator[bytes]:
    import httpx2

    try:
        with httpx2.stream(
            "GET",
            f"{url}{path}",
            params=params,
            headers=_authorization(),
            timeout=_FILE_DEADLINE_S,
            trust_env=not is_loopback(url),
        ) as answer:
            if answer.status_code == httpx2.codes.OK:
                yield from answer.iter_bytes()
                return
            answer.read()
    except (httpx2.HTTPError, httpx2.InvalidURL, ImportError, ValueError) as e:
        why = f"the extender at {url} does not tell: {e}"
        raise CommandFailed(Code.UNREACHABLE, why) from e
    raise CommandFailed(_CODES.get(answer.status_code, Code.UNREACHABLE), answer.text[:_LONGEST])
