"""Which gangs run on room that their queue borrows, and from which queue.

A queue that holds more than it deserves borrows the difference. Nothing is remembered for that: the
last ones to come are the borrowers, those of the lowest priority first, so the answer is the same
after a restart and follows the shares.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from app.core.ledger import Ledger
from app.core.policy import QueueShare, QueueShares
from app.model.gang import Gang
from app.model.ids import NO_QUEUE, GroupKey, QueueName
from app.model.plan import Loan
from app.model.resources import PODS_COLUMN, Vector


def loans(ledger: Ledger, queue_shares: QueueShares) -> dict[GroupKey, Loan]:
    """What each borrowing gang borrows."""
    accounts = ledger.queues().items()
    known = {name: queue_shares(name) for name, account in accounts if account.groups}
    beyond = {
        name: over
        for name, share in known.items()
        if share.deserved.any() and (over := _beyond(ledger, name, share)).any()
    }
    if not beyond:
        return {}
    gangs: defaultdict[QueueName, list[Gang]] = defaultdict(list)
    for gang in ledger.snapshot.gangs.values():
        if gang.queue in beyond:
            gangs[gang.queue].append(gang)
    return {
        gang.key: Loan(_borrowed_from(ledger, known, amount), amount)
        for name, over in beyond.items()
        for gang, amount in _borrowers(ledger, gangs[name], over)
    }


def _beyond(ledger: Ledger, name: QueueName, share: QueueShare) -> Vector:
    return without_pods(np.maximum(ledger.queue(name).allocated - share.deserved, 0))


def without_pods(amount: Vector) -> Vector:
    """``amount`` without the number of pods, which no share is about."""
    counted = amount.copy()
    counted[PODS_COLUMN] = 0
    return counted


def _borrowers(ledger: Ledger, gangs: list[Gang], over: Vector) -> Iterator[tuple[Gang, Vector]]:
    for gang in sorted(gangs, key=lambda gang: (gang.priority, -gang.created, gang.key)):
        part = np.minimum(ledger.gang(gang).allocated, over)
        if part.any():
            over = over - part
            yield gang, part
        if not over.any():
            return


def _borrowed_from(
    ledger: Ledger, known: Mapping[QueueName, QueueShare], amount: Vector
) -> QueueName:
    """The queue that uses least of its share of these resources; none if every queue uses all."""
    unused = {
        name: int(np.maximum(share.deserved - ledger.queue(name).allocated, 0)[amount > 0].max())
        for name, share in known.items()
    }
    most = max(unused.values(), default=0)
    return min(name for name, free in unused.items() if free == most) if most else NO_QUEUE
