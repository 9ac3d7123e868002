"""What a plugin can decide, as callable types.

A plugin module has a function ``configure(conf) -> OpenPlugin`` that checks the plugin's arguments
once. Opening the plugin reads the snapshot (shares, deserved amounts) and returns the hooks it
takes part in; hooks read the running numbers from the ledger and change nothing.
:class:`Policies` is what the configuration selects; opening it on a ledger gives
:class:`~app.core.points.Opened`, where the tiers are already combined as volcano.md §3.3 says, so
the actions never see a plugin.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from app.core.ledger import Ledger
from app.core.victim_rules import (
    EvictionRule,
    Preemptive,
    RevokedPods,
    VictimOrder,
    VictimQueueCompare,
    VictimTasks,
)
from app.model.conf import PluginConf, SchedulerConf
from app.model.eviction import GangEvictions
from app.model.exchange import Exchange
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.parts import SubGroup
from app.model.reason import Cause, Refusal
from app.model.resources import Mask, Matrix, Rows, Scores, Vector


class Vote(IntEnum):
    """A vote of JobEnqueueable or JobPipelined."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Ballot(NamedTuple):
    """A vote, with the reason when it is a rejection."""

    vote: Vote
    refusal: Refusal | None = None


PERMIT = Ballot(Vote.PERMIT)
ABSTAIN = Ballot(Vote.ABSTAIN)

GangKey = Callable[[Gang], Any]
"""Sort key of a gang: smaller goes first."""
TaskKey = Callable[[Task], Any]
TaskOrder = Callable[[Gang], TaskKey | None]
"""Sort key of the members and slots of a gang: smaller goes first. None: the plugin has no say."""
QueueCompare = Callable[[QueueName, QueueName], int]
"""Negative: the first queue goes first."""
Enqueueable = Callable[[Gang], Ballot]
Enqueued = Callable[[Gang], None]
Validity = Callable[[Gang], Refusal | None]
Allocatable = Callable[[QueueName, Task], Refusal | None]
Excess = Callable[[QueueName], Vector]
"""By how much a queue, or one above it, holds more than its limit, shape ``(R,)``."""
Overused = Callable[[QueueName], Refusal | None]
GangTest = Callable[[Gang], bool]
IsBelowShare = Callable[[QueueName, Vector], bool]
"""Whether the queue, with so much more, holds no more than it deserves; shape ``(R,)``.

A resource of which the queue holds nothing yet does not count against it.
"""
Patience = Callable[[Gang], float | None]
"""Seconds that a gang waits before room is collected for it; None: the plugin does not say."""


@dataclass(frozen=True, slots=True)
class Borrowing:
    """Whether queues may hold more than their share while no entitled gang can use the room.

    ``patience_s``: seconds that an entitled gang waits before room is collected for it; None: the
    plugin does not say.
    """

    enabled: bool = True
    patience_s: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class QueueShare:
    """Where a queue stands: what it deserves now, and at most; vectors of shape ``(R,)``.

    ``share`` is what it holds of ``deserved``; ``with_children``: its children's groups count too.
    ``ancestors``: so many of the queues above it may take room from others for it.
    """

    deserved: Vector
    real_capability: Vector
    share: float
    with_children: bool = False
    ancestors: int = 0


class NodesNow(NamedTuple):
    """``rows`` of the node table, shape ``(K,)``, and what is ``free`` of each, shape ``(R, K)``.

    That is as the ledger stands. ``ahead``: what is about to be free counts as free.
    """

    rows: Rows
    free: Matrix
    ahead: bool = False


NodeKey = Callable[[Gang, Task], Hashable | None]
"""What an answer about a node depends on beside what is free there; None: there is no answer.

Answers of equal keys are equal as long as what is free on the node is. Of the task that is its
shape and request alone, or futile attempts would be repeated or spared wrongly.
"""


