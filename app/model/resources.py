"""Amounts as vectors on a fixed axis.

A :class:`ResourceAxis` fixes the order of resource names; a vector is an ``int64`` array of shape
``(len(axis),)``, in the units of :mod:`app.model.amounts`. Axes only grow, so a vector on an older
axis is a prefix of one on a newer axis.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.model.amounts import CPU, MEMORY, PODS, Amounts

CPU_COLUMN, MEMORY_COLUMN, PODS_COLUMN = 0, 1, 2
"""Where these are on every axis."""

Vector = NDArray[np.int64]
Matrix = NDArray[np.int64]
Rows = NDArray[np.intp]
"""Rows of the node table."""
Mask = NDArray[np.bool_]
"""True for nodes that are allowed, shape ``(N,)`` unless said otherwise."""
Scores = NDArray[np.float64]
"""One per node, shape ``(N,)`` unless said otherwise."""


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
        """An axis with all ``names``: this one, or a longer one with the new names appended."""
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
