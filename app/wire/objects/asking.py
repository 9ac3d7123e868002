"""What ``resources`` of a container or of a pod ask for, read from their JSON.

A limit without a request is a request, as the API server has it.
"""

from collections.abc import Container
from typing import Final

from msgspec import Struct

from app.wire import quantity
from app.wire.errors import Bytes, DecodeError, Reader, joined


class _ResourcesJson(Struct, gc=False):
    requests: quantity.QuantityMap | None = None
    limits: quantity.QuantityMap | None = None


_read_resources: Reader[_ResourcesJson | None] = Reader(_ResourcesJson | None)
_read_list: Reader[quantity.QuantityMap | None] = Reader(quantity.QuantityMap | None)

_NO_RESOURCES: Final = _ResourcesJson()


def requested(text: Bytes, at: str, *, beside: Container[str] = ()) -> dict[str, int]:
    """Requests, and limits where neither they nor ``beside`` say anything."""
    limits, requests = limited(text, at), _asked(_resources(text, at).requests, f"{at}.requests")
    return {name: n for name, n in limits.items() if name not in beside} | requests


def limited(text: Bytes, at: str) -> dict[str, int]:
    """Limits."""
    return _asked(_resources(text, at).limits, f"{at}.limits")


def listed(text: Bytes, at: str) -> dict[str, int]:
    """A resource list that stands by itself, as overhead does."""
    return _asked(_read_list(text, at), at) if bytes(text) else {}


def _resources(text: Bytes, at: str) -> _ResourcesJson:
    return (_read_resources(text, at) if bytes(text) else None) or _NO_RESOURCES


def _asked(values: quantity.QuantityMap | None, at: str) -> dict[str, int]:
    found = quantity.read(values, at)
    for name, value in found.items():
        if value < 0:
            raise DecodeError(joined(at, name), "is less than nothing")
    return found
