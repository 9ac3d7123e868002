"""The pieces in which members of a gang that is parted may be placed.

A *unit* is what a sub-group (``subGroupPolicy``, volcano.md §3.5) lacks of its size, or one member
by itself, where its sub-group is whole or it has none. Of a gang that is not parted each member is
one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from app.core.accounts import GangAccount
from app.model.amounts import PODS
from app.model.gang import Gang, Task
from app.model.parts import SubGroup, sizes_of
from app.model.reason import Cause, Refusal, Shortfall


class Unit(NamedTuple):
    """``lacks`` of these members get places together, or none of them does."""

    tasks: tuple[Task, ...]
    lacks: int = 1
    sub_group: SubGroup | None = None
    """The sub-group that the members make whole; None: one member, of use by itself."""

    def rest(self, served: Collection[Task]) -> Iterator["Unit"]:
        """The others once these have places: from then on each is of use by itself."""
        return (Unit((task,)) for task in self.tasks if task not in served)


def units(gang: Gang, account: GangAccount, tasks: Sequence[Task]) -> list[Unit]:
    """``tasks`` in the pieces in which they may be placed now, those that go first in front.

    First come those that the minimums of policies need, then other sub-groups, then members by
    themselves. Of sub-groups the fullest goes first: it lacks the least, and what it holds is of no
    use before. Left out are members of one of which too few wait, as it cannot be whole.
    """
    sizes, ready = sizes_of(gang.sub_groups), account.sub_group_ready
    lacking = Counter(gang.lacking_of_policies(ready))
    needed: list[Unit] = []
    others: list[Unit] = []
    parted: set[Task] = set()
    waiting = _by_sub_group(gang, tasks)
    for sub_group in sorted(waiting, key=lambda of: ready.get(of, 0), reverse=True):
        members, short = waiting[sub_group], sizes[sub_group.policy] - ready.get(sub_group, 0)
        if short <= 0:
            continue
        parted.update(members)
        if short <= len(members):
            unit = Unit(tuple(members), short, sub_group)
            (needed if lacking[sub_group.policy] > 0 else others).append(unit)
            lacking[sub_group.policy] -= 1
    return [*needed, *others, *(Unit((task,)) for task in tasks if task not in parted)]


def whole_by_then(waiting: Sequence[Unit], tasks: Sequence[Task], count: int) -> Counter[str]:
    """How many sub-groups of each policy are whole at least once so many ``tasks`` have places.

    ``waiting`` are the units of these tasks.
    """
    sizes: dict[str, list[int]] = {}
    for unit in waiting:
        if unit.sub_group is not None:
            sizes.setdefault(unit.sub_group.policy, []).append(len(unit.tasks))
    found: Counter[str] = Counter()
    for policy, largest in sizes.items():
        left = count - (len(tasks) - sum(largest))
        for size in sorted(largest, reverse=True):
            if left <= 0:
                break
            left -= size
            found[policy] += 1
    return found


def goes_alone(gang: Gang, account: GangAccount, task: Task) -> bool:
    """Whether ``task`` is of use by itself: it has no sub-group, or one that is whole."""
    sub_group = gang.sub_group_of.get(task.uid)
    if sub_group is None:
        return True
    size = sizes_of(gang.sub_groups)[sub_group.policy]
    return account.sub_group_ready.get(sub_group, 0) >= size


def incomplete(gang: Gang) -> Refusal | None:
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
