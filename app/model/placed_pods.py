"""The pods of a snapshot, and the room kept for some, as rules about other pods see them.

There are tens of thousands of them and a rule asks about all at once, so they are told column by
column. What no rule can ask about is left out: of labels, keys that no rule looks at; of shapes,
all but the rules of their own.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.model.shape import PodShape

NONE = -1
"""The code of those that have no value; it indexes the last entry of an array that is one longer
than there are values."""

NO_LABELS: Mapping[str, str] = {}

Rows = NDArray[np.intp]

V = TypeVar("V", bound=Hashable)


def frozen(rows: Sequence[int]) -> Rows:
    """A read-only array of ``rows``: snapshots share it."""
    array = np.array(rows, dtype=np.intp)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Codes(Generic[V]):
    """One column: the code of each one's value, or ``NONE``. ``values`` are in order of codes."""

    codes: Rows
    values: Mapping[V, int]

    @classmethod
    def of(cls, found: Sequence[V | None]) -> "Codes[V]":
        """The column of those whose values are ``found``."""
        different = dict.fromkeys(value for value in found if value is not None)
        values = {value: code for code, value in enumerate(different)}
        codes = [NONE if value is None else values[value] for value in found]
        return cls(frozen(codes), values)

    @property
    def present(self) -> NDArray[np.bool_]:
        """The mask of entries that have a value."""
        mask: NDArray[np.bool_] = self.codes != NONE
        return mask


@dataclass(frozen=True, slots=True, eq=False)
class PlacedPods:
    """The places of pods, and what rules see of the pods.

    ``rows`` index the node table; pods that are on none of its nodes have the row after its last,
    and so have entries of no pod. ``homes`` are the namespaces, ``leaving`` has a value for pods
    that are terminating, ``terms`` are the rules of pods that have some (:func:`terms_of`),
    ``labels`` are columns by key.
    """

    rows: Rows
    homes: Codes[str]
    leaving: Codes[bool]
    terms: Codes[PodShape]
    labels: Mapping[str, Codes[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)


NOBODY = PlacedPods(frozen(()), Codes.of(()), Codes.of(()), Codes.of(()))


def terms_of(shape: PodShape) -> PodShape | None:
    """A shape of nothing but the rules by which ``shape`` attracts and repels; None: it has none.

    Spread constraints are not among them: they are about others and tell others nothing.
    """
    if not (shape.pod_affinity or shape.pod_anti_affinity or shape.preferred_pods):
        return None
    return PodShape(
        requests=(),
        pod_affinity=shape.pod_affinity,
        pod_anti_affinity=shape.pod_anti_affinity,
        preferred_pods=shape.preferred_pods,
    )
