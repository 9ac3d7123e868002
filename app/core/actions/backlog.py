"""One gang's waiting members in the order in which they want places.

Members that request nothing come last: they fit almost anywhere, and beyond the minimum they are
left to backfill. Sorting is done in runs that are merged, with a yield after each.
"""

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter
from typing import Any

from app.core.actions.futility import Failure
from app.core.actions.kinds import TaskKind
from app.core.entries import Moment
from app.core.gangs.units import Unit
from app.core.ledger import Ledger
from app.core.policy import TaskKey
from app.model.gang import Gang, Task
from app.model.ids import PodUid
from app.model.parts import SubGroup
from app.model.snapshot import Snapshot

_RUN = 128

FailedUnit = tuple[int, frozenset[tuple[TaskKind, int]], SubGroup | None, bytes]
"""A number of members out of such kinds, of that sub-group (None: of any), on such rows."""

_Rank = tuple[bool, bool, Any, PodUid]
_Entry = tuple[_Rank, Task]


@dataclass(slots=True, eq=False)
class Backlog:
    """What a gang still wants in this cycle; ``failed`` are kinds that did not fit, and when.

    Where the gang is parted, ``units`` are what is left beyond its minimum, once that was looked
    at, and ``failed_units`` so many out of members of such kinds that will not fit together on some
    rows of nodes.
    ``goes_last``: these are members that come when all others had a turn.
    """

    gang: Gang
    tasks: deque[Task] = field(default_factory=deque)
    failed: dict[TaskKind, Moment] = field(default_factory=dict)
    units: deque[Unit] | None = None
    failed_units: dict[FailedUnit, Failure] = field(default_factory=dict)
    sorted: bool = False
    goes_last: bool = False

    def has_failed(self, kind: TaskKind, ledger: Ledger) -> bool:
        """Whether tasks of ``kind`` did not fit, and nothing has grown since."""
        since = self.failed.get(kind)
        return since is not None and ledger.only_filled_since(since)

    def forget_failures(self) -> None:
        """Members that did not fit in one domain are tried in the next."""
        self.failed.clear()

    def sort(self, waiting: Sequence[Task], *, key: TaskKey) -> Generator[None, None, None]:
        """Fill in the tasks that are ``waiting``, once."""
        if self.sorted:
            return
        self.sorted = True
        if len(waiting) <= 1:
            self.tasks.extend(waiting)
            return
        runs: list[list[_Entry]] = []
        for start in range(0, len(waiting), _RUN):
            entries = [(rank(task, key), task) for task in waiting[start : start + _RUN]]
            runs.append(sorted(entries, key=itemgetter(0)))
            if len(waiting) > _RUN:
                yield
        in_order = merge(*runs, key=itemgetter(0)) if len(runs) > 1 else runs[0]
        for number, (_, task) in enumerate(in_order):
            self.tasks.append(task)
            if number % _RUN == _RUN - 1:
                yield


def rank(task: Task, key: TaskKey) -> _Rank:
    """Where ``task`` stands among the members of its gang: the lowest go first."""
    return bool(task.after), task.best_effort, key(task), task.uid


def followers_last(snapshot: Snapshot, tasks: Sequence[Task]) -> Sequence[Task]:
    """``tasks`` with those last that must be near others: these may be among them."""
    if not snapshot.inter_pod:
        return tasks
    return sorted(tasks, key=lambda task: bool(task.shape.pod_affinity))
