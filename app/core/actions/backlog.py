"""One gang's waiting members in the order in which they want places.

Members that request nothing come last: they fit almost anywhere, and beyond the minimum they are
left to backfill. Sorting is done in runs that are merged, with a yield after each.
"""

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from heapq import merge
from typing import Any

from app.core.policy import TaskKey
from app.model.gang import Gang, Task
from app.model.ids import NodeName, PodUid

_RUN = 128

Kind = tuple[int, NodeName]
"""Tasks of one gang that fit alike: the shape's identity, and the pin."""

_Entry = tuple[bool, Any, PodUid, Task]


@dataclass(slots=True, eq=False)
class Backlog:
    """What a gang still wants in this cycle; ``failed`` are kinds that will not fit any more."""

    gang: Gang
    tasks: deque[Task] = field(default_factory=deque)
    failed: set[Kind] = field(default_factory=set)
    sorted: bool = False

    def sort(self, key: TaskKey) -> Generator[None, None, None]:
        """Fill in the tasks, once."""
        if self.sorted:
            return
        self.sorted = True
        waiting = self.gang.waiting
        if len(waiting) <= 1:
            self.tasks.extend(waiting)
            return
        runs: list[list[_Entry]] = []
        for start in range(0, len(waiting), _RUN):
            entries = [(t.best_effort, key(t), t.uid, t) for t in waiting[start : start + _RUN]]
            runs.append(sorted(entries, key=_rank))
            if len(waiting) > _RUN:
                yield
        for number, entry in enumerate(merge(*runs, key=_rank) if len(runs) > 1 else runs[0]):
            self.tasks.append(entry[3])
            if number % _RUN == _RUN - 1:
                yield


def kind_of(task: Task) -> Kind:
    """See :data:`Kind`; shapes live as long as the cycle, so identity will do."""
    return id(task.shape), task.pinned


def _rank(entry: _Entry) -> tuple[bool, Any, PodUid]:
    return entry[:3]
