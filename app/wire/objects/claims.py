"""What one pod adds to the ``minResources`` of its PodGroup, read from its spec or template.

What it asks of its node, and its limits by the names that quotas have for them (``limits.cpu``):
admission compares both with the quotas of the namespace before there is a pod. Volcano adds all
that quotas count, by every name (``count/pods``, ``requests.cpu``); the others follow from these.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from app.model.amounts import LIMITS, PODS
from app.wire.errors import Reader
from app.wire.objects import containers
from app.wire.objects.containers import Containers
from app.wire.objects.shapes import SpecJson

_LIMITED: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""What quotas have lines of limits for."""

_read: Reader[SpecJson] = Reader(SpecJson)


def claim(spec: Mapping[str, Any]) -> dict[str, int]:
    """By name, in base units; raises `DecodeError`."""
    json = _read(msgspec.json.encode(spec))
    inside = Containers(json.containers or [], json.init_containers or [])
    asked = containers.requests(inside, whole=json.resources, overhead=json.overhead)
    limited = containers.limits(inside, whole=json.resources, overhead=json.overhead)
    claimed = {name: amount for name, amount in asked if name != PODS}
    return claimed | {f"{LIMITS}{name}": n for name, n in limited if name in _LIMITED}
