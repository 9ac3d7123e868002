"""What a certificate tells of nodes and queues, and the bounds that follow from that alone.

``N`` nodes, ``R`` resources of the axis; pods are told by their positions in ``snapshot.running``.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from app.core.ledger import Ledger
from app.core.policy import QueueShare, QueueShares
from app.core.victims.bounds import places_on
from app.core.victims.problem import Wanted
from app.model.amounts import UNLIMITED
from app.model.gang import Gang
from app.model.ids import NO_QUEUE, ROOT_QUEUE, QueueName
from app.model.resources import PODS_COLUMN, Mask, Matrix, Vector
from app.model.running import Running


class ExceededBound(NamedTuple):
    """The places ``need`` more than they ``have``: see :mod:`app.core.victims.certificate`."""

    bound: str
    of: str
    resource: str
    have: int
    need: int


class NodeFacts:
    """The nodes of the ``rows`` one by one, and all others as sums.

    ``room`` is the future idle room of all nodes before any victim goes, shape ``(N, R)``.
    """

    def __init__(
        self, running: Running, room: Matrix, wanted: Sequence[Wanted], rows: Sequence[int]
    ) -> None:
        self.rows = rows
        self._running = running
        self._room = room
        self._wanted = wanted
        self._position = {row: at for at, row in enumerate(rows)}
        self._others: Mask = np.ones(len(room), dtype=np.bool_)
        self._others[list(rows)] = False

    @cached_property
    def places_elsewhere(self) -> list[int]:
        """How many members of each shape all other nodes have room for."""
        return [int(places_on(self._room, each)[self._others].sum()) for each in self._wanted]

    @cached_property
    def free_elsewhere(self) -> Vector:
        """What is free of other nodes that have room for some member, shape ``(R,)``."""
        usable = np.logical_or.reduce([places_on(self._room, each) > 0 for each in self._wanted])
        free: Vector = np.maximum(self._room[usable & self._others], 0).sum(axis=0)
        return free

    def free_without(self, gone: Iterable[int]) -> Matrix:
        """What is free of the ``rows`` once these pods are gone, shape ``(len(rows), R)``."""
        free = self._room[list(self.rows)]
        self._add(free, gone, 1)
        return free

    def with_pods(self, free: Matrix, pods: Iterable[int]) -> Matrix:
        """The free room ``free`` when these pods stay."""
        less = free.copy()
        self._add(less, pods, -1)
        return less

    def _add(self, free: Matrix, pods: Iterable[int], sign: int) -> None:
        for at in pods:
            mine = self._position.get(int(self._running.nodes[at]))
            if mine is not None:
                free[mine] += sign * self._running.requests[at]

    def exceeded(self, free: Matrix, axis: Sequence[str]) -> Iterator[ExceededBound]:
        """The bounds on places and sums that are exceeded when so much of the ``rows`` is free."""
        usable = np.zeros(len(free), dtype=np.bool_)
        asked = np.zeros(free.shape[1], dtype=np.int64)
        for at, each in enumerate(self._wanted):
            mask = each.mask[list(self.rows)]
            here = places_on(free, Wanted(mask, each.request, each.count, each.per_node))
            usable |= here > 0
            asked += each.request * each.count
            have = int(here.sum()) + self.places_elsewhere[at]
            if have < each.count:
                yield ExceededBound("members", str(at), "", have, each.count)
        there = np.maximum(free[usable], 0).sum(axis=0) + self.free_elsewhere
        for r in np.flatnonzero(there < asked).tolist():
            yield ExceededBound("sum", "", axis[r], int(there[r]), int(asked[r]))


class QueueFacts:
    """What queues hold before and after, and what they may hold.

    ``queue_shares`` None: no plugin shares the cluster. ``to_keep``, shape ``(R,)``, is the limit
    that the queue of the preemptor is to keep whatever is asked; no other queue has one then.
    """

    def __init__(
        self,
        ledger: Ledger,
        queue_shares: QueueShares | None,
        *,
        preemptor: Gang,
        to_keep: Vector | None = None,
    ) -> None:
        self._to_keep = to_keep
        self._ledger = ledger
        self._queue_shares = queue_shares
        self._running = ledger.snapshot.running
        self._preemptor = preemptor
        mine = self.standing(preemptor.queue)
        self.tree = mine is not None and mine.with_children
        self.ancestors = 0 if mine is None else mine.ancestors

    def standing(self, queue: QueueName) -> QueueShare | None:
        """What a plugin says of ``queue``; None: nothing."""
        try:
            return None if self._queue_shares is None else self._queue_shares(queue)
        except KeyError:
            return None

    def line(self, queue: QueueName) -> tuple[QueueName, ...]:
        """The queues for which counts what is in ``queue``."""
        return (self._ledger.path(queue) or (queue,)) if self.tree else (queue,)

    def parent(self, queue: QueueName) -> QueueName:
        """The queue above; empty: there is none."""
        about = self._ledger.snapshot.queues.get(queue)
        if about is None or queue == ROOT_QUEUE:
            return NO_QUEUE
        above = about.parent or ROOT_QUEUE
        return above if above in self._ledger.snapshot.queues else NO_QUEUE

    def limit(self, queue: QueueName) -> Vector:
        """The most that it may hold, shape ``(R,)``; ``UNLIMITED`` where there is no limit."""
        if self._to_keep is not None and queue == self._preemptor.queue:
            return self._to_keep
        standing = self.standing(queue)
        if standing is None or self._to_keep is not None:
            return np.full(len(self._ledger.snapshot.axis), UNLIMITED, dtype=np.int64)
        limit = standing.real_capability.copy()
        limit[PODS_COLUMN] = UNLIMITED
        return limit

    def before(self, queue: QueueName) -> Vector:
        """What the queue holds before, shape ``(R,)``."""
        account = self._ledger.queues().get(queue)
        if account is None:
            return np.zeros(len(self._ledger.snapshot.axis), dtype=np.int64)
        return account.tree_allocated if self.tree else account.allocated

    def held(self, queue: QueueName, gone: Iterable[int]) -> Vector:
        """What the queue holds once these pods are gone, without the places, shape ``(R,)``."""
        held, gangs = self.before(queue).copy(), self._ledger.snapshot.gangs
        for at in gone:
            gang = gangs[self._running.gangs[at]]
            if self._running.counted[at] and queue in self.line(gang.queue):
                held -= self._running.requests[at]
        return held

    def held_by_line(self, gone: Iterable[int]) -> Mapping[QueueName, Vector]:
        """What all queues hold for which the places count, once these pods are gone."""
        return {queue: self.held(queue, gone) for queue in self.line(self._preemptor.queue)}

    def exceeded(
        self, held: Mapping[QueueName, Vector], staying: Collection[int], asked: Vector
    ) -> Iterator[ExceededBound]:
        """The limits that the places exceed where so much is ``held``, and by these pods too."""
        for queue, rest in held.items():
            back = self.before(queue) - self.held(queue, staying)
            left = self.limit(queue) - rest - back
            short = left < asked
            if self._to_keep is None:
                short &= asked > 0
            for r in np.flatnonzero(short).tolist():
                name = self._ledger.snapshot.axis.names[r]
                yield ExceededBound("queue", queue, name, int(left[r]), int(asked[r]))
