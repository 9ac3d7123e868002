"""allocate: give room to admitted groups (volcano.md §3.5).

Queues take turns by their order; in a turn the first gang of the queue gets either its minimum,
whole, or, when it has that, one more member. A gang with members left goes back into its queue, so
that gangs and queues share what is beyond their minimums. An extra member that does not fit is
refused alone, and no equal one of its gang is tried again in this cycle.
"""

import heapq
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

from app.core.actions.desk import Desk, Steps
from app.core.actions.minimum import Minimum, place_one, reached
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, QueueName
from app.model.reason import Cause, Refusal
from app.model.shape import PodShape

Heap = list[tuple[Any, GroupKey, Gang]]


def allocate(desk: Desk, gangs: list[Gang], *, enqueue: bool) -> Steps:
    """Place what ``gangs`` wait for; without ``enqueue`` as an action everybody is let in."""
    heaps: dict[QueueName, Heap] = {}
    for gang in gangs:
        if _may_be_placed(desk, gang, enqueue=enqueue):
            _push(desk, heaps.setdefault(gang.queue, []), gang)
    turns = Turns(desk)
    order = cmp_to_key(desk.opened.queue_order)
    while heaps:
        queue = min(heaps, key=order)
        heap = heaps[queue]
        overused = desk.opened.overused(queue)
        if overused is not None:
            _refuse_all(desk, heap, overused)
            del heaps[queue]
            continue
        gang = heapq.heappop(heap)[2]
        more = yield from turns.take(gang)
        if more:
            _push(desk, heap, gang)
        if not heap:
            del heaps[queue]
        yield


def _may_be_placed(desk: Desk, gang: Gang, *, enqueue: bool) -> bool:
    if gang.hold_until > desk.now:
        desk.refuse(gang, Refusal(Cause.COOLING_DOWN, where=gang.key))
        return False
    if desk.is_admitted(gang):
        return bool(gang.waiting) or not reached(desk, gang)
    if enqueue:
        return False
    if gang.queue not in desk.snapshot.queues:
        desk.refuse(gang, Refusal(Cause.QUEUE_MISSING, where=gang.queue))
        return False
    desk.admit(gang)
    return True


def _push(desk: Desk, heap: Heap, gang: Gang) -> None:
    heapq.heappush(heap, (desk.opened.gang_key(gang), gang.key, gang))


def _refuse_all(desk: Desk, heap: Heap, refusal: Refusal) -> None:
    for _, _, gang in heap:
        desk.refuse(gang, refusal)


@dataclass(slots=True, eq=False)
class Extras:
    """Members beyond the minimum that a gang still has to be tried, and what failed already."""

    tasks: deque[Task]
    failed: set[tuple[str, PodShape]] = field(default_factory=set)


class Turns:
    """The turns of gangs on one desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._minimum = Minimum(desk)
        self._extras: dict[GroupKey, Extras] = {}

    def take(self, gang: Gang) -> Generator[None, None, bool]:
        """One turn; returns whether another may bring more."""
        if not reached(self._desk, gang):
            placed = yield from self._minimum.place(gang)
            return placed and bool(self._waiting(gang).tasks)
        return self._one_more(gang)

    def _waiting(self, gang: Gang) -> Extras:
        extras = self._extras.get(gang.key)
        if extras is None:
            done = {
                placement.task.uid
                for decided in self._desk.placed[-1:]
                if decided.gang == gang.key
                for placement in decided.placements
            }
            left = (t for t in gang.waiting if t.uid not in done and not t.best_effort)
            extras = Extras(deque(sorted(left, key=self._desk.opened.task_key)))
            self._extras[gang.key] = extras
        return extras

    def _one_more(self, gang: Gang) -> bool:
        desk, extras = self._desk, self._waiting(gang)
        while extras.tasks:
            task = extras.tasks.popleft()
            kind = (task.role, task.shape)
            if not task.pinned and kind in extras.failed:
                continue
            with desk.ledger.trial() as trial:
                refusal = place_one(desk, gang, task)
                if refusal is None:
                    trial.keep()
                    desk.publish(gang, desk.ledger.placed_since(trial), whole=False)
                    return bool(extras.tasks)
            extras.failed.add(kind)
            desk.refuse(gang, refusal)
        return False
