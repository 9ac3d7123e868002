"""The one place of a cycle that counts resources: a what-if overlay on a snapshot.

Placements change four things together: the node's free row, the queue's account, each ancestor's
subtree account and the gang's account. Everything is journalled; inside ``with ledger.trial() as
trial`` nothing stays unless ``trial.keep()`` was called, and a roll-back restores every number
exactly. Scorers that cache per shape follow :attr:`Ledger.touched`, the list of node rows in the
order they changed (roll-backs append too).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.model.gang import Gang, Task
from app.model.ids import ROOT_QUEUE, GroupKey, PodUid, QueueName
from app.model.parts import SubGroup
from app.model.resources import Matrix, Vector
from app.model.snapshot import QueueUsage, Snapshot

_MOST_REQUESTED = 1 << 48


@dataclass(slots=True, eq=False)
class QueueAccount:
    """Running sums of a queue, shape ``(R,)`` each; ``tree_*`` include all descendants.

    A sum that changes is replaced, never changed in place: accounts open with the snapshot's own
    vectors, and hundreds of queues cost no copies.
    """

    allocated: Vector
    request: Vector
    inqueue: Vector
    elastic: Vector
    tree_allocated: Vector
    tree_request: Vector
    tree_inqueue: Vector
    tree_elastic: Vector
    groups: int
    releasing: Vector | None = None
    """What terminating members have until they are gone; in no other sum. None: nothing."""
    tree_releasing: Vector | None = None
    committed: Vector | None = None
    """The part of ``inqueue`` that groups with places may still claim; None: nothing."""
    tree_committed: Vector | None = None


@dataclass(slots=True, eq=False)
class GangAccount:
    """Running sums of a gang: members with a place, in all, per role and per sub-group.

    ``allocated`` is what they request, shape ``(R,)``.
    """

    ready: int
    role_ready: dict[str, int]
    allocated: Vector
    sub_group_ready: dict[SubGroup, int] = field(default_factory=dict)
    best_effort: dict[str, int] = field(default_factory=dict)
    """Best-effort members placed in this cycle, per role: they no longer count as waiting ones."""


class Entry(NamedTuple):
    """One journalled placement; each is an object of its own."""

    gang: Gang
    task: Task
    node: int


class Trial:
    """A what-if on ``ledger``: when it is left, what was placed inside is undone unless kept."""

    __slots__ = ("_ledger", "kept", "start")

    def __init__(self, ledger: "Ledger") -> None:
        self._ledger = ledger
        self.start = len(ledger.journal)
        self.kept = False

    def __enter__(self) -> "Trial":
        return self

    def __exit__(self, *_error: object) -> None:
        if not self.kept:
            self._ledger.undo_since(self)

    def keep(self) -> None:
        """Let what was placed since the trial began stay (in the enclosing trial, if any)."""
        self.kept = True


class Ledger:
    """Free room per node, and what queues and gangs hold, as the cycle goes on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.idle: Matrix = np.subtract(snapshot.table.allocatable, snapshot.used, order="F")
        """Free room per node, shape ``(N, R)``; may be negative where a node shrank.

        Each resource is contiguous: scorers read whole columns."""
        self.touched: list[int] = []
        self.moved: list[Gang] = []
        """Gangs whose account changed, as often as it did (roll-backs append too)."""
        self.admitted: list[Gang] = []
        """Gangs that :meth:`admit` let in during this cycle, in that order."""
        self.journal: list[Entry] = []
        self._paths: dict[QueueName, tuple[QueueName, ...]] = {}
        self._queues = self._open_queues(snapshot)
        self._gangs: dict[GroupKey, GangAccount] = {}
        self._earmarking: set[PodUid] = set()
        self._earmarked: dict[QueueName, Vector] = {}
        self._tree_earmarked: dict[QueueName, Vector] = {}
        for gang in snapshot.shown:
            for task in gang.queue_first:
                if task.shown and gang.inqueue:
                    self.earmark(gang.queue, task)

    def queue(self, name: QueueName) -> QueueAccount:
        """The account of ``name``; raises ``KeyError`` for a queue that does not exist."""
        return self._queues[name]

    def queues(self) -> Mapping[QueueName, QueueAccount]:
        """All accounts by queue name."""
        return self._queues

    def path(self, name: QueueName) -> tuple[QueueName, ...]:
        """``name`` and its ancestors up to the root, nearest first; cut at a cycle or a gap."""
        known = self._paths.get(name)
        if known is None:
            known = self._paths[name] = _ancestry(self.snapshot, name)
        return known

    def gang(self, gang: Gang) -> GangAccount:
        """The account of ``gang``, opened from its view on first use."""
        account = self._gangs.get(gang.key)
        if account is None:
            account = GangAccount(
                gang.counts.ready,
                dict(gang.role_ready),
                gang.allocated.copy(),
                dict(gang.sub_group_ready),
            )
            self._gangs[gang.key] = account
        return account

    def place(self, gang: Gang, task: Task, *, node: int) -> None:
        """Give ``task`` room on the node of row ``node``; the caller has checked that it fits."""
        self._apply(gang, task, node=node, sign=1)
        self.journal.append(Entry(gang, task, node))

    def hold(self, request: Vector, *, node: int) -> None:
        """Let nobody have that much of the node of row ``node``, free or not, in this cycle."""
        self.idle[node] -= request
        self.touched.append(node)

    def admit(self, gang: Gang) -> None:
        """Count ``gang``'s claim as inqueue from now on (not undone by a trial)."""
        self.admitted.append(gang)
        claim = self._claim(gang)
        account = self._queues[gang.queue]
        account.inqueue = account.inqueue + claim
        for name in self.path(gang.queue):
            above = self._queues[name]
            above.tree_inqueue = above.tree_inqueue + claim

    def commit(self, gang: Gang) -> None:
        """``gang`` has its places: its claim counts for others too (not undone by a trial)."""
        claim = self._claim(gang)
        if gang.allocated.any() or not claim.any():
            return
        account = self._queues[gang.queue]
        account.committed = _plus(account.committed, claim)
        for name in self.path(gang.queue):
            above = self._queues[name]
            above.tree_committed = _plus(above.tree_committed, claim)

    def _claim(self, gang: Gang) -> Vector:
        """What it may still claim beside what it holds by now."""
        claim: Vector = np.maximum(
            claimable(gang) - (self.gang(gang).allocated - gang.allocated), 0
        )
        return claim

    def charge(self, queue: QueueName, amount: Vector) -> None:
        """Let ``queue`` hold so much more, or less (not undone by a trial); no node changes."""
        account = self._queues.get(queue)
        if account is None:
            return
        account.allocated = account.allocated + amount
        for name in self.path(queue):
            above = self._queues[name]
            above.tree_allocated = above.tree_allocated + amount

    def lean(self, queue: QueueName, amount: Vector) -> None:
        """Let ``queue`` alone, not those above it, count as holding so much more, or less."""
        account = self._queues[queue]
        account.allocated = account.allocated + amount
        account.tree_allocated = account.tree_allocated + amount

    def earmark(self, queue: QueueName, task: Task) -> None:
        """Keep room in ``queue`` for a member that only lacks a node (not undone by a trial)."""
        self._earmarking.add(task.uid)
        self._keep(queue, task.request)

    def release(self, queue: QueueName, task: Task) -> None:
        """Keep that no longer."""
        self._earmarking.remove(task.uid)
        self._keep(queue, -task.request)

    def keeps_for(self, task: Task) -> bool:
        """Whether ``task`` is a member that room is kept for."""
        return task.uid in self._earmarking

    def earmarked(self, queue: QueueName, *, against: Task, below: bool) -> Vector | None:
        """What ``queue`` keeps for members that only lack a node; None: nothing ``against`` it.

        With ``below`` its descendants count with it. Such members are not kept back by each other:
        when the limit is lowered, none of them would ever run (as in Volcano).
        """
        if self.keeps_for(against):
            return None
        return (self._tree_earmarked if below else self._earmarked).get(queue)

    def terminating(self, queue: QueueName, *, below: bool) -> Vector | None:
        """What ``queue`` has besides until its terminating members are gone; None: nothing.

        With ``below`` its descendants count with it.
        """
        account = self._queues[queue]
        return account.tree_releasing if below else account.releasing

    def trial(self) -> Trial:
        """What-if: everything placed inside ``with`` is undone at the end unless kept."""
        return Trial(self)

    def placed_since(self, trial: Trial) -> tuple[Entry, ...]:
        """What ``trial`` has placed so far."""
        return tuple(self.journal[trial.start :])

    def undo_since(self, trial: Trial) -> None:
        """Take back what ``trial`` has placed, the last first."""
        while len(self.journal) > trial.start:
            entry = self.journal.pop()
            self._apply(entry.gang, entry.task, node=entry.node, sign=-1)

    def _apply(self, gang: Gang, task: Task, *, node: int, sign: int) -> None:
        delta = task.request if sign > 0 else -task.request
        self.idle[node] -= delta
        self.touched.append(node)
        self.moved.append(gang)
        mine = self.gang(gang)
        mine.ready += sign
        mine.role_ready[task.role] = mine.role_ready.get(task.role, 0) + sign
        sub_group = gang.sub_group_of.get(task.uid)
        if sub_group is not None:
            mine.sub_group_ready[sub_group] = mine.sub_group_ready.get(sub_group, 0) + sign
        if task.best_effort and not task.is_slot:
            mine.best_effort[task.role] = mine.best_effort.get(task.role, 0) + sign
        mine.allocated += delta
        self.charge(gang.queue, delta)
        if self.keeps_for(task):
            self._keep(gang.queue, -delta)

    def _keep(self, queue: QueueName, delta: Vector) -> None:
        self._earmarked[queue] = self._earmarked.get(queue, 0) + delta
        for name in self.path(queue):
            self._tree_earmarked[name] = self._tree_earmarked.get(name, 0) + delta

    def _open_queues(self, snapshot: Snapshot) -> dict[QueueName, QueueAccount]:
        zero = np.zeros(len(snapshot.axis), dtype=np.int64)
        nothing = QueueUsage(zero, zero, zero, zero)
        accounts = {name: _account(snapshot.usage.get(name, nothing)) for name in snapshot.queues}
        for name in snapshot.queues:
            own = snapshot.usage.get(name)
            if own is None:
                continue
            for ancestor in self.path(name)[1:]:
                above = accounts[ancestor]
                above.tree_allocated = above.tree_allocated + own.allocated
                above.tree_request = above.tree_request + own.request
                above.tree_inqueue = above.tree_inqueue + own.inqueue
                above.tree_elastic = above.tree_elastic + own.elastic
                above.tree_releasing = _plus(above.tree_releasing, own.releasing)
                above.tree_committed = _plus(above.tree_committed, own.committed)
        return accounts


