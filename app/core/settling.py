"""Pods that have just got their places are left alone by gangs that were there already.

Such a gang had its turn when the pods got their places, and could not use the room, neither idle
nor by evictions. What makes the room of use to it now is mostly what those pods did to the sums:
borrowed room puts their queue beyond what it deserves. To evict for that at once would end pods
that were placed a moment ago, or others of their queue in their stead, and the gangs would take
turns in evicting one another. So for :data:`SETTLING_S` such pods are no victims of such a gang,
nor does what they hold count as what their queue holds beyond its share. A gang that comes later
finds nothing of this. Priority inside a queue goes before it until the planner has
looked for victims in vain: a gang whose members come late had no turn before that.
"""

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.core.ledger import Ledger
from app.core.victim_rules import Preemptor
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.resources import Mask, Rows, Vector

SETTLING_S: Final = 300.0
"""For how long a pod settles, in seconds."""
START_S: Final = 5.0
"""A pod that started so long after a gang came may have got its place before."""
SETTLING: Final = "that got their places less than 5 minutes ago, while it waited"


class Settling:
    """The pods that settle on one ledger; ``now`` is seconds since the epoch."""

    def __init__(self, ledger: Ledger, *, now: float) -> None:
        self._ledger = ledger
        self._since = now - SETTLING_S
        self._held: dict[tuple[int, QueueName], Vector] = {}

    def number(self, gang: Gang) -> int:
        """Of how many pods ``gang`` saw how they got their places; these are the latest ones."""
        return self._since_then(gang.created + START_S) if gang.created > 0 else 0

    def refused_before(self, gang: Gang) -> int:
        """How many pods got their places since no eviction gave ``gang`` room; the latest ones."""
        return self._since_then(gang.refused_since) if gang.refused_since > 0 else 0

    def spared(self, preemptor: Preemptor, rows: Rows) -> Mask:
        """Which pods at ``rows`` are not evicted for ``preemptor``, shape ``(C,)``.

        In its queue those of lower priority are, unless they came since no eviction helped it.
        """
        gang, snapshot = preemptor.gang, self._ledger.snapshot
        number = self.number(gang)
        if not number:
            return np.zeros(len(rows), dtype=np.bool_)
        spared = self._are_latest(rows, number)
        if preemptor.action.reclaims:
            return spared
        later = self._are_latest(rows, self.refused_before(gang))
        for at in np.flatnonzero(spared).tolist():
            other = snapshot.gangs.get(snapshot.running.gangs[int(rows[at])])
            keeps = other is not None and (bool(later[at]) or other.priority >= gang.priority)
            spared[at] = keeps and other is not gang
        return spared

    def _are_latest(self, rows: Rows, number: int) -> Mask:
        order, _ = self._lately
        return np.isin(rows, order[len(order) - number :])

    def _since_then(self, moment: float) -> int:
        order, placed = self._lately
        return len(order) - int(np.searchsorted(placed, moment, side="left"))

    def held(self, gang: Gang, queue: QueueName) -> Vector | int:
        """What pods of ``queue`` and below hold that settle for ``gang``, shape ``(R,)``, or 0."""
        number = self.number(gang)
        if not number:
            return 0
        known = self._held.get((number, queue))
        if known is None:
            known = self._held[number, queue] = self._sum(number, queue)
        return known

    def _sum(self, number: int, queue: QueueName) -> Vector:
        ledger, running = self._ledger, self._ledger.snapshot.running
        rows = self._lately[0][-number:]
        mine = [queue in ledger.path(name) for name in running.queues.values]
        counts = np.array([*mine, False], dtype=np.bool_)[running.queues.codes[rows]]
        held: Vector = running.requests[rows[counts & running.counted[rows]]].sum(axis=0)
        return held

    @cached_property
    def _lately(self) -> tuple[Rows, NDArray[np.float64]]:
        """The pods that got their places lately, by when, and those times."""
        running = self._ledger.snapshot.running
        placed = np.where(running.started > 0, running.started, running.created)
        rows = np.flatnonzero(placed > max(self._since, 0.0))
        rows = rows[np.argsort(placed[rows], kind="stable")]
        return rows, placed[rows]
