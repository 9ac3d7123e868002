"""Members of sub-groups: placed so many together that their sub-group is whole, or not at all.

A gang that is parted (``subGroupPolicy``, volcano.md §3.5) is placed in *units*: what a sub-group
lacks of its size, or one member by itself, where its sub-group is whole or it has none. Units that
the minimum of a policy needs go first, then other sub-groups, then single members. One that does
not fit gives its room back, and the next one of its policy stands in for it.
"""

from collections import Counter, deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.actions import refusals
from app.core.actions.attempt import Attempt
from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.futility import Failure
from app.core.actions.kinds import kind_of
from app.core.actions.need import Need
from app.core.ledger import GangAccount
from app.model.amounts import PODS
from app.model.gang import Gang, Task
from app.model.parts import SubGroup, sizes_of
from app.model.reason import Cause, Refusal, Shortfall

Unit = tuple[Task, ...]


def units(gang: Gang, account: GangAccount, tasks: Sequence[Task]) -> list[Unit]:
    """``tasks`` in the pieces in which they may be placed now, those that go first in front.

    Left out are members of a sub-group of which too few wait, as it cannot be whole, and those
    beyond what makes one whole, as long as it is not.
    """
    sizes = sizes_of(gang.sub_groups)
    lacking = Counter(gang.lacking_of_policies(account.sub_group_ready))
    needed: list[Unit] = []
    others: list[Unit] = []
    parted: set[Task] = set()
    for sub_group, members in _by_sub_group(gang, tasks).items():
        short = sizes[sub_group.policy] - account.sub_group_ready.get(sub_group, 0)
        if short <= 0:
            continue
        parted.update(members)
        if short <= len(members):
            (needed if lacking[sub_group.policy] > 0 else others).append(tuple(members[:short]))
            lacking[sub_group.policy] -= 1
    return [*needed, *others, *((task,) for task in tasks if task not in parted)]


def goes_alone(gang: Gang, account: GangAccount, task: Task) -> bool:
    """Whether ``task`` is of use by itself: it has no sub-group, or one that is whole."""
    sub_group = gang.sub_group_of.get(task.uid)
    if sub_group is None:
        return True
    size = sizes_of(gang.sub_groups)[sub_group.policy]
    return account.sub_group_ready.get(sub_group, 0) >= size


def place_next_unit(cycle: Cycle, backlog: Backlog) -> Generator[None, None, bool]:
    """Place one more unit; returns whether more wait. Those that request nothing are left."""
    gang = backlog.gang
    for unit in units(gang, cycle.ledger.gang(gang), backlog.tasks):
        if len(unit) == 1 and unit[0].best_effort:
            continue
        at = len(cycle.ledger.journal)
        failure = _place_unit(cycle, backlog, unit)
        if failure is None:
            cycle.decide(gang, cycle.ledger.journal[at:], whole=False)
            backlog.tasks = deque(task for task in backlog.tasks if task not in unit)
            return bool(backlog.tasks)
        cycle.refuse(gang, refusals.of_member(gang, failure.refusal))
        yield
    return False


def _place_unit(cycle: Cycle, backlog: Backlog, unit: Unit) -> Failure | None:
    """Give all of ``unit`` places on the ledger, or say why that cannot be.

    What like units did not get they do not get later in the cycle either: room only gets less.
    """
    like = frozenset(Counter(kind_of(task, cycle.ledger) for task in unit).items())
    known = backlog.failed_units.get(like)
    if known is not None:
        return known
    at, taken = len(cycle.ledger.journal), np.zeros(len(cycle.snapshot.axis), dtype=np.int64)
    with cycle.ledger.trial() as trial:
        for number, task in enumerate(unit):
            refusal = cycle.try_place(backlog.gang, task)
            if refusal is not None:
                failure = backlog.failed_units[like] = Failure(refusal, number, taken, at)
                return failure
            taken += task.request
        trial.keep()
    return None


@dataclass(slots=True, eq=False)
class UnitAttempt(Attempt):
    """Unit by unit, of a gang that is parted."""

    _served: set[Task] = field(default_factory=set)

    def run(self) -> Steps:
        """Place unit by unit until the minimum is reached or all have been tried."""
        yield from self._pass()
        if not self.succeeded:
            yield from self._pass()  # more members of sub-groups that have become whole
        if not (self.succeeded or self.first):
            self.first = _incomplete(self.backlog.gang)
        self.left.extend(task for task in self._unserved() if not task.is_slot)

    def _unserved(self) -> list[Task]:
        return [task for task in self.tasks if task not in self._served]

    def _pass(self) -> Steps:
        gang = self.backlog.gang
        for unit in units(gang, self.cycle.ledger.gang(gang), self._unserved()):
            if not self.succeeded and self._is_wanted(unit):
                self._take(unit)
                yield

    def _is_wanted(self, unit: Unit) -> bool:
        """Whether it brings the gang nearer to its minimum."""
        sub_group = self.backlog.gang.sub_group_of.get(unit[0].uid)
        if sub_group is not None and sub_group.policy in self.need.policies:
            return True
        return any(self.need.takes(task.role) for task in unit)

    def _take(self, unit: Unit) -> None:
        failure = _place_unit(self.cycle, self.backlog, unit)
        if failure is not None:
            if self.first is None:
                self.first = failure.refusal
                self.taken += failure.taken
            return
        self._served.update(unit)
        self.placed += len(unit)
        if self.first is None:
            for task in unit:
                self.taken += task.request
        gang = self.backlog.gang
        self.need = Need.of(gang, self.cycle.ledger.gang(gang))
        self.succeeded = self.need.met and self.cycle.opened.gang_ready(gang)


def _incomplete(gang: Gang) -> Refusal | None:
    """The refusal for members that wait in a sub-group which has too few of them, if any do."""
    able, sizes = gang.sub_group_able, sizes_of(gang.sub_groups)
    for sub_group in sorted(set(gang.sub_group_of.values())):
        size = sizes[sub_group.policy]
        if able[sub_group] < size:
            numbers = Shortfall(PODS, asked=size, free=able[sub_group])
            where = f"{sub_group.policy}/{sub_group.values}"
            return Refusal(Cause.NOT_ENOUGH_PODS_OF_TASK, where=where, shortfalls=(numbers,))
    return None


def _by_sub_group(gang: Gang, tasks: Iterable[Task]) -> dict[SubGroup, list[Task]]:
    found: dict[SubGroup, list[Task]] = {}
    for task in tasks:
        sub_group = gang.sub_group_of.get(task.uid)
        if sub_group is not None:
            found.setdefault(sub_group, []).append(task)
    return found
