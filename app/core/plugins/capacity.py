"""capacity: a queue deserves the amounts that it names, and holds at most its capability.

Flat by default; with ``enableHierarchy`` queues form a tree (:mod:`app.core.shares.hierarchy`),
only its leaves take groups, and a group must fit its queue *and every queue above*. Either way the
running sums come from the ledger whenever a hook is asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.core.arguments import Arguments
from app.core.conf_error import ConfError
from app.core.ledger import Ledger
from app.core.policy import (
    PERMIT,
    Ballot,
    Hooks,
    IsBelowShare,
    OpenPlugin,
    QueueCompare,
    QueueShare,
    QueueShares,
    Session,
    Vote,
)
from app.core.settling import Settling
from app.core.shares import hierarchy, limits
from app.core.shares.borrowing import borrowing_of
from app.core.shares.reclaim_rules import reclaim_rules
from app.core.shares.reclaiming import Reclaiming
from app.core.shares.shares import Share, share_of
from app.core.victim_rules import Preemptor
from app.model.conf import PluginConf
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.reason import Cause, Refusal
from app.model.resources import Vector
from app.model.workload import Queue

QueueRank = Callable[[QueueName], tuple[float, bool]]
"""Share of what is deserved, then queues that deserve nothing last."""


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads its arguments; ``enableHierarchy`` turns the tree on.

    ``ancestorReclaimLevel`` (default 0) is how many ancestors of a queue may take room for it;
    ``borrowing`` and ``borrowing.patience`` are those of :mod:`app.core.shares.borrowing`. What is
    counted of claims of devices the snapshot has already.
    """
    borrowing = borrowing_of(conf)
    limits.counted_claims_of(conf)
    level = Arguments(conf).integer("ancestorReclaimLevel", 0)
    if level < 0:
        raise ConfError(f"plugin {conf.name}: argument ancestorReclaimLevel: {level} is below 0")

    def open_(session: Session) -> Hooks:
        if conf.enabled("enableHierarchy"):
            hooks = _open_tree(session, level=level)
        else:
            hooks = _open_flat(session)
        return replace(hooks, borrowing=borrowing)

    return open_


def _open_flat(session: Session) -> Hooks:
    ledger = session.ledger
    snapshot = ledger.snapshot
    real = limits.real_capabilities(snapshot)
    rivals = limits.guaranteed(snapshot.queues.values())
    deserved: dict[QueueName, Vector] = {
        name: np.maximum(
            np.minimum(limits.on_axis(queue.deserved, snapshot.axis), real[name]),
            limits.on_axis(queue.guarantee, snapshot.axis),
        )
        for name, queue in snapshot.queues.items()
    }
    quota = Quota(
        ledger=ledger,
        real=real,
        claimable=real,
        given=lambda name: limits.capability(snapshot.queues[name], snapshot.axis),
        lines={name: (name,) for name in snapshot.queues},
        rivals=lambda _queue: rivals,
        tree=False,
    )
    rank = _rank(quota, deserved)
    hooks = Hooks(
        queue_order=_flat_order(ledger, rank),
        enqueueable=quota.enqueueable,
        admissible=quota.admissible,
        allocatable=quota.allocatable,
        permitted=quota.permitted,
        excess=quota.excess,
        is_below_share=_below_share(quota, deserved),
        queue_shares=_queue_shares(quota, deserved, rank),
    )
    settling = Settling(ledger, now=session.now)
    return _taking(hooks, quota, Reclaiming(ledger, deserved, quota.held, quota.line, settling))


def _open_tree(session: Session, *, level: int) -> Hooks:
    ledger = session.ledger
    fault = hierarchy.find_fault(ledger)
    if fault is not None:
        return _refuse_all(fault)
    tree = hierarchy.plant(ledger)
    leaf_lines = {n: ledger.path(n) for n in ledger.snapshot.queues if tree.is_leaf(n)}
    quota = Quota(
        ledger=ledger,
        real=tree.room,
        claimable=tree.real,
        given=tree.real.__getitem__,
        lines=leaf_lines,
        rivals=tree.siblings,
        tree=True,
    )
    rank = _rank(quota, tree.deserved)
    hooks = Hooks(
        queue_order=_tree_order(ledger, tree, rank),
        enqueueable=quota.enqueueable,
        admissible=quota.admissible,
        allocatable=quota.allocatable,
        permitted=quota.permitted,
        excess=quota.excess,
        is_below_share=_below_share(quota, tree.deserved),
        queue_shares=_queue_shares(quota, tree.deserved, rank, level=level),
    )
    settling = Settling(ledger, now=session.now)
    reclaiming = Reclaiming(ledger, tree.deserved, quota.held, quota.line, settling, level=level)
    return _taking(hooks, quota, reclaiming)


