"""The page ``/ui``: files of the package, which need no token; what they read does."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from app.api.application import Router
from app.api.body import BadRequest, refusals

FOLDER: Final = "page"
"""Of the package: the files of the page, none in a folder below."""
FIRST: Final = "index.html"

TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
}

HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Nothing is loaded from elsewhere, no script or style is inline, no other page frames this one."""


_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "the file", "content": {"text/html": {"schema": {"type": "string"}}}},
    304: {"description": "the reader has it already"},
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page; ``tag`` changes with its content."""

    content: bytes
    media_type: str
    tag: str


def assets(folder: Traversable | None = None) -> Mapping[str, Asset]:
    """The files by name; a file of a type that is not served is an error."""
    found: dict[str, Asset] = {}
    for file in (folder or files("app") / FOLDER).iterdir():
        media_type = TYPES[file.name.rpartition(".")[2]]
        content = file.read_bytes()
        found[file.name] = Asset(content, media_type, f'"{sha256(content).hexdigest()[:32]}"')
    return found


def page_router() -> APIRouter:
    """``/ui`` and ``/ui/*``."""
    router = Router(prefix="/ui", tags=["page"])
    known = assets()

    @router.get("", response_class=Response, responses=_RESPONSES)
    async def page(request: Request) -> Response:
        """The page."""
        return _answer(known[FIRST], request)

    @router.get(
        "/{file}",
        response_class=Response,
        responses=_RESPONSES | refusals({404: "no such file", "default": "refused; says why"}),
    )
    async def asset(request: Request, file: str) -> Response:
        """A file that the page loads."""
        if file not in known:
            raise BadRequest(f"the page has no file {file}", status=404)
        return _answer(known[file], request)

    return router


def _answer(asset: Asset, request: Request) -> Response:
    headers = {**HEADERS, "ETag": asset.tag}
    shown = request.headers.get("if-none-match", "")
    if asset.tag in (each.strip().removeprefix("W/") for each in shown.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)