@dataclass(frozen=True, slots=True, eq=False)
class NodeRule:
    """Which nodes a task of a gang may go to; ``text`` is what is said of a node that is refused.

    ``allows`` answers for each of the given nodes. Where the rule alone keeps the task from them,
    the refusal is of its ``cause``, and ``details`` are the numbers and names that it tells of the
    nodes which are refused.
    """

    text: str
    key: NodeKey
    allows: Callable[[Gang, Task, NodesNow], Mask]
    cause: Cause = Cause.NO_NODE_FITS
    details: Callable[[Gang, Task, NodesNow], str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NodeScore:
    """How much a plugin likes nodes for a task of a gang, 0 to 100 times its weight."""

    key: NodeKey
    score: Callable[[Gang, Task, NodesNow], Scores]


DomainScore = Callable[[Gang, Vector], Scores]
"""How much a plugin likes each domain, shape ``(D,)``, for a gang that asks for so much still."""

NodeArea = Callable[[Gang, SubGroup | None], Mask | None]
"""The nodes left to waiting members of a gang, or of a sub-group, shape ``(N,)``; None: all."""
PlaceClass = Callable[[Gang, Task, int], Exchange]
"""The class of the place that a task of a gang has on the node of a row."""


QueueShares = Callable[[QueueName], QueueShare]
"""Raises ``KeyError`` for a queue that does not exist."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a plugin may look at when it opens: the ledger (and its snapshot) and the time.

    ``now`` is seconds since the epoch.
    """

    ledger: Ledger
    conf: SchedulerConf
    now: float


@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """Node scoring weights, summed over all plugins that score (volcano.md §3.6).

    ``binpack`` is resource name -> weight with ``binpack_weight`` over all of it.
    """

    least_requested: int = 0
    most_requested: int = 0
    balanced: int = 0
    node_affinity: int = 0
    pod_affinity: int = 0
    taint_toleration: int = 0
    image_locality: int = 0
    topology_spread: int = 0
    binpack_weight: int = 0
    binpack: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Predicates:
    """Which node predicates are on (volcano.md §3.6, predicates); resources are always checked."""

    enabled: bool = True
    node_affinity: bool = True
    node_ports: bool = True
    taints: bool = True
    pod_affinity: bool = True
    topology_spread: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Hooks:
    """The extension points one plugin takes part in; None: it does not."""

    gang_order: GangKey | None = None
    task_order: TaskOrder | None = None
    queue_order: QueueCompare | None = None
    gang_valid: Validity | None = None
    enqueueable: Enqueueable | None = None
    admissible: Enqueueable | None = None
    enqueued: Enqueued | None = None
    allocatable: Allocatable | None = None
    borrowable: Allocatable | None = None
    permitted: Allocatable | None = None
    excess: Excess | None = None
    overused: Overused | None = None
    is_below_share: IsBelowShare | None = None
    borrowing: Borrowing | None = None
    patience: Patience | None = None
    gang_ready: GangTest | None = None
    scoring: Scoring | None = None
    predicates: Predicates | None = None
    node_rules: Sequence[NodeRule] | None = None
    node_score: NodeScore | None = None
    node_area: NodeArea | None = None
    domain_score: DomainScore | None = None
    place_class: PlaceClass | None = None
    queue_shares: QueueShares | None = None
    starving: GangTest | None = None
    pipelined: Enqueueable | None = None
    preemptable: EvictionRule | None = None
    reclaimable: EvictionRule | None = None
    unified_evictable: EvictionRule | None = None
    preemptive: Preemptive | None = None
    victim_order: VictimOrder | None = None
    victim_queue_order: VictimQueueCompare | None = None
    most_domains: int | None = None
    """In how many domains of each tier victims are looked for at most."""
    victim_tasks: VictimTasks | None = None
    revoked: RevokedPods | None = None


OpenPlugin = Callable[[Session], Hooks]
Configure = Callable[[PluginConf], OpenPlugin]
"""Checks a plugin's arguments; raises ``ConfError``."""


@dataclass(frozen=True, slots=True, eq=False)
class Policies:
    """A checked configuration and the plugins it names, ready to open on a ledger."""

    conf: SchedulerConf
    tiers: Sequence[Sequence[tuple[PluginConf, OpenPlugin]]]
    gang_evictions: GangEvictions = field(default_factory=dict)
