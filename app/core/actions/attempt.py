"""One gang inside its trial, on the way to its minimum."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle, Steps
from app.core.entries import Placed
from app.core.gangs.need import Need
from app.model.gang import Gang, Task
from app.model.ids import NodeName
from app.model.reason import Refusal
from app.model.resources import Vector

Hint = Mapping[tuple[int, NodeName], Sequence[int]]
"""Rows of nodes by the identity of a member's shape and by its pin."""


def place_at(
    cycle: Cycle, gang: Gang, tasks: Sequence[Task], *, need: Need, hint: Hint
) -> Sequence[Placed] | None:
    """The minimum on the nodes of ``hint``, if every limit and rule allows that; else nothing."""
    rows = {alike: deque(some) for alike, some in hint.items()}
    with cycle.ledger.trial() as trial:
        for task in tasks:
            left = rows[id(task.shape), task.pinned]
            if not left or not cycle.may_place(gang, task, left[0]):
                return None
            cycle.place(gang, task, left.popleft())
            need.place(task.role)
        if not (need.met and cycle.opened.gang_ready(gang)):
            return None
        trial.keep()
        return cycle.ledger.placed_since(trial.start)


@dataclass(slots=True, eq=False)
class Attempt(ABC):
    """What the gang lacks, what failed and why first, what is left.

    ``tasks`` are its members in their order, and slots; of ``placed`` ones those before the first
    failure take ``taken`` together, shape ``(R,)``.
    """

    cycle: Cycle
    backlog: Backlog
    tasks: Sequence[Task]
    need: Need
    first: Refusal | None = None
    placed: int = 0
    taken: Vector = field(init=False)
    left: deque[Task] = field(default_factory=deque)
    succeeded: bool = False

    def __post_init__(self) -> None:
        self.taken = np.zeros(len(self.cycle.snapshot.axis), dtype=np.int64)

    @abstractmethod
    def run(self) -> Steps:
        """Place until the minimum is reached or out of reach."""
