"""Taints against tolerations, decided once per distinct set of taints.

A cluster of thousands of nodes has a handful of taint sets, so nodes are coded by their set.
"""

from collections.abc import Sequence

import numpy as np

from app.core.placement.arrays import FULL_SCORE, Counts
from app.model.node import Node, Taint
from app.model.resources import Mask, Rows, Scores
from app.model.shape import PodShape, Toleration

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
REPELLING = frozenset({NO_SCHEDULE, "NoExecute"})

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
"""The taint that a cordoned node stands for: a pod that tolerates it may go there."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether ``toleration`` covers ``taint``."""
    return (
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (toleration.exists or toleration.value == taint.value)
    )


def tolerated(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Whether any of ``tolerations`` covers ``taint``."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def bears_cordon(shape: PodShape) -> bool:
    """Whether a pod of ``shape`` may go to a cordoned node, as those of DaemonSets may."""
    return tolerated(shape.tolerations, UNSCHEDULABLE)


class TaintIndex:
    """Answers for the nodes it was built on, in table order."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._sets: list[tuple[Taint, ...]] = []
        known: dict[tuple[Taint, ...], int] = {}
        codes: list[int] = []
        for node in nodes:
            code = known.setdefault(node.taints, len(known))
            if code == len(self._sets):
                self._sets.append(node.taints)
            codes.append(code)
        self._codes: Rows = np.array(codes, dtype=np.intp)

    def tolerated(self, tolerations: Sequence[Toleration]) -> Mask | None:
        """The nodes none of whose repelling taints is untolerated; None: all of them."""
        if not any(taint.effect in REPELLING for taints in self._sets for taint in taints):
            return None
        free = [first_repelling(taints, tolerations) is None for taints in self._sets]
        return np.array(free, dtype=np.bool_).take(self._codes)

    def repelling(self, tolerations: Sequence[Toleration]) -> tuple[tuple[Taint, Mask], ...]:
        """The first untolerated repelling taint of each repelled node, with its nodes."""
        first = [first_repelling(taints, tolerations) for taints in self._sets]
        distinct = dict.fromkeys(taint for taint in first if taint is not None)
        return tuple(
            (taint, np.array([other == taint for other in first]).take(self._codes))
            for taint in distinct
        )

    def avoided(self, tolerations: Sequence[Toleration], *, among: Mask) -> Scores | None:
        """100 without untolerated soft taints, 0 for most of them in ``among``; None: all equal."""
        if not any(t.effect == PREFER_NO_SCHEDULE for taints in self._sets for t in taints):
            return None
        avoid = [
            sum(t.effect == PREFER_NO_SCHEDULE and not tolerated(tolerations, t) for t in taints)
            for taints in self._sets
        ]
        counts: Counts = np.array(avoid, dtype=np.int64).take(self._codes)
        worst = counts.max(where=among, initial=0)
        return FULL_SCORE - counts * (FULL_SCORE / worst) if worst else None


def first_repelling(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first of ``taints`` that repels a pod with ``tolerations``."""
    for taint in taints:
        if taint.effect in REPELLING and not tolerated(tolerations, taint):
            return taint
    return None
