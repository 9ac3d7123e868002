"""What pods of a template ask of a node, with the formula that scheduling uses."""

from collections.abc import Mapping
from typing import Any

import msgspec

from app.wire.errors import DecodeError, Reader
from app.wire.objects.containers import Containers, requests
from app.wire.objects.shapes import SpecJson

_read: Reader[SpecJson] = Reader(SpecJson)


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Amounts by resource; empty where they cannot be read."""
    try:
        json = _read(msgspec.json.encode(spec))
        inside = Containers(json.containers or [], json.init_containers or [])
        return dict(requests(inside, whole=json.resources, overhead=json.overhead))
    except DecodeError:
        return {}


def added(one: Mapping[str, int], other: Mapping[str, int], *, times: int = 1) -> dict[str, int]:
    """``one`` and ``times`` the ``other``."""
    names = one.keys() | other.keys()
    return {name: one.get(name, 0) + times * other.get(name, 0) for name in names}
