"""The terms that placed pods carry, found by the labels that they look for.

In a cluster of many applications, thousands of different terms each name a label that few pods
have: of nearly all it is known without a look that they do not select a given pod.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from operator import is_

from app.core.placement.sieve import named_by
from app.model.placed_pods import Codes
from app.model.resources import Mask
from app.model.shape import PodShape, PodTerm


class Side(Enum):
    """Which of a pod's own terms a question looks at."""

    REPELS = "required anti-affinity"
    ATTRACTS = "required affinity (1 each) and preferred terms (their weights)"

    def has_terms(self, shape: PodShape) -> bool:
        """Whether ``shape`` has any term on this side."""
        if self is Side.REPELS:
            return bool(shape.pod_anti_affinity)
        return bool(shape.pod_affinity or shape.preferred_pods)

    def terms(self, shape: PodShape) -> Sequence[tuple[int, PodTerm]]:
        """The weighted terms of ``shape`` on this side."""
        if self is Side.REPELS:
            return [(1, term) for term in shape.pod_anti_affinity]
        return [(1, term) for term in shape.pod_affinity] + list(shape.preferred_pods)


class TermIndex:
    """The different shapes that carry terms, by code; it only grows."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.shapes: list[PodShape] = []
        self._naming: dict[tuple[str, str], list[int]] = {}
        self._naming_none: list[int] = []
        self._with_key: dict[str, list[int]] = {}

    def covers(self, shapes: Sequence[PodShape]) -> bool:
        """Whether the index is about ``shapes``, or can be when the last of them are added."""
        return len(self.shapes) <= len(shapes) and all(map(is_, self.shapes, shapes))

    def add(self, shapes: Iterable[PodShape]) -> None:
        """Add ``shapes`` under the next codes."""
        for code, shape in enumerate(shapes, start=len(self.shapes)):
            self.shapes.append(shape)
            terms = [term for _, term in self._side.terms(shape)]
            for key in {term.topology_key: None for term in terms}:
                self._with_key.setdefault(key, []).append(code)
            named = named_by(terms)
            if named is None:
                self._naming_none.append(code)
            for label in named or ():
                self._naming.setdefault(label, []).append(code)

    def looking_for(self, labels: Iterable[tuple[str, str]]) -> set[int]:
        """The codes of those that may select a pod with ``labels``: no others do."""
        found = set(self._naming_none)
        for label in labels:
            found.update(self._naming.get(label, ()))
        return found

    def keys(self, those: Mask) -> list[str]:
        """The topology keys that ``those`` (by code) have in their terms."""
        return [key for key, codes in self._with_key.items() if those[codes].any()]


class TermBooks:
    """The indexes of the shapes that were asked about last, kept between snapshots."""

    def __init__(self) -> None:
        self._kept: dict[Side, TermIndex] = {}

    def of(self, side: Side, terms: Codes[PodShape]) -> TermIndex:
        """The index of ``terms``; it may have more than these, in codes of no pod."""
        shapes = list(terms.values)
        index = self._kept.get(side)
        if index is None or not index.covers(shapes):
            index = self._kept[side] = TermIndex(side)
        index.add(shapes[len(index.shapes) :])
        return index