@dataclass(frozen=True, slots=True, eq=False)
class Quota:
    """Room under hard limits. ``lines`` has the queues whose limits count for a queue.

    Queues without a line take no groups. With ``tree`` the sums of whole subtrees count. ``given``
    tells a limit without what the cluster happens to have, which is part of the ``real`` one;
    ``claimable`` is what claims are compared with, ``rivals`` are those whose guarantees are out of
    a queue's reach.
    """

    ledger: Ledger
    real: Mapping[QueueName, Vector]
    claimable: Mapping[QueueName, Vector]
    given: Callable[[QueueName], Vector]
    lines: Mapping[QueueName, tuple[QueueName, ...]]
    rivals: Callable[[Queue], Sequence[Queue]]
    tree: bool

    def enqueueable(self, gang: Gang) -> Ballot:
        """Whether the claim fits every limit that counts, other claims included."""
        return self._vote(gang, held_of=self._claimed)

    def admissible(self, gang: Gang) -> Ballot:
        """The vote on the gang when only groups with places claim anything."""
        return self._vote(gang, held_of=self._placed)

    def _vote(self, gang: Gang, *, held_of: Callable[[QueueName], Vector]) -> Ballot:
        line = self.lines.get(gang.queue)
        if line is None:
            return Ballot(Vote.REJECT, _not_leaf(gang.queue))
        asked = limits.missing(gang)
        if asked is None:
            return PERMIT
        for name in line:
            held = held_of(name)
            refusal = self._compare(name, asked, held=held, limit=self.claimable[name])
            if refusal is not None:
                return Ballot(Vote.REJECT, refusal)
        return PERMIT

    def allocatable(self, queue: QueueName, task: Task) -> Refusal | None:
        """Whether one more ``task`` fits every limit that counts.

        What its queue, and in a tree every queue above, keeps for others that only lack a node is
        not free (volcano.md §3.6); nor is what terminating pods have there, until they are gone.
        """
        return self._fit_line(self.real.__getitem__, queue, task)

    def takes(self, preemptor: Preemptor) -> Refusal | None:
        """Whether all that ``preemptor`` asks for fits the limit of its queue.

        What queues above it may hold is freed by victims below them.
        """
        queue, first = preemptor.gang.queue, preemptor.tasks[0]
        return self._fit(self.real.__getitem__, self.line(queue)[:1], first, preemptor.asked)

    def permitted(self, queue: QueueName, task: Task) -> Refusal | None:
        """Whether one more ``task`` fits, were the cluster large enough."""
        return self._fit_line(self.given, queue, task)

    def excess(self, queue: QueueName) -> Vector:
        """By how much the queue, or in a tree one above it, holds more than it is given."""
        over: Vector = np.zeros(len(self.ledger.snapshot.axis), dtype=np.int64)
        for name in self.lines.get(queue, ()):
            held = limits.with_terminating(self.held(name), self._terminating(name))
            over = np.maximum(over, limits.excess(held, limit=self.given(name)))
        return over

    def _fit_line(
        self, limit_of: Callable[[QueueName], Vector], queue: QueueName, task: Task
    ) -> Refusal | None:
        line = self.lines.get(queue)
        return _not_leaf(queue) if line is None else self._fit(limit_of, line, task, task.request)

    def _fit(
        self,
        limit_of: Callable[[QueueName], Vector],
        line: Sequence[QueueName],
        task: Task,
        asked: Vector,
    ) -> Refusal | None:
        for name in line:
            going = self._terminating(name)
            held = limits.with_terminating(self.held(name), going)
            kept = self.ledger.earmarks.of(name, against=task, below=self.tree)
            if kept is not None:
                held = held + kept
            limit = limit_of(name)
            refusal = self._compare(name, asked, held=held, limit=limit, terminating=going)
            if refusal is not None:
                return refusal
        return None

    def line(self, queue: QueueName) -> tuple[QueueName, ...]:
        """The queues whose limits count for it; none for a queue that takes no groups."""
        return self.lines.get(queue, ())

    def held(self, name: QueueName) -> Vector:
        """What the groups that count for the queue hold."""
        account = self.ledger.queue(name)
        return account.tree_allocated if self.tree else account.allocated

    def _terminating(self, name: QueueName) -> Vector | None:
        return self.ledger.terminating(name, below=self.tree)

    def _placed(self, name: QueueName) -> Vector:
        account = self.ledger.queue(name)
        if self.tree:
            held, claims = account.tree_allocated - account.tree_elastic, account.tree_committed
        else:
            held, claims = account.allocated - account.elastic, account.committed
        return held if claims is None else held + claims

    def _claimed(self, name: QueueName) -> Vector:
        account = self.ledger.queue(name)
        if self.tree:
            return account.tree_allocated + account.tree_inqueue - account.tree_elastic
        return account.allocated + account.inqueue - account.elastic

    def _compare(
        self,
        name: QueueName,
        asked: Vector,
        *,
        held: Vector,
        limit: Vector,
        terminating: Vector | None = None,
    ) -> Refusal | None:
        short = limits.exceeding(asked, held=held, limit=limit)
        if not short:
            return None
        axis = self.ledger.snapshot.axis
        lack = limits.shortfalls(
            short, axis=axis, asked=asked, held=held, limit=limit, terminating=terminating
        )
        queue = self.ledger.snapshot.queues[name]
        return limits.over_limit(queue, lack, rivals=self.rivals(queue))


