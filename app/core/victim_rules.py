"""What plugins say of evictions: whose pods may go for a gang, which go first, and which move.

The hooks of a plugin hold these rules (:mod:`app.core.policy`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from numpy.typing import NDArray

from app.model.eviction import EvictionAction
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, QueueName
from app.model.parts import NO_SUB_GROUP, Part
from app.model.pod import Pod
from app.model.reason import Refusal
from app.model.resources import Mask, Rows, Vector
from app.model.running import Running
from app.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Preemptor:
    """The gang that pods are to be evicted for.

    ``tasks`` are the members and slots that its minimum lacks, ``asked`` is what they request
    together, shape ``(R,)``; none of it is on the ledger when plugins are asked.
    """

    action: EvictionAction
    gang: Gang
    tasks: Sequence[Task]
    asked: Vector

    def coming_to(self, key: GroupKey) -> Sequence[Part]:
        """What members count for that come to the gang of ``key``: none but to its own."""
        if key != self.gang.key:
            return ()
        known = self.gang.sub_group_of
        return [Part(task.role, known.get(task.uid, NO_SUB_GROUP)) for task in self.tasks]


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A running pod of ours that may be evicted, at position ``at`` of ``snapshot.running``.

    ``request`` has the shape ``(R,)``; ``priority`` is that of the task, the group has its own.
    ``part`` is what its gang counts it for.
    """

    at: int
    pod: Pod
    gang: Gang
    part: Part
    request: Vector
    priority: int

    @classmethod
    def of(cls, snapshot: Snapshot, at: int) -> "Candidate":
        """The one at that position; raises ``KeyError`` for a pod without a group here."""
        running = snapshot.running
        return cls(
            at=at,
            pod=running.pods[at],
            gang=snapshot.gangs[running.gangs[at]],
            part=running.parts[at],
            request=running.requests[at],
            priority=int(running.priorities[at]),
        )


Evictable = Callable[[Preemptor, Candidate], bool | None]
"""Whether a plugin lets the candidate go as the ledger stands; None: the plugin has no say.

The ledger tells what was evicted before. With more evictions an answer may turn from yes to no, and
never back.
"""


Together = Callable[[Preemptor, Collection[int]], bool]
"""Whether a plugin lets pods of one gang go at once of which it lets each go by itself.

They are positions in ``snapshot.running``; the ledger stands as before the first of them goes.
"""


class Trait(Enum):
    """Something of a candidate that a rule may look at."""

    QUEUE = "queue"
    GANG = "gang"
    GANG_PRIORITY = "gang priority"
    PART = "part"
    REQUEST = "request"
    PRIORITY = "priority"
    """Of the task, not of its gang."""


KIND = frozenset({Trait.GANG, Trait.PART, Trait.REQUEST, Trait.PRIORITY})
"""The traits that a :class:`~app.model.running.PodKind` tells."""


@dataclass(frozen=True, slots=True, eq=False)
class EvictionRule:
    """What one plugin says of candidates; ``name`` is the plugin's.

    ``spares`` says of pods why it does not let them go, after a number ("7 same priority").
    ``looks_at``: candidates that have these traits in common have the same answer, and one of them
    is asked about. Whether they are of the preemptor's gang may always be looked at. ``by_pod``:
    the rule looks at the single pod instead, and says no, or nothing; its no counts whichever tier
    decides. ``binds``: this no counts whichever tier decides, too. ``among_equals``: its yes lets a
    gang evict members of a gang of the same priority.
    """

    name: str
    allows: Evictable
    spares: str
    looks_at: frozenset[Trait] = KIND
    by_pod: bool = False
    binds: bool = False
    among_equals: bool = False
    beside: "EvictionRule | None" = None
    """What the plugin says of single pods besides: a rule ``by_pod``."""
    together: Together | None = None
    """What the plugin says of pods that go at once; only a rule that ``binds`` may have a say."""


Preemptive = Callable[[Preemptor], Refusal | None]
"""Whether the queue of the preemptor may take so much from other queues; None: yes."""


VictimOrder = Callable[[Running, Rows], NDArray[Any]]
"""Numbers for these positions, shape ``(C,)``: within a gang the smaller goes first."""


VictimQueueCompare = Callable[[Preemptor, QueueName, QueueName], int]
"""Negative: victims of the first queue go first."""


class NodeExcess(NamedTuple):
    """More of a resource is taken on a node than the ``most`` that is wanted there.

    ``node`` is a row of the node table, ``resource`` a column of the axis. ``beyond``: what is
    taken is what the node measures, and this much more than its pods request; None: requests count.
    """

    node: int
    resource: int
    most: int
    beyond: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class VictimTasks:
    """Pods that one plugin wants on other nodes; ``name`` is the plugin's.

    ``wanted`` takes positions in ``snapshot.running`` and gives those of the pods that are to go,
    first in front. The other two answer as the ledger stands: ``excess`` says why the pod at a
    position is to go (None: it may stay), ``takes`` has the nodes that may get what the pod
    requests (shape ``(R,)``), as a mask of shape ``(N,)``.
    """

    name: str
    wanted: Callable[[Rows], Sequence[int]]
    excess: Callable[[int], NodeExcess | None]
    takes: Callable[[Vector], Mask]


@dataclass(frozen=True, slots=True, eq=False)
class RevokedPods:
    """Pods that have to leave their nodes though no gang asks; ``name`` is the plugin's.

    ``leaving`` takes positions in ``snapshot.running`` and gives those of the pods that are to go,
    with what their nodes have too much of.
    """

    name: str
    leaving: Callable[[Rows], Mapping[int, NodeExcess]]
