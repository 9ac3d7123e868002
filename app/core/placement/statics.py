"""What nodes offer a shape whatever runs on them: the cached half of placement.

:class:`NodeFacts` indexes one generation of the node table; :meth:`NodeFacts.fit` answers for a
shape with a :class:`StaticFit`, kept under exactly the parts of the shape that it depends on, so
that pods that differ only in what they request share one. :class:`ShapeCache` outlives cycles and
starts afresh when the table generation (or the resource axis) changes.

Scores that the stock scheduler normalises over the nodes that pass its filters are normalised here
over the nodes that pass the *static* ones: free room must not re-rank preferences, or no score
could be kept from one placement to the next.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.core.placement.images import ImageIndex
from app.core.placement.placed_pods import PlacedPodIndex
from app.core.placement.selectors import NodeSelectors
from app.core.placement.taints import TaintIndex, bears_cordon
from app.core.placement.terms import TermBooks
from app.core.policy import Predicates, Scoring
from app.model.ids import NodeName
from app.model.reason import Never
from app.model.resources import Mask, Scores
from app.model.shape import NodeTerm, PodShape, Toleration
from app.model.snapshot import NodeTable, Snapshot

KEPT_FITS = 512
"""Shapes remembered per table generation; the oldest goes first (45 KB each at 5,000 nodes)."""


@dataclass(frozen=True, slots=True, eq=False)
class StaticFit:
    """``mask``: nodes that fit; ``score``: the static plugins' weighted sum, None when all zero."""

    mask: Mask
    score: Scores | None


class _FitKey(NamedTuple):
    node_selector: tuple[tuple[str, str], ...]
    required_terms: tuple[NodeTerm, ...] | None
    preferred_terms: tuple[tuple[int, NodeTerm], ...]
    tolerations: tuple[Toleration, ...]
    images: tuple[str, ...]
    predicates: Predicates
    weights: tuple[int, int, int]


class NodeFacts:
    """Indexes over one generation of the node table."""

    def __init__(self, table: NodeTable) -> None:
        self.selectors = NodeSelectors(table.nodes)
        self.taints = TaintIndex(table.nodes)
        self.ready: Mask = np.array([node.ready for node in table.nodes], dtype=np.bool_)
        self.cordoned: Mask = np.array([node.unschedulable for node in table.nodes], dtype=np.bool_)
        self.inverse = _inverse(table)
        self._images = ImageIndex(table.nodes)
        self.never: dict[tuple[PodShape, NodeName, Predicates], Never | None] = {}
        """Why no node could ever take such pods (:mod:`app.core.placement.outlook`)."""
        self._fits: dict[_FitKey, StaticFit] = {}

    def fit(self, shape: PodShape, *, predicates: Predicates, scoring: Scoring) -> StaticFit:
        """Where ``shape`` may go, and what the static plugins think of it."""
        key = _FitKey(
            shape.node_selector,
            shape.required_terms,
            shape.preferred_terms,
            shape.tolerations,
            () if self._images.empty else shape.images,
            predicates,
            (scoring.node_affinity, scoring.taint_toleration, scoring.image_locality),
        )
        fit = self._fits.get(key)
        if fit is None:
            while len(self._fits) >= KEPT_FITS:
                del self._fits[next(iter(self._fits))]
            mask = self._mask(shape, predicates)
            fit = self._fits[key] = StaticFit(mask, self._score(shape, scoring, among=mask))
        return fit

    def barred_by_cordon(self, shape: PodShape) -> Mask | None:
        """Cordoned nodes, when ``shape`` does not tolerate that; None: no node is barred.

        Whatever is configured: kube-scheduler does not let such a pod go there.
        """
        if not self.cordoned.any() or bears_cordon(shape):
            return None
        return self.cordoned

    def _mask(self, shape: PodShape, predicates: Predicates) -> Mask:
        mask = self.ready.copy()
        barred = self.barred_by_cordon(shape)
        if barred is not None:
            mask &= ~barred
        if not predicates.enabled:
            return mask
        for part in (
            self.selectors.required(shape) if predicates.node_affinity else None,
            self.taints.tolerated(shape.tolerations) if predicates.taints else None,
        ):
            if part is not None:
                mask &= part
        return mask

    def _score(self, shape: PodShape, scoring: Scoring, *, among: Mask) -> Scores | None:
        parts: list[tuple[int, Scores | None]] = []
        if scoring.node_affinity:
            preferred = self.selectors.preferred(shape, among=among)
            parts.append((scoring.node_affinity, preferred))
        if scoring.taint_toleration:
            avoided = self.taints.avoided(shape.tolerations, among=among)
            parts.append((scoring.taint_toleration, avoided))
        if scoring.image_locality and not self._images.empty:
            parts.append((scoring.image_locality, self._images.locality(shape.images)))
        total: Scores | None = None
        for weight, part in parts:
            if part is not None:
                total = weight * part if total is None else total + weight * part
        return total


class ShapeCache:
    """Keeps :class:`NodeFacts` between cycles, and the index of placed pods within a snapshot."""

    def __init__(self) -> None:
        self._stamp: tuple[int, int] | None = None
        self._facts: NodeFacts | None = None
        self._snapshot: Snapshot | None = None
        self._placed_pods: PlacedPodIndex | None = None
        self._books = TermBooks()

    def facts(self, table: NodeTable) -> NodeFacts:
        """The facts of ``table``: the kept ones when its generation and axis are the same."""
        stamp = (table.generation, len(table.axis))
        if self._facts is None or self._stamp != stamp:
            self._facts = NodeFacts(table)
            self._stamp = stamp
        return self._facts

    def placed_pods(self, snapshot: Snapshot) -> PlacedPodIndex:
        """The index of the snapshot's placed pods, shared by all ledgers on the same snapshot."""
        kept = self._snapshot
        if (
            self._placed_pods is None
            or kept is None
            or kept.placed_pods is not snapshot.placed_pods
            or kept.namespaces != snapshot.namespaces
            or kept.table is not snapshot.table
        ):
            self._placed_pods = PlacedPodIndex(snapshot, self._books)
            self._snapshot = snapshot
        return self._placed_pods


def _inverse(table: NodeTable) -> Scores:
    """``1 / allocatable`` as ``(R, N)`` with contiguous rows; 0 where there is none."""
    amounts = np.ascontiguousarray(table.allocatable.T, dtype=np.float64)
    inverse = np.zeros_like(amounts)
    np.divide(1.0, amounts, out=inverse, where=amounts > 0)
    return inverse
