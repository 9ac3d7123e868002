"""The one place of a cycle that counts resources: a what-if overlay on a snapshot.

A *place* changes four things together: the node's free row, the queue's account, each ancestor's
subtree account and the gang's account. A place on idle room takes idle room; a *pipelined* place
takes room that is about to be free. An *eviction* takes a pod off its queue's and its gang's
account; the node keeps the room of the pod until it is gone, so idle room stays and *future idle*
room grows. Everything is journalled; inside ``with ledger.trial() as trial`` nothing stays unless
``trial.keep()`` was called, and a roll-back restores every number exactly. Scorers that cache per
shape follow :attr:`Ledger.touched`, the list of node rows in the order they changed (roll-backs
append too).

What failed is remembered with the :meth:`Ledger.moment` at which it failed: it fails again as long
as nothing has grown since.
"""

from collections.abc import Mapping

import numpy as np

from app.core.accounts import (
    GangAccount,
    Losses,
    QueueAccount,
    QueueChange,
    change_by_loss,
    claimable,
    plus,
)
from app.core.earmarks import Earmarks
from app.core.entries import Entry, Evicted, Moment, Placed
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, PodUid, QueueName
from app.model.parts import NO_SUB_GROUP
from app.model.resources import Matrix, Vector
from app.model.snapshot import QueueUsage, Snapshot


class Trial:
    """A what-if on ``ledger``: when it is left, what was done inside is undone unless kept."""

    __slots__ = ("_ledger", "kept", "start")

    def __init__(self, ledger: "Ledger") -> None:
        self._ledger = ledger
        self.start = len(ledger.journal)
        self.kept = False

    def __enter__(self) -> "Trial":
        return self

    def __exit__(self, *_error: object) -> None:
        if not self.kept:
            self._ledger.undo_since(self.start)

    def keep(self) -> None:
        """Let what was done since the trial began stay (in the enclosing trial, if any)."""
        self.kept = True


