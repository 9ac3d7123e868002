"""Whether an eviction goes downhill: to what queues deserve, and in a queue by priority and share.

Room that was idle before is no matter of the eviction: a queue with a victim below it counts as if
it had held before what it holds after, where that is more.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.model.resources import PODS_COLUMN, Vector
from tests.builders import AXIS
from tests.core.crowds import Crowd, Eviction, Held, Job
from tests.core.fair_shares import Entrant, by_weight

Amounts = NDArray[np.float64]
Distances = dict[tuple[int, str], Amounts]
"""By depth and queue."""


@dataclass(frozen=True)
class Slope:
    """The queues and jobs of ``crowd``; ``deserved`` by queue, shape ``(R,)``.

    ``ancestors``: they may take for a queue that holds more than it deserves.
    """

    crowd: Crowd
    deserved: Mapping[str, Amounts]
    total: Vector
    ancestors: bool

    def falls(self, eviction: Eviction) -> bool:
        """Whether the cluster is nearer to its rules after it."""
        before, after = self._distances(eviction)
        of_leaves = self._of_leaves(before), self._of_leaves(after)
        if not eviction.plan.action.reclaims:
            return of_leaves[1] <= of_leaves[0] and self._falls_inside(eviction)
        if of_leaves[1] < of_leaves[0]:
            return True
        return self.ancestors and self._by_depth(after) < self._by_depth(before)

    def _falls_inside(self, eviction: Eviction) -> bool:
        """Whether jobs of higher priority have more, or equals have nearer to equal shares."""
        mine = self.crowd.jobs[eviction.preemptor]
        ranks = {self.crowd.jobs[name].priority for name in eviction.jobs}
        if max(ranks) < mine.priority:
            return True
        if max(ranks) > mine.priority:
            return False
        before, after = (self._shares(held, mine) for held in (eviction.before, eviction.after))
        return after < before

    def _shares(self, held: Held, like: Job) -> list[float]:
        """The shares of jobs of that queue and priority, the largest first."""
        equals = [
            job
            for job in self.crowd.jobs.values()
            if (job.queue, job.priority) == (like.queue, like.priority)
        ]
        has = self.total > 0
        shares = [float((held[job.name][has] / self.total[has]).max()) for job in equals]
        return sorted(shares, reverse=True)

    def _distances(self, eviction: Eviction) -> tuple[Distances, Distances]:
        """What queues hold beyond what they deserve, or have no claim to, before and after."""
        giving = {
            above for name in eviction.jobs for above in self._line(self.crowd.jobs[name].queue)
        }
        taking = set(self._line(self.crowd.jobs[eviction.preemptor].queue))
        before = self._beyond(eviction.before)
        after = self._beyond(eviction.after)
        for key in before.keys() | after.keys():
            if key[1] in giving & taking:
                before[key] = np.maximum(before[key], after[key])
        return before, after

    def _of_leaves(self, found: Distances) -> float:
        leaves = {job.queue for job in self.crowd.jobs.values()}
        return round(sum(float(at.sum()) for (_, name), at in found.items() if name in leaves), 6)

    def _beyond(self, held: Held) -> Distances:
        """Per queue of a depth: shares of the cluster, what it has no claim to as one more."""
        sums: defaultdict[tuple[int, str], Amounts] = defaultdict(_nothing)
        unclaimed: defaultdict[tuple[int, str], float] = defaultdict(float)
        for name, amounts in held.items():
            job = self.crowd.jobs[name]
            for depth, queue in enumerate(reversed(self._line(job.queue))):
                sums[depth, queue] = sums[depth, queue] + amounts
                if not self._has_claim(queue, job):
                    unclaimed[depth, queue] += float(self._of_total(amounts).sum())
        found = {}
        for (depth, queue), held_there in sums.items():
            due = self.deserved[queue]
            over: Amounts = np.where(due > 0, np.maximum(held_there - due, 0.0), 0.0)
            found[depth, queue] = np.append(self._of_total(over), unclaimed[depth, queue])
        return found

    def _by_depth(self, found: Distances) -> list[float]:
        """The sums of each depth, the queues below the root first."""
        sums = [0.0] * 3
        for (depth, _), amounts in found.items():
            sums[depth] += float(amounts.sum())
        return [round(each, 6) for each in sums]

    def _of_total(self, amounts: Amounts | Vector) -> Amounts:
        counted: Amounts = np.where(self.total > 0, amounts / np.maximum(self.total, 1), 0.0)
        counted[PODS_COLUMN] = 0.0
        return counted

    def _has_claim(self, queue: str, job: Job) -> bool:
        both = (self.deserved[queue] > 0) & (job.request > 0)
        both[PODS_COLUMN] = False
        return bool(both.any())

    def _line(self, queue: str) -> list[str]:
        parents = {str(each.name): str(each.parent) for each in self.crowd.queues}
        line = [queue]
        while above := parents[line[-1]]:
            line.append(above)
        return line


def _nothing() -> Amounts:
    return np.zeros(len(AXIS))


def slope(crowd: Crowd, *, by_weights: bool, ancestors: bool) -> Slope:
    """What queues deserve, by their weights or by what they say."""
    total = sum(
        (AXIS.vector(node.allocatable) for node in crowd.nodes),
        np.zeros(len(AXIS), dtype=np.int64),
    )
    total[PODS_COLUMN] = 0
    deserved = _poured(crowd, total) if by_weights else _said(crowd, total)
    return Slope(crowd, deserved, total, ancestors)


def _said(crowd: Crowd, total: Vector) -> dict[str, Amounts]:
    is_tree = any(queue.parent for queue in crowd.queues)
    found = {}
    for queue in crowd.queues:
        said = AXIS.vector(queue.deserved).astype(np.float64)
        found[str(queue.name)] = said if is_tree else np.minimum(said, total)
    return found


def _poured(crowd: Crowd, total: Vector) -> dict[str, Amounts]:
    names = [name for name in AXIS.names if name != "pods"]
    there = {name: int(total[AXIS.index[name]]) for name in names}
    asked: dict[str, Vector] = {}
    for job in crowd.jobs.values():
        asked[job.queue] = asked.get(job.queue, 0) + job.request * job.members
    weights = {str(queue.name): queue.weight for queue in crowd.queues}
    entrants = {
        queue: Entrant(
            weights[queue],
            {name: int(amounts[AXIS.index[name]]) for name in names},
            there,
            {},
        )
        for queue, amounts in asked.items()
    }
    poured = by_weight(there, entrants)
    found = {str(queue.name): np.zeros(len(AXIS)) for queue in crowd.queues}
    for queue, amounts in poured.items():
        for name, amount in amounts.items():
            found[queue][AXIS.index[name]] = np.floor(amount + 0.01)
    return found
