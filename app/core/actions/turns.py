"""Whose turn it is: queues by the configured order, the gangs of a queue by theirs.

A turn moves at most its own gang and its own queue (and the queue's ancestors), so gangs stand in
one heap per queue with the keys they had when they were put there, and queues in a heap that
compares them as they stand. Both orders are total.
"""

from collections.abc import Iterator
from functools import cmp_to_key
from heapq import heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

from app.core.policy import Opened
from app.model.gang import Gang
from app.model.ids import GroupKey, QueueName


class OfGang(Protocol):
    """Something that belongs to a gang."""

    @property
    def gang(self) -> Gang:
        """The gang."""


T = TypeVar("T", bound=OfGang)


class Turns(Generic[T]):
    """The gangs of all queues; ``queue``, ``take`` and ``done`` make one turn."""

    def __init__(self, opened: Opened) -> None:
        self._key = opened.gang_key
        self._queue_key = cmp_to_key(opened.queue_order)
        self._gangs: dict[QueueName, list[tuple[Any, GroupKey, T]]] = {}
        self._queues: list[tuple[Any, QueueName]] = []

    def add(self, item: T) -> None:
        """Let the gang of ``item`` take part."""
        queue = item.gang.queue
        gangs = self._gangs.get(queue)
        if gangs is None:
            gangs = self._gangs[queue] = []
        heappush(gangs, (self._key(item.gang), item.gang.key, item))

    def start(self) -> None:
        """Everybody is there: put the queues in their order."""
        for name in sorted(self._gangs):
            heappush(self._queues, (self._queue_key(name), name))

    def queue(self) -> QueueName | None:
        """Take the queue whose turn it is; None when all are done."""
        return heappop(self._queues)[1] if self._queues else None

    def take(self, queue: QueueName) -> T:
        """Take the first gang of ``queue``."""
        return heappop(self._gangs[queue])[2]

    def done(self, queue: QueueName) -> None:
        """The turn is over: ``queue`` gets another if it has gangs left."""
        if self._gangs[queue]:
            heappush(self._queues, (self._queue_key(queue), queue))

    def drop(self, queue: QueueName) -> Iterator[T]:
        """``queue`` gets no more turns; yields what it had left, in no order."""
        return (item for _, _, item in self._gangs.pop(queue))