class Ledger:
    """Free room per node, and what queues and gangs hold, as the cycle goes on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.idle: Matrix = np.subtract(snapshot.table.allocatable, snapshot.used, order="F")
        """Free room per node, shape ``(N, R)``, by column; may be negative where a node shrank."""
        self.touched: list[int] = []
        self.moved: list[Gang] = []
        """Gangs whose account changed, as often as it did (roll-backs append too)."""
        self.admitted: list[Gang] = []
        """Gangs that :meth:`admit` admitted, in that order."""
        self.journal: list[Entry] = []
        self.epoch = 0
        """Grows whenever room or quota has grown otherwise than by what the journal holds."""
        self._changes = 0
        """Counts what has changed so, be it more or less."""
        self.evicted: set[PodUid] = set()
        """The pods that are counted on to go."""
        self.ahead = False
        """Whether queues count as having what they do once all pods that are to go are gone."""
        self._evictions: list[int] = []
        """The positions of evictions in the journal."""
        self._coming: Matrix = snapshot.releasing
        """What is to be free beyond ``idle``; copied before it changes first."""
        self._ahead: Matrix | None = None
        """What :attr:`future_idle` is, kept up to date once it was asked for."""
        self._evicted = np.zeros(len(snapshot.axis), dtype=np.int64)
        self._paths: dict[QueueName, tuple[QueueName, ...]] = {}
        self._queues = self._open_queues(snapshot)
        self._gangs: dict[GroupKey, GangAccount] = {}
        self.earmarks = Earmarks(self.path)
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
            known = self._paths[name] = self.snapshot.ancestry(name)
        return known

    def gang(self, gang: Gang) -> GangAccount:
        """The account of ``gang``, opened from its view on first use."""
        account = self._gangs.get(gang.key)
        if account is None:
            account = self._gangs[gang.key] = GangAccount.of(gang)
        return account

    @property
    def future_idle(self) -> Matrix:
        """What is free of each node once all pods that are to go are gone, shape ``(N, R)``.

        Without what has a pipelined place by now. It moves as the ledger does, and each resource is
        contiguous.
        """
        if self._ahead is None:
            self._ahead = np.add(self.idle, self._coming, order="F")
        return self._ahead

    @property
    def staying(self) -> Vector:
        """What is taken of all nodes by pods that were not evicted in this cycle, shape ``(R,)``.

        Places that the cycle gave do not count.
        """
        taken: Vector = self.snapshot.used.sum(axis=0) - self._evicted
        return taken

    def place(self, gang: Gang, task: Task, *, node: int) -> None:
        """Give ``task`` room on the node of row ``node``; the caller has checked that it fits."""
        self._record(Placed(gang, task, node))

    def pipeline(self, gang: Gang, task: Task, *, node: int) -> None:
        """Place ``task`` on room of the node that is about to be free."""
        self._record(Placed(gang, task, node, pipelined=True))

    def evict(self, at: int) -> None:
        """Count on it that the pod at that position of ``snapshot.running`` goes.

        Once only: :attr:`evicted` tells.
        """
        running = self.snapshot.running
        pod, node, request = running.pods[at], int(running.nodes[at]), running.requests[at]
        known = node < len(self.idle)
        gang = self.snapshot.gangs.get(running.gangs[at])
        releasing, counts = bool(running.releasing[at]), bool(running.counted[at])
        lingers = gang is not None and releasing and known and node not in self.snapshot.table.away
        before, change = Losses(0, 0, np.zeros_like(request)), QueueChange()
        if gang is not None:
            before = self.gang(gang).losses or before
            after = before.with_one(request if counts else None)
            change = change_by_loss(gang, before, after, lingering=request if lingers else None)
        self._record(
            Evicted(
                pod,
                node if known else None,
                request,
                releasing=releasing,
                gang=gang,
                part=running.parts[at],
                counts=counts,
                before=before,
                change=change,
            )
        )

    def block(self, request: Vector, *, node: int) -> None:
        """Keep that much of the node of row ``node``, free or not, from all tasks of this cycle.

        A negative amount is kept no longer.
        """
        self.idle[node] -= request
        if self._ahead is not None:
            self._ahead[node] -= request
        self.touched.append(node)
        self._note_change(grows=bool((request < 0).any()))

    def keep_for_pipelined(self, node: int) -> None:
        """Keep idle room of the node that its pipelined places count on (no trial undoes it).

        So far they take room that is about to be free, and more than that: the rest is idle now.
        """
        short = np.minimum(self._coming[node], 0)
        if not short.any():
            return
        self._own_coming()[node] -= short
        self.idle[node] += short
        self.touched.append(node)
        self._changes += 1

    # --- moments ---------------------------------------------------------------------------------

    def moment(self) -> Moment:
        """The present moment, for :meth:`only_filled_since` and :meth:`is_as_at`."""
        journal = self.journal
        last = journal[-1] if journal else None
        return Moment(self.epoch, self._changes, len(journal), last)

    def only_filled_since(self, moment: Moment) -> bool:
        """Whether room and quota have not grown since: what failed then fails now.

        They grow by evictions, and by a roll-back of what had a place at that moment.
        """
        journal, length = self.journal, moment.length
        if moment.epoch != self.epoch or len(journal) < length:
            return False
        if length and journal[length - 1] is not moment.last:
            return False
        return not self._evictions or self._evictions[-1] < length

    def is_as_at(self, moment: Moment) -> bool:
        """Whether room and quota are the same as then, number by number."""
        same = len(self.journal) == moment.length and self._changes == moment.changes
        return same and self.only_filled_since(moment)

    # --- what no trial undoes --------------------------------------------------------------------

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
        """Let the claim of ``gang`` count for others too (not undone by a trial)."""
        claim = self._claim(gang)
        if gang.allocated.any() or gang.unplaced_claim or not claim.any():
            return
        account = self._queues[gang.queue]
        account.committed = plus(account.committed, claim)
        for name in self.path(gang.queue):
            above = self._queues[name]
            above.tree_committed = plus(above.tree_committed, claim)

    def _claim(self, gang: Gang) -> Vector:
        """What the gang may still claim beside what it holds by now."""
        claim: Vector = np.maximum(
            claimable(gang) - (self.gang(gang).allocated - gang.allocated), 0
        )
        return claim

    def charge(self, queue: QueueName, amount: Vector) -> None:
        """Let ``queue`` hold so much more, or less (not undone by a trial); no node changes."""
        self._note_change(grows=bool((amount < 0).any()))
        self._charge(queue, amount)

    def lean(self, queue: QueueName, amount: Vector) -> None:
        """Let ``queue`` alone, not those above it, count as holding so much more, or less."""
        self._note_change(grows=bool((amount < 0).any()))
        account = self._queues[queue]
        account.allocated = account.allocated + amount
        account.tree_allocated = account.tree_allocated + amount

    def earmark(self, queue: QueueName, task: Task) -> None:
        """Keep room in ``queue`` for a member that only lacks a node (not undone by a trial)."""
        self._note_change(grows=False)
        self.earmarks.add(queue, task)

    def release(self, queue: QueueName, task: Task) -> None:
        """Keep that no longer."""
        self._note_change(grows=True)
        self.earmarks.remove(queue, task)

    def terminating(self, queue: QueueName, *, below: bool) -> Vector | None:
        """What ``queue`` has besides until its terminating members are gone; None: nothing.

        With ``below`` its descendants count with it. :attr:`ahead` they are gone.
        """
        account = self._queues[queue]
        going = account.tree_releasing if below else account.releasing
        return None if self.ahead else going

    # --- the journal -----------------------------------------------------------------------------

    def trial(self) -> Trial:
        """What-if: everything done inside ``with`` is undone at the end unless kept."""
        return Trial(self)

    def placed_since(self, start: int) -> tuple[Placed, ...]:
        """The places given since the journal had ``start`` entries."""
        return tuple(entry for entry in self.journal[start:] if isinstance(entry, Placed))

    def undo_since(self, start: int) -> None:
        """Take back what the journal holds beyond ``start`` entries."""
        while len(self.journal) > start:
            entry = self.journal.pop()
            if isinstance(entry, Placed):
                self._place(entry, -1)
            else:
                self._evictions.pop()
                self.evicted.discard(entry.pod.uid)
                self._evict(entry, -1)

    def _record(self, entry: Entry) -> None:
        if isinstance(entry, Placed):
            self._place(entry, 1)
        else:
            self._evictions.append(len(self.journal))
            self.evicted.add(entry.pod.uid)
            self._evict(entry, 1)
        self.journal.append(entry)

    def _place(self, entry: Placed, sign: int) -> None:
        gang, task, node, pipelined = entry
        delta = task.request if sign > 0 else -task.request
        if pipelined:
            self._own_coming()[node] -= delta
        else:
            self.idle[node] -= delta
        if self._ahead is not None:
            self._ahead[node] -= delta
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
        self._charge(gang.queue, delta)
        if self.earmarks.has(task):
            self.earmarks.change(gang.queue, -delta)

    def _evict(self, entry: Evicted, sign: int) -> None:
        delta = entry.request if sign > 0 else -entry.request
        if entry.node is not None:
            self._evicted += delta
            if not entry.releasing:
                self._own_coming()[entry.node] += delta
                if self._ahead is not None:
                    self._ahead[entry.node] += delta
                self.touched.append(entry.node)
        gang, before = entry.gang, entry.before
        if gang is None:
            return
        self.moved.append(gang)
        mine = self.gang(gang)
        after = before.with_one(entry.request if entry.counts else None)
        mine.losses = after if sign > 0 else (before if before.members else None)
        if entry.counts:
            role, sub_group = entry.part
            mine.ready -= sign
            mine.role_ready[role] = mine.role_ready.get(role, 0) - sign
            if sub_group != NO_SUB_GROUP:
                mine.sub_group_ready[sub_group] = mine.sub_group_ready.get(sub_group, 0) - sign
            mine.allocated -= delta
        if gang.queue in self._queues:
            self._queues[gang.queue].change(entry.change, sign)
            for name in self.path(gang.queue):
                self._queues[name].change_below(entry.change, sign)

    def _charge(self, queue: QueueName, amount: Vector) -> None:
        account = self._queues.get(queue)
        if account is None:
            return
        account.allocated = account.allocated + amount
        for name in self.path(queue):
            above = self._queues[name]
            above.tree_allocated = above.tree_allocated + amount

    def _own_coming(self) -> Matrix:
        if self._coming is self.snapshot.releasing:
            self._coming = self._coming.copy()
        return self._coming

    def _note_change(self, *, grows: bool) -> None:
        self._changes += 1
        self.epoch += grows

    def _open_queues(self, snapshot: Snapshot) -> dict[QueueName, QueueAccount]:
        zero = np.zeros(len(snapshot.axis), dtype=np.int64)
        nothing = QueueUsage(zero, zero, zero, zero)
        accounts = {
            name: QueueAccount.of(snapshot.usage.get(name, nothing)) for name in snapshot.queues
        }
        for name in snapshot.queues:
            own = snapshot.usage.get(name)
            if own is None:
                continue
            for ancestor in self.path(name)[1:]:
                accounts[ancestor].add_below(own)
        return accounts