def claimable(gang: Gang) -> Vector:
    """What an admitted gang may still claim of its ``minResources``, shape ``(R,)``.

    ``max(minResources - allocated, 0)``, members held by foreign gates left out (volcano.md §3.6,
    proportion); zero when ``minResources`` is not set, and for a gang that is given up: it takes
    nothing before its next member comes, and its group may have been left behind.
    """
    if gang.min_request is None or gang.given_up:
        return np.zeros_like(gang.allocated)
    rest: Vector = np.maximum(gang.min_request - gang.allocated - gang.gated_request, 0)
    return rest


def unadmitted_request(gang: Gang) -> Vector:
    """What members of a group that waits for admission ask for that do not exist, shape ``(R,)``.

    A queue deserves its part for these as well: else the groups that were admitted first would
    take the share of the others. Bounded, so that sums of many stay whole numbers.
    """
    rest = gang.uncreated if not gang.inqueue and gang.awaits_members else None
    return np.zeros_like(gang.allocated) if rest is None else np.minimum(rest, _MOST_REQUESTED)


def _plus(left: Vector | None, right: Vector | None) -> Vector | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _account(own: QueueUsage) -> QueueAccount:
    return QueueAccount(
        allocated=own.allocated,
        request=own.request,
        inqueue=own.inqueue,
        elastic=own.elastic,
        tree_allocated=own.allocated,
        tree_request=own.request,
        tree_inqueue=own.inqueue,
        tree_elastic=own.elastic,
        groups=own.groups,
        releasing=own.releasing,
        tree_releasing=own.releasing,
        committed=own.committed,
        tree_committed=own.committed,
    )


def _ancestry(snapshot: Snapshot, name: QueueName) -> tuple[QueueName, ...]:
    path: list[QueueName] = []
    at: QueueName | None = name
    while at is not None and at in snapshot.queues and at not in path:
        path.append(at)
        if at == ROOT_QUEUE:
            break
        at = snapshot.queues[at].parent or ROOT_QUEUE
    return tuple(path)
