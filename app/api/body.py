"""Reading request bodies within the limit, and answering JSON."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from fastapi import Request, Response
from starlette.exceptions import HTTPException

from app.kit.shortening import shortened
from app.model.viewer import Viewer
from app.service.telling.hiding import hidden_in

JSON = "application/json"

MAX_BODY = 32 * 1024 * 1024
"""Bytes; a Filter call with 5,000 full node objects has about 20 MiB."""

MAX_QUESTION = 2 * 1024 * 1024
"""Bytes of a question of a reader: about as much as one object of the API server."""

_LONGEST_REASON = 500
"""Characters; what was sent is quoted in reasons."""

_encode = msgspec.json.Encoder(enc_hook=str).encode


class BadRequest(Exception):
    """The request cannot be served as it is; ``status`` is the HTTP code, the text one line."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


async def read_body(request: Request, *, most: int | None = None) -> bytes:
    """The whole body; BadRequest 413 as soon as it exceeds ``most`` bytes (None: `MAX_BODY`)."""
    most = MAX_BODY if most is None else most
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > most:
        raise _too_large(int(announced), most)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large(size, most)
        parts.append(part)
    return b"".join(parts)


def _too_large(size: int, most: int) -> BadRequest:
    return BadRequest(f"body of {size} bytes is over the limit of {most}", status=413)


def json_for(viewer: Viewer, value: Any, *, namespaces: Collection[str]) -> Response:
    """An answer as :func:`json_value`; for a tenant without names of other ``namespaces``."""
    if viewer.namespace is not None:
        value = hidden_in(value, own=viewer.namespace, namespaces=namespaces)
    return json_value(value)


def json_bytes(body: bytes) -> Response:
    """An answer that is encoded already."""
    return Response(body, media_type=JSON)


def json_value(value: Any) -> Response:
    """An answer made of dataclasses, mappings and numbers."""
    return Response(json_text(value), media_type=JSON)


def json_text(value: Any) -> bytes:
    """JSON of dataclasses, mappings and numbers."""
    return _encode(value)


def refusals(why: Mapping[int | str, str]) -> dict[int | str, dict[str, Any]]:
    """What ``/openapi.json`` says of refusals, by status: one line of plain text."""
    content = {"text/plain": {"schema": {"type": "string"}}}
    return {status: {"description": text, "content": content} for status, text in why.items()}


async def refuse(_request: Request, error: Exception) -> Response:
    """BadRequest as plain text, one line of bounded length whatever was sent."""
    status = error.status if isinstance(error, BadRequest) else 400
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return _one_line(str(error), status=status, headers=headers)


async def refuse_http(_request: Request, error: Exception) -> Response:
    """No such route or method, in the same form."""
    if not isinstance(error, HTTPException):
        raise error
    return _one_line(error.detail, status=error.status_code, headers=error.headers)


def _one_line(text: str, *, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(line(text), status, headers=headers, media_type="text/plain")


def line(text: str) -> bytes:
    """One line of bounded length, and its end."""
    return " ".join(shortened(text, _LONGEST_REASON).split()).encode("utf-8", "replace") + b"\n"
