"""enqueue: which waiting groups may have pods and be placed (volcano.md §3.5).

Queues take turns by their order; the first group of a queue is put to the vote, and a rejected one
is out for this cycle while its queue goes on. A group that does not say what it needs
(``minResources`` unset) is only kept out by its queue.
"""

from collections import deque
from functools import cmp_to_key

from app.core.actions.desk import Desk, Steps
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Cause

_BY_QUEUE = frozenset(
    {Cause.QUEUE_MISSING, Cause.QUEUE_CLOSED, Cause.QUEUE_NOT_LEAF, Cause.QUEUE_BROKEN}
)
"""Causes that hold whatever the group asks for."""


def enqueue(desk: Desk, gangs: list[Gang]) -> Steps:
    """Vote on every gang of ``gangs`` that is not in yet."""
    waiting: dict[QueueName, deque[Gang]] = {}
    for gang in sorted((g for g in gangs if not desk.is_admitted(g)), key=desk.opened.gang_key):
        if gang.queue in desk.snapshot.queues:
            waiting.setdefault(gang.queue, deque()).append(gang)
        else:
            vote(desk, gang)
    order = cmp_to_key(desk.opened.queue_order)
    while waiting:
        queue = min(waiting, key=order)
        vote(desk, waiting[queue].popleft())
        if not waiting[queue]:
            del waiting[queue]
        yield


def vote(desk: Desk, gang: Gang) -> bool:
    """Admit ``gang`` or say why not."""
    refusal = desk.opened.enqueueable(gang)
    if refusal is not None and (gang.min_request is not None or refusal.cause in _BY_QUEUE):
        desk.refuse(gang, refusal)
        return False
    desk.admit(gang)
    return True
