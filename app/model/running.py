"""The pods that have room on nodes, as columns: what an eviction may take, and what that frees.

There are tens of thousands of them, and a search for victims asks about all at once. A pod is told
by its position, which is the same in every column.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.model.ids import GroupKey, PodUid, QueueName
from app.model.parts import Part
from app.model.placed_pods import Codes, Rows, frozen
from app.model.pod import Pod
from app.model.resources import Matrix

NO_GROUP = GroupKey("")
"""The group of pods of other schedulers."""


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """``P`` pods that run, are bound, or have a node reserved; arrays are read-only.

    ``nodes`` are rows of the node table, ``N`` for a node that is not in it. ``queues`` have no
    value for pods of other schedulers. ``requests`` has shape ``(P, R)``. ``priorities`` are those
    of tasks, ``created`` and ``started`` (0: not yet) seconds since the epoch. The masks tell of a
    pod: ``counted``, that its room counts as its group's allocation; ``bound``, that it has a node
    in the API server; ``releasing``, that it terminates; ``preemptable``, that it may be evicted
    for others. ``parts`` is what members count for, ``index`` the position of each.
    """

    pods: tuple[Pod, ...]
    index: Mapping[PodUid, int]
    nodes: Rows
    gangs: tuple[GroupKey, ...]
    parts: tuple[Part, ...]
    queues: Codes[QueueName]
    requests: Matrix
    priorities: NDArray[np.int64]
    created: NDArray[np.float64]
    started: NDArray[np.float64]
    counted: NDArray[np.bool_]
    bound: NDArray[np.bool_]
    releasing: NDArray[np.bool_]
    preemptable: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.pods)


def _no_flags() -> NDArray[np.bool_]:
    return np.zeros(0, dtype=np.bool_)


NOT_ASKED = Running(
    pods=(),
    index={},
    nodes=frozen(()),
    gangs=(),
    parts=(),
    queues=Codes.of(()),
    requests=np.zeros((0, 0), dtype=np.int64),
    priorities=np.zeros(0, dtype=np.int64),
    created=np.zeros(0),
    started=np.zeros(0),
    counted=_no_flags(),
    bound=_no_flags(),
    releasing=_no_flags(),
    preemptable=_no_flags(),
)
"""What a snapshot has that was made for no question about evictions."""
