"""proportion: a queue deserves its part of the cluster by weight, and borrows what others leave.

Only queues that have groups take part. *Deserved* is worked out when it is first asked for
(:mod:`app.core.shares.entitlements`), and once more after groups were admitted; what a queue holds
is read from the ledger whenever it is asked, so the order of queues follows the placements of the
cycle. Admission looks at the queue's real capability instead: what it could hold if the others
asked for nothing.

What no entitled gang can use is *borrowed*, up to what the queue could really hold, unless the
argument ``borrowing`` is false (:mod:`app.core.actions.allocate`).
"""

import numpy as np

from app.core.ledger import Ledger
from app.core.policy import PERMIT, Ballot, Hooks, OpenPlugin, QueueShare, Session, Vote
from app.core.settling import Settling
from app.core.shares import limits
from app.core.shares.borrowing import borrowing_of
from app.core.shares.entitlements import Entitlement, entitlements
from app.core.shares.reclaim_rules import reclaim_rules
from app.core.victim_rules import Candidate, Preemptor
from app.model.conf import PluginConf
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.reason import Cause, Refusal
from app.model.resources import PODS_COLUMN, ResourceAxis, Vector


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``borrowing`` and ``borrowing.patience``."""
    borrowing = borrowing_of(conf)

    def open_(session: Session) -> Hooks:
        queues = Proportion(session.ledger, now=session.now)
        reclaimable, evictable = reclaim_rules(
            "proportion", queues.reclaimable, ledger=session.ledger, held=queues.held
        )
        return Hooks(
            queue_order=queues.compare,
            enqueueable=queues.enqueueable,
            admissible=queues.admissible,
            allocatable=queues.allocatable,
            borrowable=queues.borrowable,
            permitted=queues.permitted,
            excess=queues.excess,
            overused=queues.overused,
            is_below_share=queues.is_below_share,
            borrowing=borrowing,
            queue_shares=queues.queue_share,
            preemptive=queues.preemptive,
            reclaimable=reclaimable,
            unified_evictable=evictable,
        )

    return open_


class Proportion:
    """The queues of one cycle."""

    def __init__(self, ledger: Ledger, *, now: float) -> None:
        self._ledger = ledger
        self._settling = Settling(ledger, now=now)
        self._real = limits.real_capabilities(ledger.snapshot)
        self._rivals = limits.guaranteed(ledger.snapshot.queues.values())
        self._entitled: dict[QueueName, Entitlement] = {}
        self._seen: int | None = None
        nothing = np.zeros(len(self._axis), dtype=np.int64)
        self._unentitled = Entitlement(nothing, nothing, exact=nothing.astype(np.float64))

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
        return self._vote(gang, claims=self._ledger.queue(gang.queue).inqueue)

    def admissible(self, gang: Gang) -> Ballot:
        """The vote on the gang when only groups with places claim anything."""
        return self._vote(gang, claims=self._ledger.queue(gang.queue).committed)

    def _vote(self, gang: Gang, *, claims: Vector | None) -> Ballot:
        asked = limits.missing(gang)
        if asked is None:
            return PERMIT
        account = self._ledger.queue(gang.queue)
        held = account.allocated - account.elastic
        if claims is not None:
            held = held + claims
        refusal = self._compare_with(self._real[gang.queue], gang.queue, asked=asked, held=held)
        return PERMIT if refusal is None else Ballot(Vote.REJECT, refusal)

    def allocatable(self, queue: QueueName, task: Task) -> Refusal | None:
        """Whether the queue deserves one more ``task``, and may hold it beside what terminates."""
        return self._beyond_share(queue, task.request)

    def held(self, queue: QueueName) -> Vector:
        """What the queue holds, shape ``(R,)``."""
        return self._ledger.queue(queue).allocated

    def preemptive(self, preemptor: Preemptor) -> Refusal | None:
        """Whether the queue deserves all that ``preemptor`` asks for."""
        return self._beyond_share(preemptor.gang.queue, preemptor.asked)

    def reclaimable(self, preemptor: Preemptor, candidate: Candidate) -> bool | None:
        """Whether the pod's queue holds more than it deserves of what goes from one to the other.

        None where both are of the same queue.
        """
        queue = candidate.gang.queue
        if queue == preemptor.gang.queue:
            return None
        self._follow_admissions()
        held = self._ledger.queue(queue).allocated - self._settling.held(preemptor.gang, queue)
        over = held > self._entitlement(queue).deserved
        over &= (candidate.request > 0) & (preemptor.asked > 0)
        over[PODS_COLUMN] = False
        return bool(over.any())

    def _beyond_share(self, queue: QueueName, asked: Vector) -> Refusal | None:
        self._follow_admissions()
        held = self._ledger.queue(queue).allocated
        deserved = self._entitlement(queue).deserved
        short = limits.exceeding(asked, held=held, limit=deserved)
        going = self._ledger.terminating(queue, below=False)
        if not short and going is None:
            return None
        over_quota = self._compare_with(
            self._real[queue], queue, asked=asked, held=held, terminating=going
        )
        if over_quota is not None or not short:
            return over_quota
        lack = limits.shortfalls(short, axis=self._axis, asked=asked, held=held, limit=deserved)
        return limits.no_room(queue, lack, cause=Cause.QUEUE_OVERUSED)

    def borrowable(self, queue: QueueName, task: Task) -> Refusal | None:
        """Whether the queue may really hold one more ``task``, whatever it deserves."""
        held = self._ledger.queue(queue).allocated
        going = self._ledger.terminating(queue, below=False)
        return self._compare_with(
            self._real[queue], queue, asked=task.request, held=held, terminating=going
        )

    def is_below_share(self, queue: QueueName, more: Vector) -> bool:
        """Whether the queue, with so much ``more``, holds no more than it deserves.

        A resource of which the queue holds nothing does not count against it: the least share of
        a small cluster is none.
        """
        self._follow_admissions()
        held = self._ledger.queue(queue).allocated
        deserved = self._entitlement(queue).deserved
        used_up = limits.exceeding(more, held=held, limit=deserved)
        return not any(held[position] for position in used_up)

    def permitted(self, queue: QueueName, task: Task) -> Refusal | None:
        """Whether the queue's capability, if it has one, leaves room for one more ``task``."""
        held = self._ledger.queue(queue).allocated
        kept = self._ledger.earmarks.of(queue, against=task, below=False)
        limit = limits.capability(self._ledger.snapshot.queues[queue], self._axis)
        if kept is not None:
            held = held + kept
        going = self._ledger.terminating(queue, below=False)
        return self._compare_with(limit, queue, asked=task.request, held=held, terminating=going)

    def excess(self, queue: QueueName) -> Vector:
        """By how much the queue holds more than its capability, if it has one."""
        limit = limits.capability(self._ledger.snapshot.queues[queue], self._axis)
        held = self._ledger.queue(queue).allocated
        going = self._ledger.terminating(queue, below=False)
        return limits.excess(limits.with_terminating(held, going), limit=limit)

    def overused(self, queue: QueueName) -> Refusal | None:
        """Refuses a queue that holds all it deserves, of every resource."""
        self._follow_admissions()
        held = self._ledger.queue(queue).allocated
        entitled = self._entitlement(queue)
        deserved = entitled.deserved
        if not (deserved <= held).all():
            return None
        waiting: Vector = np.maximum(entitled.request - held, 0)
        short = limits.exceeding(waiting, held=held, limit=deserved)
        lack = limits.shortfalls(short, axis=self._axis, asked=waiting, held=held, limit=deserved)
        return Refusal(Cause.QUEUE_OVERUSED, where=queue, shortfalls=lack)

    def queue_share(self, queue: QueueName) -> QueueShare:
        """What the queue deserves by its weight; nothing while it has no groups."""
        deserved = self._entitlement(queue).deserved
        return QueueShare(deserved, self._real[queue], share=self._share(queue))

    @property
    def _axis(self) -> ResourceAxis:
        return self._ledger.snapshot.axis

    def _share(self, queue: QueueName) -> float:
        return self._entitlement(queue).share(self._ledger.queue(queue).allocated)

    def _entitlement(self, queue: QueueName) -> Entitlement:
        if self._seen is None:
            self._follow_admissions()
        return self._entitled.get(queue, self._unentitled)

    def _follow_admissions(self) -> None:
        """Let groups admitted since ask too; not while admitting, where it would cost each time."""
        admitted = len(self._ledger.admitted)
        if self._seen != admitted:
            self._entitled = entitlements(self._ledger, self._real)
            self._seen = admitted

    def _compare_with(
        self,
        limit: Vector,
        queue: QueueName,
        *,
        asked: Vector,
        held: Vector,
        terminating: Vector | None = None,
    ) -> Refusal | None:
        """The refusal if ``asked`` does not fit ``limit`` beside what is held and terminating."""
        taken = limits.with_terminating(held, terminating)
        short = limits.exceeding(asked, held=taken, limit=limit)
        if not short:
            return None
        lack = limits.shortfalls(
            short, axis=self._axis, asked=asked, held=taken, limit=limit, terminating=terminating
        )
        return limits.over_limit(self._ledger.snapshot.queues[queue], lack, rivals=self._rivals)
