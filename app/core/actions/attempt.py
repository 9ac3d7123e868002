"""One gang inside its trial, on the way to its minimum."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle, Steps
from app.core.gangs.need import Need
from app.model.gang import Task
from app.model.reason import Refusal
from app.model.resources import Vector


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
