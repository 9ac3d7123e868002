"""The rows that the page shows. Times are seconds since the epoch, amounts name -> integer.

Units of amounts are those of :mod:`app.model.amounts`. What is missing in an amount is 0, but in a
``limit``: of that no limit is known. ``key`` is unique among the rows of a kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

AmountOf = Mapping[str, int]
NO_AMOUNT: Final[AmountOf] = {}


class Section(StrEnum):
    """The kinds of rows, as the view calls its lists."""

    QUEUES = "queues"
    JOBS = "jobs"
    NODES = "nodes"
    DOMAINS = "domains"
    FUTURE = "future"


class Stage(StrEnum):
    """How far a job has come."""

    SUBMITTED = "submitted"
    ENQUEUED = "enqueued"
    """The queue takes the job, which has no places yet."""
    PLANNED = "planned"
    """Room is kept for its members."""
    HELD = "held"
    """Members have come to Bind and wait at the barrier for the others."""
    BOUND = "bound"
    """The minimum is on nodes."""
    RUNNING = "running"
    ENDED = "ended"


class RowKey(NamedTuple):
    """Which row of which kind."""

    section: Section
    key: str


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue; sums have its children's in them where the policies look at the tree of queues.

    ``deserved`` is what the queue is entitled to now, ``deserved_set`` what its object says;
    ``asked`` has what is held in it. ``limit`` is the most that the queue may hold now. None: no
    plugin works that out. ``waiting`` and ``running`` count groups of the queue itself.
    """

    key: str
    name: str
    parent: str
    state: str
    weight: int
    priority: int
    reclaimable: bool
    capability: AmountOf
    deserved_set: AmountOf
    guarantee: AmountOf
    deserved: AmountOf | None
    held: AmountOf
    asked: AmountOf
    limit: AmountOf | None
    borrowed: AmountOf | None
    share: float | None
    overused: bool
    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class MembersOf:
    """How many members a job has in each state; ``min`` is its minimum, ``total`` all there are.

    ``placed`` are those with a reservation that are not bound yet, ``slots`` places that are kept
    for members to come.
    """

    min: int
    total: int
    waiting: int
    gated: int
    placed: int
    bound: int
    running: int
    releasing: int
    succeeded: int
    failed: int
    slots: int


@dataclass(frozen=True, slots=True)
class PlaceInLine:
    """The job is the ``position``-th (1: the first) of so many waiting groups of its queue."""

    position: int
    of: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """When the job is expected to start.

    It starts by ``at`` with a probability of a half, by ``late`` with nine tenths (None: that is
    not known). ``text`` says on what that rests; without ``at``, how far ahead it does not start.
    """

    at: float | None
    late: float | None
    text: str


@dataclass(frozen=True, slots=True)
class JobRow:
    """A PodGroup or a single pod; ``name`` is that of the job or pod, ``group`` of the PodGroup.

    ``outlook``: ``never`` (no end of other pods helps), ``not yet``, or empty where nothing is
    missing. ``started``: since when the minimum is on nodes, as far as this process saw it.
    ``evicting`` counts the pods that are being evicted for it. ``trouble`` says how many of its
    pods do not do their work though they have nodes, and why the first of them does not.
    """

    key: str
    namespace: str
    group: str
    name: str
    kind: str
    owner: str
    queue: str
    phase: str
    stage: Stage
    members: MembersOf
    priority: int
    created: float
    started: float | None
    held: AmountOf
    asked: AmountOf
    waits: bool
    cause: str
    reason: str
    outlook: str
    place: PlaceInLine | None
    held_at_barrier: int
    evicting: int
    trouble: str
    eta: Estimate | None


