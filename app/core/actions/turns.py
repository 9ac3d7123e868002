"""Turns of queues by the configured order, and of a queue's gangs by theirs.

A turn moves its own gang, its own queue and the queue's ancestors, nothing else. Gangs stand in one
heap per queue, with the keys they had when they were put there. Queues are compared as they stand,
so a heap of them stays one only while nothing in it moves: queues with a common ancestor move
together when one of them gets something, and form a heap of their own, of which the first stands
for all in the heap above. What a turn moves is on one way down from the root; it is taken out
before and put back after. All orders are total.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

from app.core.faults import LookingAt
from app.core.points import Opened
from app.core.policy import QueueCompare
from app.model.gang import Gang
from app.model.ids import NO_QUEUE, GroupKey, QueueName

Line = tuple[str, ...]
"""The ancestors of a queue from below the root downwards, itself left out."""


class OfGang(Protocol):
    """Something that belongs to a gang."""

    @property
    def gang(self) -> Gang:
        """The gang."""


T = TypeVar("T", bound=OfGang)


class _Branch:
    """A queue, or a heap of ``below``; ``first`` is the queue whose turn it is there."""

    __slots__ = ("below", "first", "order")

    def __init__(self, order: QueueCompare, first: QueueName = NO_QUEUE) -> None:
        self.order = order
        self.first = first
        self.below: list[_Branch] = []

    def __lt__(self, other: "_Branch") -> bool:
        try:
            return self.order(self.first, other.first) < 0
        except Exception:
            for queue in (self.first, other.first):
                with LookingAt(queue=queue):
                    self.order(queue, queue)
            raise

    def settle(self) -> None:
        """Make a heap of what was collected in ``below``."""
        heapify(self.below)
        self.first = self.below[0].first

    def put_back(self, below: "_Branch") -> None:
        """Let ``below`` take part again."""
        heappush(self.below, below)
        self.first = self.below[0].first


class Turns(Generic[T]):
    """The gangs of all queues; ``queue``, ``take`` or ``drop``, and ``done`` make one turn."""

    def __init__(
        self,
        opened: Opened,
        line: Callable[[QueueName], Line],
        *,
        order: QueueCompare | None = None,
    ) -> None:
        self._key = opened.gang_key
        self._line = line
        self._gangs: dict[QueueName, list[tuple[Any, GroupKey, T]]] = {}
        self._order = order or opened.queue_order
        self._root = _Branch(self._order)
        self._way: list[_Branch] = []

    def add(self, item: T) -> None:
        """Let the gang of ``item`` take part."""
        queue = item.gang.queue
        gangs = self._gangs.get(queue)
        if gangs is None:
            gangs = self._gangs[queue] = []
        heappush(gangs, (self._key(item.gang), item.gang.key, item))

    def queues(self) -> list[QueueName]:
        """The queues that have gangs, by name."""
        return sorted(self._gangs)

    def start(self) -> None:
        """Put the queues in their order, once all gangs are there."""
        branches: dict[Line, _Branch] = {}
        for name in self.queues():
            self._grow(branches, self._line(name)).below.append(_Branch(self._order, name))
        for line in sorted(branches, key=len, reverse=True):
            branches[line].settle()
        self._root = branches.get((), self._root)

    def queue(self) -> QueueName | None:
        """Take the queue whose turn it is; None when all are done."""
        at = self._root
        self._way = [at]
        while at.below:
            at = heappop(at.below)
            self._way.append(at)
        return at.first if len(self._way) > 1 else None

    def take(self, queue: QueueName) -> T:
        """Take the first gang of ``queue``."""
        return heappop(self._gangs[queue])[2]

    def first(self, queue: QueueName) -> T | None:
        """The first gang of ``queue``, which stays there; None: it has none."""
        gangs = self._gangs.get(queue)
        return gangs[0][2] if gangs else None

    def drop(self, queue: QueueName) -> Iterator[T]:
        """``queue`` gets no more turns; yields what it had left, in no order."""
        return (item for _, _, item in self._gangs.pop(queue))

    def done(self, queue: QueueName) -> None:
        """The turn is over: ``queue`` gets another if it has gangs left."""
        alive = bool(self._gangs.get(queue))
        while len(self._way) > 1:
            branch = self._way.pop()
            if alive:
                self._way[-1].put_back(branch)
            elif self._way[-1].below:
                self._way[-1].first = self._way[-1].below[0].first
                alive = True

    def _grow(self, branches: dict[Line, _Branch], line: Line) -> _Branch:
        """The branch of ``line``, made with all above it where it is missing."""
        missing = [line[:end] for end in range(len(line), -1, -1) if line[:end] not in branches]
        for each in reversed(missing):
            branch = branches[each] = _Branch(self._order)
            if each:
                branches[each[:-1]].below.append(branch)
        return branches[line]
