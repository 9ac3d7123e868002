"""Resource amounts as integers on a fixed axis.

Units: ``cpu`` in milli-cores, ``memory``, ``ephemeral-storage`` and ``hugepages-*`` in bytes, every
other resource in whole units. With integers Volcano's epsilon of 0.1 (volcano.md §3.1) can only
ever separate equal numbers, so its ``LessEqual`` is the plain integer comparison.

A :class:`ResourceAxis` fixes the order of resource names; a vector is an ``int64`` array of shape
``(len(axis),)``. Axes only grow, so a vector on an older axis is a prefix of one on a newer axis.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

_NATIVE = frozenset({CPU, MEMORY, PODS, "ephemeral-storage"})
_NATIVE_FAMILIES = ("hugepages-", "attachable-volumes-")
LIMITS = "limits."
"""What a quota calls the limits of pods begins so: ``limits.cpu``."""
_OF_QUOTAS = ("count/", "requests.", LIMITS)

CPU_COLUMN, MEMORY_COLUMN, PODS_COLUMN = 0, 1, 2
"""Where these are on every axis."""

Vector = NDArray[np.int64]
Matrix = NDArray[np.int64]
Amounts = tuple[tuple[str, int], ...]
"""Sorted ``(resource, amount)`` pairs: hashable, independent of any axis."""

UNLIMITED = 1 << 60
"""A limit that nothing reaches; small enough that eight of them add up without overflow."""

LARGEST = 1 << 50
"""What one node has, or one group or queue asks for, at most: a pebibyte. Thousands add up."""

LARGEST_POD = 1 << 46
"""What one pod asks for at most: 64 TiB. Every pod of a cluster, and every slot, adds up."""


def amounts(values: Mapping[str, int]) -> Amounts:
    """The canonical form of ``values``: sorted by name, zeros kept (a zero limit is a limit)."""
    return tuple(sorted(values.items()))


@dataclass(frozen=True, slots=True, eq=False)
class ResourceAxis:
    """The order of resource names; ``cpu``, ``memory`` and ``pods`` always come first."""

    names: tuple[str, ...] = (CPU, MEMORY, PODS)
    index: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {name: i for i, name in enumerate(self.names)})

    def __len__(self) -> int:
        return len(self.names)

    def covering(self, names: Iterable[str]) -> "ResourceAxis":
        """This axis if it has all ``names``, else a longer one with the new names appended."""
        missing = sorted({name for name in names if name not in self.index})
        return ResourceAxis(self.names + tuple(missing)) if missing else self

    def vector(self, values: Amounts, *, absent: int = 0) -> Vector:
        """``values`` on this axis, shape ``(R,)``; names off the axis raise ``KeyError``."""
        out = np.empty(len(self.names), dtype=np.int64)
        out.fill(absent)
        for name, amount in values:
            out[self.index[name]] = amount
        return out

    def amounts(self, vector: Vector) -> Amounts:
        """The non-zero entries of ``vector``, by name."""
        return tuple(sorted((n, int(v)) for n, v in zip(self.names, vector, strict=True) if v))


def is_of_nodes(name: str) -> bool:
    """Whether a node can have such a resource.

    Other names only quotas know: ``count/pods``, ``requests.cpu``, ``limits.memory``, ``services``.
    They are no part of what a gang needs (Volcano's ``NewResource`` leaves them out too).
    """
    if name.startswith(_OF_QUOTAS):
        return False
    return "/" in name or name in _NATIVE or name.startswith(_NATIVE_FAMILIES)


def is_best_effort(requests: Amounts) -> bool:
    """True when nothing but ``pods`` is requested."""
    return all(amount == 0 or name == PODS for name, amount in requests)
