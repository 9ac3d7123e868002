"""proportion: queues deserve the cluster by weight, and hold no more than they deserve.

Only queues that have groups take part. *Deserved* is worked out when the cycle opens
(:mod:`app.core.plugins.water_filling`); what a queue holds is read from the ledger whenever it is
asked, so the order of queues follows the placements of the cycle. Admission looks at the queue's
real capability instead: what it could hold if the others asked for nothing.
"""

from dataclasses import dataclass

import numpy as np

from app.core.ledger import Ledger
from app.core.plugins import limits, water_filling
from app.core.plugins.shares import Share, share_of
from app.core.policy import PERMIT, Ballot, Hooks, OpenPlugin, Session, Vote
from app.model.conf import PluginConf
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.reason import Cause, Refusal
from app.model.resources import ResourceAxis, Vector


def configure(_conf: PluginConf) -> OpenPlugin:
    """It takes no arguments."""
    return _open


def _open(session: Session) -> Hooks:
    queues = Proportion(session.ledger)
    return Hooks(
        queue_order=queues.compare,
        enqueueable=queues.enqueueable,
        allocatable=queues.allocatable,
        overused=queues.overused,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Entitlement:
    """What one queue deserves: as whole units, and as a share to compare by."""

    deserved: Vector
    share: Share


class Proportion:
    """The queues of one cycle."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._real = limits.real_capabilities(ledger.snapshot)
        self._entitled = entitlements(ledger, self._real)
        axis = ledger.snapshot.axis
        nothing = np.zeros(len(axis), dtype=np.int64)
        self._unentitled = Entitlement(nothing, share_of(nothing))

    def compare(self, left: QueueName, right: QueueName) -> int:
        """Higher queue priority first, then the smaller share of what is deserved."""
        queues = self._ledger.snapshot.queues
        by_priority = queues[right].priority - queues[left].priority
        if by_priority:
            return by_priority
        a, b = self._share(left), self._share(right)
        return (a > b) - (a < b)

    def enqueueable(self, gang: Gang) -> Ballot:
        """Whether the claims of the queue and this one fit its real capability."""
        asked = limits.missing(gang)
        if asked is None:
            return PERMIT
        account = self._ledger.queue(gang.queue)
        held = account.allocated + account.inqueue - account.elastic
        refusal = self._compare_with(self._real[gang.queue], gang.queue, asked=asked, held=held)
        return PERMIT if refusal is None else Ballot(Vote.REJECT, refusal)

    def allocatable(self, queue: QueueName, task: Task) -> Refusal | None:
        """Whether the queue deserves one more ``task``."""
        held = self._ledger.queue(queue).allocated
        deserved = self._entitlement(queue).deserved
        short = limits.exceeding(task.request, held=held, limit=deserved)
        if not short:
            return None
        over_quota = self._compare_with(self._real[queue], queue, asked=task.request, held=held)
        if over_quota is not None:
            return over_quota
        lack = limits.shortfalls(
            short, axis=self._axis, asked=task.request, held=held, limit=deserved
        )
        return limits.no_room(queue, lack, cause=Cause.QUEUE_OVERUSED)

    def overused(self, queue: QueueName) -> Refusal | None:
        """Refuses a queue that holds all it deserves, of every resource."""
        account = self._ledger.queue(queue)
        deserved = self._entitlement(queue).deserved
        if not (deserved <= account.allocated).all():
            return None
        waiting: Vector = np.maximum(account.request - account.allocated, 0)
        lack = limits.shortfalls(
            limits.exceeding(waiting, held=account.allocated, limit=deserved),
            axis=self._axis,
            asked=waiting,
            held=account.allocated,
            limit=deserved,
        )
        return Refusal(Cause.QUEUE_OVERUSED, where=queue, shortfalls=lack)

    @property
    def _axis(self) -> ResourceAxis:
        return self._ledger.snapshot.axis

    def _share(self, queue: QueueName) -> float:
        return self._entitlement(queue).share(self._ledger.queue(queue).allocated)

    def _entitlement(self, queue: QueueName) -> Entitlement:
        return self._entitled.get(queue, self._unentitled)

    def _compare_with(
        self, limit: Vector, queue: QueueName, *, asked: Vector, held: Vector
    ) -> Refusal | None:
        short = limits.exceeding(asked, held=held, limit=limit)
        if not short:
            return None
        lack = limits.shortfalls(short, axis=self._axis, asked=asked, held=held, limit=limit)
        return limits.no_room(queue, lack, cause=Cause.QUEUE_QUOTA)


def entitlements(ledger: Ledger, real: dict[QueueName, Vector]) -> dict[QueueName, Entitlement]:
    """What every queue that has groups deserves."""
    snapshot = ledger.snapshot
    names = sorted(name for name, account in ledger.queues().items() if account.groups)
    if not names:
        return {}
    shares = water_filling.fill(
        snapshot.table.total,
        np.array([snapshot.queues[name].weight for name in names], dtype=np.int64),
        request=np.array([ledger.queue(name).request for name in names]),
        ceiling=np.array([real[name] for name in names]),
        floor=np.array(
            [limits.on_axis(snapshot.queues[n].guarantee, snapshot.axis) for n in names]
        ),
    )
    deserved = water_filling.whole(shares)
    return {
        name: Entitlement(deserved=deserved[row], share=share_of(shares[row]))
        for row, name in enumerate(names)
    }
