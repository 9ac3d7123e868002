"""Whether what a gang was refused for can ever be: *never* or *not yet*.

A request is never met that is more than its limit is in all, whatever of it is free. What the gang
holds already is part of its request while it lacks its minimum. Nodes that are away or cordoned may
come back, so they count in what the cluster has. Nothing is said to be never by a guess at what
members ask for that do not exist.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from app.core.shares.limits import capability_of
from app.model.gang import Gang
from app.model.reason import GUARANTEE, Cause, NearestDomain, Never, Refusal, Shortfall
from app.model.resources import PODS_COLUMN
from app.model.snapshot import Snapshot

_OF_ROOM = frozenset(
    {
        Cause.NOT_ENOUGH_RESOURCES,
        Cause.CLUSTER_OVERUSED,
        Cause.QUEUE_QUOTA,
        Cause.QUEUE_ROOM,
    }
)
"""Causes whose numbers are what a gang asks of resources that nodes have.

Not so :attr:`Cause.QUEUE_OVERUSED`: it tells what all groups of the queue wait for."""


class Judge:
    """Tells *never* from *not yet* for the gangs of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sums: tuple[Sequence[int], Sequence[int]] | None = None
        self.of_domains: dict[Hashable, NearestDomain | None] = {}
        """The largest domain, where none would be large enough, by what is asked for."""

    def judged(self, gang: Gang, refusal: Refusal) -> Refusal:
        """``refusal`` of ``gang`` with what makes it final, if anything does.

        The holders of the rest are then no news, as no end of those helps; nor what is terminating.
        """
        never = refusal.never or next(
            (why for lack in refusal.shortfalls if (why := self._never(gang, refusal.cause, lack))),
            None,
        )
        if never is None:
            return refusal
        kept = tuple(holder for holder in refusal.holders if holder.who.startswith(GUARANTEE))
        lacks = tuple(replace(lack, terminating=0) for lack in refusal.shortfalls)
        return replace(refusal, never=never, holders=kept, shortfalls=lacks)

    def _never(self, gang: Gang, cause: Cause, lack: Shortfall) -> Never | None:
        if cause is Cause.NAMESPACE_QUOTA:
            return Never.NAMESPACE if _exceeds(lack.asked, lack.limit) else None
        position = self._snapshot.axis.index.get(lack.resource)
        if cause not in _OF_ROOM or position is None:
            return None
        is_whole = gang.counts.ready >= gang.min_member
        asked = lack.asked + (0 if is_whole else int(gang.allocated[position]))
        if gang.min_request is not None and is_guess(gang, asked, position):
            asked = int(gang.min_request[position])
        there, away = (sums[position] for sums in self._cluster())
        if asked > there + away:
            is_absent = not there + away and self._snapshot.table.nodes
            return Never.ABSENT if is_absent else Never.CLUSTER
        queue = self._snapshot.queues.get(gang.queue)
        if cause is Cause.QUEUE_QUOTA and _exceeds(asked, lack.limit):
            return Never.QUEUE
        if queue is not None and asked > capability_of(queue, lack.resource):
            return Never.QUEUE
        if cause is Cause.QUEUE_ROOM and lack.limit is not None and asked > lack.limit + away:
            return Never.GUARANTEES
        return None

    def _cluster(self) -> tuple[Sequence[int], Sequence[int]]:
        """What the cluster has by the sums of this cycle, and what else may come back."""
        if self._sums is None:
            total = self._snapshot.total
            away = (self._snapshot.table.sizes().sum(axis=0) - total).clip(min=0)
            self._sums = total.tolist(), away.tolist()
        return self._sums


def is_guess(gang: Gang, asked: int, position: int) -> bool:
    """Whether ``gang`` asks for that amount of a resource only by a guess.

    ``position`` is the resource's on the axis. It is a guess where the amount is more than
    ``minResources`` and members that do not exist are part of it. How many pods these are is known.
    """
    least = gang.min_request
    if least is None or position == PODS_COLUMN or not gang.lacks_members:
        return False
    return asked > int(least[position])


def _exceeds(asked: int, limit: int | None) -> bool:
    return limit is not None and asked > limit