@dataclass(frozen=True, slots=True)
class Share:
    """What pods of one job have on a node; ``others``: of jobs that are not named."""

    job: str
    queue: str
    pods: int
    amounts: AmountOf
    others: bool = False


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node, and whose pods are on it.

    ``reserved`` is the part of ``used`` that reservations take, ``releasing`` the part
    whose pods are terminating; ``kept`` is idle room that is kept for groups that wait for more.
    ``path`` are the domains of the network around it, the widest first.
    """

    key: str
    name: str
    ready: bool
    cordoned: bool
    allocatable: AmountOf
    used: AmountOf
    reserved: AmountOf
    releasing: AmountOf
    kept: AmountOf
    by: tuple[Share, ...]
    zone: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DomainRow:
    """A domain of the network with the sums of its nodes; ``parent`` empty: it is a widest one."""

    key: str
    name: str
    tier: int
    tier_name: str
    parent: str
    nodes: int
    allocatable: AmountOf
    used: AmountOf


@dataclass(frozen=True, slots=True)
class FutureRow:
    """What is to come of a job: ``kind`` is planned, evicting, collecting or expected.

    ``since`` is when it was decided, ``at`` when it is expected (None: not known), ``amounts`` is
    the room that it takes.
    """

    key: str
    kind: str
    job: str
    queue: str
    since: float
    at: float | None
    pods: int
    nodes: int
    amounts: AmountOf
    text: str


Row = QueueRow | JobRow | NodeRow | DomainRow | FutureRow


@dataclass(frozen=True, slots=True)
class IdleOf:
    """Idle room of a resource: what pods of one shape can use of it, and what they cannot."""

    idle: int
    usable: int
    stranded: int


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """How much idle room lies in pieces that are too small for a pod of ``shape``.

    ``basis``: ``waiting`` (the request that most waiting members have), ``running`` (nothing
    waits: that of most members with a place), or empty (there are no members). ``fits`` pods of
    that shape fit one by one. Looked at are resources alone, node by node.
    """

    shape: AmountOf
    basis: str
    fits: int
    resources: Mapping[str, IdleOf]


@dataclass(frozen=True, slots=True)
class ClusterTotals:
    """Sums over the cluster; ``idle`` is that of nodes that take pods."""

    allocatable: AmountOf
    used: AmountOf
    idle: AmountOf
    nodes: int
    nodes_down: int
    nodes_cordoned: int
    jobs_waiting: int
    jobs_running: int
    pods_running: int
    pods_waiting: int
    fragmentation: Fragmentation


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """The last planning cycle: ``plan`` is the generation of the snapshot it was made on."""

    plan: int
    cycle_s: float
    last_cycle: float
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole view, as ``GET /view`` answered ``at`` that time.

    ``role``: ``leads`` or ``stands by``.

    ``notice`` is a sentence where there is nothing to show yet or another replica leads.
    ``resources`` are those worth showing, the most important first.
    """

    generation: int
    at: float
    role: str
    notice: str
    viewer: "ViewerOf"
    scheduler: SchedulerState
    resources: tuple[str, ...]
    cluster: ClusterTotals
    queues: tuple[QueueRow, ...]
    jobs: tuple[JobRow, ...]
    nodes: tuple[NodeRow, ...]
    domains: tuple[DomainRow, ...]
    future: tuple[FutureRow, ...]


@dataclass(frozen=True, slots=True)
class ViewerOf:
    """The reader, and whose rows it is told; None: those of all namespaces."""

    user: str
    namespaces: tuple[str, ...] | None


def without_others(row: NodeRow, namespaces: frozenset[str]) -> NodeRow:
    """The node for readers of these namespaces: the pods of all others in one entry."""
    mine = [each for each in row.by if each.job.partition("/")[0] in namespaces]
    rest = [each for each in row.by if each.job.partition("/")[0] not in namespaces]
    if not rest:
        return row
    amounts: dict[str, int] = {}
    for each in rest:
        for name, amount in each.amounts.items():
            amounts[name] = amounts.get(name, 0) + amount
    pods = sum(each.pods for each in rest)
    return replace(row, by=(*mine, Share("", "", pods, amounts, others=True)))
