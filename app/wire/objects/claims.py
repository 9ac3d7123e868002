"""What one pod adds to the ``minResources`` of its PodGroup, read from its spec or template.

These are all lines that quotas have for a pod, by the names that they have there, as in Volcano:
admission compares them with the quotas of the namespace before there is a pod, and clients read
them. What nodes have is among them: ``cpu`` beside ``requests.cpu``, ``nvidia.com/gpu`` beside
``requests.nvidia.com/gpu``.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from app.model.amounts import COUNTED_PODS, LIMITS, PODS, REQUESTS
from app.wire.errors import Reader
from app.wire.objects import containers
from app.wire.objects.containers import Containers
from app.wire.objects.shapes import SpecJson

_LIMITED: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""What quotas have lines of limits for."""
_OF_KUBERNETES: Final = "kubernetes.io/"
"""A domain: a resource with it in the name is no extended one, and quotas do not count it."""

_read: Reader[SpecJson] = Reader(SpecJson)


def claim(spec: Mapping[str, Any]) -> dict[str, int]:
    """By name, in base units; raises `DecodeError`."""
    json = _read(msgspec.json.encode(spec))
    inside = Containers(json.containers or [], json.init_containers or [])
    asked = dict(containers.requests(inside, whole=json.resources, overhead=json.overhead))
    limited = containers.limits(inside, whole=json.resources, overhead=json.overhead)
    return {
        **asked,
        **{f"{REQUESTS}{name}": n for name, n in asked.items() if _is_counted(name)},
        **{f"{LIMITS}{name}": n for name, n in limited if name in _LIMITED},
        PODS: 1,
        COUNTED_PODS: 1,
    }


def _is_counted(name: str) -> bool:
    """Whether quotas have a line for requests of it."""
    return name != PODS and _OF_KUBERNETES not in name