def _taking(hooks: Hooks, quota: Quota, reclaiming: Reclaiming) -> Hooks:
    """``hooks``, and what queues take from one another."""

    def preemptive(preemptor: Preemptor) -> Refusal | None:
        return quota.takes(preemptor) or reclaiming.objection(preemptor)

    queues = quota.ledger.snapshot.queues

    def victims_first(preemptor: Preemptor, left: QueueName, right: QueueName) -> int:
        """Victims' queues of lower priority first, then those that meet the line deeper."""
        own = preemptor.gang.queue
        return (queues[left].priority - queues[right].priority) or (
            reclaiming.common(own, right) - reclaiming.common(own, left)
        )

    reclaimable, evictable = reclaim_rules(
        "capacity", reclaiming.may_go, ledger=quota.ledger, held=quota.held
    )
    return replace(
        hooks,
        preemptive=preemptive,
        reclaimable=reclaimable,
        unified_evictable=evictable,
        victim_queue_order=victims_first,
    )


def _rank(quota: Quota, deserved: Mapping[QueueName, Vector]) -> QueueRank:
    shares: dict[QueueName, Share | None] = {
        name: share_of(amounts) if amounts.any() else None for name, amounts in deserved.items()
    }

    def rank(name: QueueName) -> tuple[float, bool]:
        share = shares[name]
        return (1.0, True) if share is None else (share(quota.held(name)), False)

    return rank


def _below_share(quota: Quota, deserved: Mapping[QueueName, Vector]) -> IsBelowShare:
    """A queue that does not say what it deserves is below its share as long as limits let it."""

    def is_below_share(name: QueueName, more: Vector) -> bool:
        limit = deserved.get(name)
        if limit is None or not limit.any():
            return True
        held = quota.held(name)
        used_up = limits.exceeding(more, held=held, limit=limit)
        return not any(held[position] for position in used_up)

    return is_below_share


def _queue_shares(
    quota: Quota, deserved: Mapping[QueueName, Vector], rank: QueueRank, *, level: int = 0
) -> QueueShares:
    def queue_share(name: QueueName) -> QueueShare:
        return QueueShare(
            deserved[name],
            quota.real[name],
            share=rank(name)[0] if quota.held(name).any() else 0.0,
            with_children=quota.tree,
            ancestors=level,
        )

    return queue_share


def _flat_order(ledger: Ledger, rank: QueueRank) -> QueueCompare:
    queues = ledger.snapshot.queues

    def compare(left: QueueName, right: QueueName) -> int:
        by_priority = queues[right].priority - queues[left].priority
        return by_priority or _sign(rank(left), rank(right))

    return compare


def _tree_order(ledger: Ledger, tree: hierarchy.Tree, rank: QueueRank) -> QueueCompare:
    """Leaves compare where their lines part, just below the lowest common ancestor."""
    queues = ledger.snapshot.queues

    def compare(left: QueueName, right: QueueName) -> int:
        by_priority = queues[right].priority - queues[left].priority
        if by_priority or left == right:
            return by_priority
        left_leaf, right_leaf = tree.is_leaf(left), tree.is_leaf(right)
        if left_leaf != right_leaf:
            return -1 if left_leaf else 1
        if not left_leaf:
            return _sign(rank(left), rank(right))
        fork = zip(tree.line[left], tree.line[right], strict=False)
        a, b = next((a, b) for a, b in fork if a != b)
        return _sign(rank(a), rank(b))

    return compare


def _sign(left: tuple[float, bool], right: tuple[float, bool]) -> int:
    return (left > right) - (left < right)


def _not_leaf(queue: QueueName) -> Refusal:
    return Refusal(
        Cause.QUEUE_NOT_LEAF,
        where=queue,
        detail=f"queue {queue} has child queues: only leaf queues take groups",
    )


def _refuse_all(fault: Refusal) -> Hooks:
    def enqueueable(_gang: Gang) -> Ballot:
        return Ballot(Vote.REJECT, fault)

    def allocatable(_queue: QueueName, _task: Task) -> Refusal | None:
        return fault

    return Hooks(
        enqueueable=enqueueable,
        allocatable=allocatable,
        permitted=allocatable,
        preemptive=lambda _preemptor: fault,
    )
