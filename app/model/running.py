"""The pods that have room on nodes, as columns: what an eviction may take, and what that frees.

There are tens of thousands of them, and a search for victims asks about all at once. A pod is told
by its position, which is the same in every column.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.model.ids import GroupKey, PodUid, QueueName
from app.model.parts import Part
from app.model.placed_pods import Codes, Rows, frozen
from app.model.pod import Pod
from app.model.resources import Matrix

NO_GROUP = GroupKey("")
"""The group of pods of other schedulers."""


class Protection(IntEnum):
    """Why a pod is not evicted for others, whatever the conf says; of several reasons the first."""

    NONE = 0
    FOREIGN = 1
    """The pod is of another scheduler."""
    SYSTEM = 2
    """The cluster itself depends on the pod."""
    STATIC = 3
    """A kubelet made the pod from a file."""
    DAEMON_SET = 4
    UNBOUND = 5
    """The pod has no node yet: its Binding may be under way."""
    ENDING = 6
    """The pod terminates, or is over, or its node is not heard of."""
    UNPREEMPTABLE = 7
    """The pod says itself that it is not preemptable."""


class PodKind(NamedTuple):
    """What rules look at that do not look at the single pod; ``request`` are bytes of a vector."""

    gang: GroupKey
    part: Part
    request: bytes
    priority: int


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """``P`` pods that run, are bound, or have a node reserved; arrays are read-only.

    ``nodes`` are rows of the node table, ``N`` for a node that is not in it. ``queues`` have no
    value for pods of other schedulers. ``requests`` has shape ``(P, R)``. ``priorities`` are those
    of tasks, ``created`` and ``started`` (0: not yet) seconds since the epoch. The masks tell of a
    pod: ``counted``, that its room counts as its group's allocation; ``bound``, that it has a node
    in the API server; ``releasing``, that it terminates. ``protected`` has a code of
    :class:`Protection`. ``saved`` is when a pod saved its work last, in seconds since the epoch: at
    its last checkpoint, without one at its start (0: it has not started); ``grace`` are the seconds
    that it may take to end. ``parts`` is what members count for, ``kinds`` tells pods apart as far
    as most rules do, ``index`` is the position of each.
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
    protected: NDArray[np.int8]
    saved: NDArray[np.float64]
    grace: NDArray[np.float64]
    kinds: Codes[PodKind]

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
    protected=np.zeros(0, dtype=np.int8),
    saved=np.zeros(0),
    grace=np.zeros(0),
    kinds=Codes.of(()),
)
"""What a snapshot has that was made for no question about evictions."""
