"""Placing a gang up to its minimum: all of it or nothing.

Inside a trial, members are placed in task order, those that a role's minimum needs first, until the
gang has its minimum; if it cannot, the trial is rolled back and the gang holds nothing, so two
gangs never keep parts of each other's room.

When a gang has failed, an equal demand (same queue, same shapes in the same numbers, nothing
pinned, no rule about other pods) fails too for the rest of the cycle: placements only take room and
quota, nothing gives any back. It is refused with the same reason without trying.
"""

from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from app.core.actions import slots
from app.core.actions.desk import Desk
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import PODS, Vector
from app.model.shape import PodShape

Outcome = Generator[None, None, bool]

PIECE = 16
"""Members placed between two yields."""

Demand = tuple[QueueName, int, tuple[tuple[str, int], ...], frozenset[tuple[tuple[str, int], int]]]


def reached(desk: Desk, gang: Gang) -> bool:
    """Whether ``gang`` has its minimum, in all and per role, as the ledger stands."""
    account = desk.ledger.gang(gang)
    if account.ready < gang.min_member:
        return False
    return all(
        account.role_ready.get(role, 0) >= least for role, least in gang.role_minimum.items()
    )


@dataclass(slots=True, eq=False)
class Minimum:
    """Places minimums on one desk and remembers which demands are hopeless."""

    desk: Desk
    _hopeless: dict[Demand, Refusal] = field(default_factory=dict)

    def place(self, gang: Gang) -> Outcome:
        """Give ``gang`` its minimum, or refuse it; returns whether it got it."""
        wanted = self._wanted(gang)
        if isinstance(wanted, Refusal):
            self.desk.refuse(gang, wanted)
            return False
        demand = _demand(gang, wanted)
        known = self._hopeless.get(demand) if demand else None
        if known is not None:
            self.desk.refuse(gang, known)
            return False
        refusal = yield from self._try(gang, wanted)
        if refusal is None:
            self.desk.refused.pop(gang.key, None)
            return True
        self.desk.refuse(gang, refusal)
        if demand is not None:
            self._hopeless[demand] = refusal
        return False

    def _wanted(self, gang: Gang) -> list[Task] | Refusal:
        """Members in the order to try them: needed by a role's minimum first, then the rest."""
        extra = slots.missing(gang, self.desk.snapshot.axis)
        if isinstance(extra, Refusal):
            return extra
        ordered = [*sorted(gang.waiting, key=self.desk.opened.task_key), *extra]
        if not gang.role_minimum:
            return ordered
        lacking = {
            role: least - gang.role_ready.get(role, 0) for role, least in gang.role_minimum.items()
        }
        first: list[Task] = []
        rest: list[Task] = []
        for task in ordered:
            needed = lacking.get(task.role, 0) > 0
            lacking[task.role] = lacking.get(task.role, 0) - 1
            (first if needed else rest).append(task)
        return first + rest

    def _try(self, gang: Gang, wanted: list[Task]) -> Generator[None, None, Refusal | None]:
        desk = self.desk
        before = desk.ledger.idle.clip(min=0).sum(axis=0)
        attempt = _Attempt(desk, gang, wanted)
        with desk.ledger.trial() as trial:
            for number, task in enumerate(wanted):
                if reached(desk, gang):
                    break
                if not attempt.take(task) and not attempt.can_still(wanted[number + 1 :]):
                    break
                if number % PIECE == PIECE - 1:
                    yield
            if reached(desk, gang):
                trial.keep()
                desk.publish(gang, desk.ledger.placed_since(trial), whole=True)
                return None
            return attempt.refusal(before)


@dataclass(slots=True, eq=False)
class _Attempt:
    """One gang inside its trial: what failed, and why first."""

    desk: Desk
    gang: Gang
    wanted: list[Task]
    failed: set[tuple[str, PodShape]] = field(default_factory=set)
    first: Refusal | None = None
    taken: int = 0

    def take(self, task: Task) -> bool:
        """Place ``task``; a role's shape that failed once is not tried again."""
        kind = (task.role, task.shape)
        if not task.pinned and kind in self.failed:
            return False
        refusal = place_one(self.desk, self.gang, task)
        if refusal is None:
            self.taken += 1
            return True
        self.failed.add(kind)
        if self.first is None:
            self.first = refusal
        return False

    def can_still(self, rest: Iterable[Task]) -> bool:
        """Whether the members not tried yet could complete the minimum (volcano.md §3.5)."""
        account = self.desk.ledger.gang(self.gang)
        left = Counter(t.role for t in rest if t.pinned or (t.role, t.shape) not in self.failed)
        if account.ready + left.total() < self.gang.min_member:
            return False
        return all(
            account.role_ready.get(role, 0) + left[role] >= least
            for role, least in self.gang.role_minimum.items()
        )

    def refusal(self, before: Vector) -> Refusal:
        """The first failure, in the gang's numbers: what its minimum asks and what was free."""
        first = self.first or Refusal(Cause.NOT_ENOUGH_TASKS, where=self.gang.key)
        if first.cause not in (Cause.NO_NODE_FITS, Cause.NOT_ENOUGH_RESOURCES):
            return first
        return self._in_gang_numbers(first, before)

    def _in_gang_numbers(self, first: Refusal, before: Vector) -> Refusal:
        """``first`` with the minimum's whole request against all free room, and who holds it."""
        gang, table = self.gang, self.desk.snapshot.table
        need = max(gang.min_member - gang.counts.ready, 1)
        asked = sum((task.request for task in self.wanted[:need]), np.zeros_like(before))
        names = table.axis.names
        short = [i for i in np.flatnonzero(asked > before) if names[i] != PODS]
        if not short:
            return first
        lacks = tuple(
            Shortfall(names[i], int(asked[i]), int(before[i]), int(table.total[i])) for i in short
        )
        holders = self.desk.holders.most(None, lacks[0].resource)
        return replace(
            first, cause=Cause.NOT_ENOUGH_RESOURCES, shortfalls=lacks, holders=holders, where=""
        )


def place_one(desk: Desk, gang: Gang, task: Task) -> Refusal | None:
    """Place one task where it fits best; the reason when it may not or cannot."""
    refusal = desk.opened.allocatable(gang.queue, task)
    if refusal is not None:
        return refusal
    row = desk.placer.find(task)
    if row is None:
        return desk.placer.explain(task)
    desk.ledger.place(gang, task, node=row)
    return None


def _demand(gang: Gang, wanted: list[Task]) -> Demand | None:
    """What an equal gang would ask; None when equality would not make it fail too."""
    if any(task.pinned or task.shape.looks_at_pods for task in wanted):
        return None
    counts = Counter((task.role, id(task.shape)) for task in wanted)
    lacking = tuple(
        (role, least - gang.role_ready.get(role, 0))
        for role, least in sorted(gang.role_minimum.items())
    )
    need = gang.min_member - gang.counts.ready
    return gang.queue, need, lacking, frozenset(counts.items())
