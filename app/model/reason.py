"""Why not: one typed reason per refusal, with its numbers.

The same :class:`Refusal` is rendered into the PodGroup condition, the event, ``/explain`` and the
command line; its :class:`Cause` is the metric label and picks the text that Filter answers with.
"""

from dataclasses import dataclass
from enum import StrEnum

from app.model.amounts import Amounts

TAKEN = "another pod took the room"
SMALLER = "node became smaller"
NO_ROOM = "its node has no room for it any more"
CLOSED = "node does not take pods any more"
NODE_GONE = "node is gone"
LOST_PLACE = frozenset({TAKEN, SMALLER, NO_ROOM, CLOSED, NODE_GONE})
"""Why a Bind fails of a pod that has to go elsewhere; kube-scheduler notes it on the pod."""
GUARANTEE = "guarantee of"
"""How a `Holder` begins that is no group: ``guarantee of queue a``."""
CHARGED_FIRST = "the member comes first that is charged for the devices that this one shares"
SCHEDULER = "scheduler"
"""The word for a scheduler that has bound pods of the group: ``scheduler default-scheduler``."""


class Cause(StrEnum):
    """What stands in the way; the value is the metric label."""

    NOT_ENOUGH_TASKS = "NotEnoughTasks"
    NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
    NOT_ENOUGH_RESOURCES = "NotEnoughResources"
    QUEUE_MISSING = "QueueMissing"
    QUEUE_CLOSED = "QueueNotOpen"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    QUEUE_BROKEN = "QueueTreeInvalid"
    QUEUE_QUOTA = "QueueQuota"
    QUEUE_ROOM = "QueueRoom"
    QUEUE_OVERUSED = "QueueOverused"
    CLUSTER_OVERUSED = "ClusterOverused"
    NAMESPACE_QUOTA = "ResourceQuota"
    NO_NODE_FITS = "NoNodeFits"
    NODE_GROUP = "NodeGroup"
    NODE_LOAD = "NodeLoad"
    NUMA = "NumaTopology"
    DEVICES = "Devices"
    VOLUMES = "Volumes"
    HTTP_EXTENDER = "HttpExtender"
    DEVICE_CLAIMS = "DeviceClaims"
    VETOED = "Vetoed"
    SCHEDULER_REFUSES = "SchedulerRefuses"
    IN_PREBIND = "InPreBind"
    GATED = "Gated"
    NOT_ADMITTED = "NotAdmitted"
    GROUP_MISSING = "PodGroupMissing"
    COOLING_DOWN = "CoolingDown"
    COLLECTING = "Collecting"
    QUEUE_ORDER = "QueueOrder"
    STANDS_BACK = "StandsBack"
    PIPELINED = "Pipelined"
    PLANNING_FAILED = "PlanningFailed"
    NO_DOMAIN = "NoDomain"
    TOPOLOGY_AFFINITY = "TopologyAffinity"


NODES_MAY_HELP = frozenset(
    {
        Cause.NOT_ENOUGH_RESOURCES,
        Cause.NO_NODE_FITS,
        Cause.NODE_GROUP,
        Cause.NODE_LOAD,
        Cause.NUMA,
        Cause.DEVICES,
        Cause.VOLUMES,
        Cause.HTTP_EXTENDER,
        Cause.DEVICE_CLAIMS,
        Cause.VETOED,
        Cause.CLUSTER_OVERUSED,
        Cause.QUEUE_OVERUSED,
        Cause.QUEUE_QUOTA,
        Cause.QUEUE_ROOM,
        Cause.COLLECTING,
        Cause.STANDS_BACK,
        Cause.NO_DOMAIN,
        Cause.TOPOLOGY_AFFINITY,
    }
)
"""Causes that a larger cluster may take away."""

MEMBERS_MISSING = frozenset({Cause.NOT_ENOUGH_TASKS, Cause.NOT_ENOUGH_PODS_OF_TASK})
"""Causes that no room takes away: members have to be created."""


class Never(StrEnum):
    """What keeps a request from ever being met, whatever else ends; the value is for programs.

    Only a change of the request, of a limit or of the nodes helps. The sentence of a refusal names
    it (:mod:`app.core.texts`).
    """

    QUEUE = "QueueTooSmall"
    GUARANTEES = "GuaranteesTooLarge"
    NAMESPACE = "ResourceQuotaTooSmall"
    CLUSTER = "ClusterTooSmall"
    ABSENT = "ResourceAbsent"
    NODES = "NodesTooSmall"
    RULED_OUT = "NodesRuledOut"
    DOMAINS = "DomainsTooSmall"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """``resource``: ``asked`` is more than ``free`` of ``limit`` (base units of the axis)."""

    resource: str
    asked: int
    free: int
    limit: int | None = None
    """What there is in all, free or not; None: not known or not meaningful."""
    stretched_from: int | None = None
    """What there really is, where ``limit`` and ``free`` are stretched by overcommit."""
    idle: int = 0
    """What is really free then."""
    terminating: int = 0
    """Of what is not free: what terminating pods have."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of what is missing: a group or queue, and how much of the resource it has."""

    who: str
    resource: str
    amount: int


@dataclass(frozen=True, slots=True)
class NodeCount:
    """``nodes`` nodes refused for the same ``text`` (``Insufficient cpu``)."""

    text: str
    nodes: int


@dataclass(frozen=True, slots=True)
class NoVictims:
    """Why no eviction makes room: of ``candidates`` pods each rule spares so many.

    ``bound`` says what is lacking even if all others were evicted, empty where none is left.
    """

    action: str
    candidates: int
    spared: tuple["Spared", ...]
    bound: str = ""


@dataclass(frozen=True, slots=True)
class Spared:
    """``pods`` pods are not evicted for the same ``reason`` (``same priority``)."""

    reason: str
    pods: int


@dataclass(frozen=True, slots=True)
class NearestDomain:
    """The domain that takes the most members: how many, and what it has too little of for all.

    ``lacks`` is empty where the room is there and lies in pieces that are too small. ``empty``: the
    numbers are those that it would have if nothing ran there. ``parts``: it has room for members,
    and for so many whole sub-groups only, each in its domain; None: that is not what is lacking.
    """

    name: str
    takes: int
    lacks: Amounts
    empty: bool = False
    parts: int | None = None


@dataclass(frozen=True, slots=True)
class Closeness:
    """How close the ``members`` of a gang are that hold room, and how close they could be at best.

    They are in ``domain``, the lowest that has all of them. ``lowest`` is a bound: no domain of a
    lower tier would hold them if it were empty, by resources alone. ``nearest`` is the domain below
    ``tier`` that takes the most of them now, had they no room elsewhere; None: ``tier`` is lowest.
    """

    members: int
    domain: str
    tier: int
    lowest: int
    nearest: NearestDomain | None = None


@dataclass(frozen=True, slots=True)
class NoDomain:
    """Why no domain of the network takes the members: ``asked`` of them, ``each`` with so much.

    ``alike``: all of them request that. ``tier`` is the highest allowed one; None: no HyperNode has
    the tier ``tier_name``.
    ``placed_members_are_too_far_apart``: no allowed domain contains all nodes that members are on.
    """

    asked: int
    each: Amounts
    alike: bool
    tier: int | None
    tier_name: str = ""
    placed_members_are_too_far_apart: bool = False
    nearest: NearestDomain | None = None
    named_tiers: tuple[str, ...] = ()
    """The names that tiers have, the lowest first, where none has the name that is asked for."""
    parts: int = 0
    """How many sub-groups have to be whole."""
    is_bare: bool = False
    """Whether the cluster has no domains at all: no HyperNode is known yet."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One "no".

    ``where`` is a queue name, ``cluster``, a namespace or a task's role; ``shortfalls`` the
    numbers; ``nodes`` the histogram of node verdicts out of ``total_nodes`` (where a queue or the
    cluster has no room: of nodes that take no pods); ``detail`` the Volcano text that belongs to
    the cause when it is not derivable from the rest.
    """

    cause: Cause
    where: str = ""
    shortfalls: tuple[Shortfall, ...] = ()
    nodes: tuple[NodeCount, ...] = ()
    total_nodes: int = 0
    holders: tuple[Holder, ...] = ()
    detail: str = ""
    since: float = 0.0
    """When the refusal began (seconds since the epoch), where that matters; else 0."""
    note: str = ""
    """What is told besides, such as why no pods are evicted for the group."""
    lacking: int = 0
    """Of a group: how many members of its minimum find no place while the others would."""
    never: Never | None = None
    """Why no end of other pods helps; None: it may."""
    no_victims: tuple[NoVictims, ...] = ()
    """Why no eviction helps, of each action that was asked."""
    domain: NoDomain | None = None
    """Why no domain of the network takes the members, where that is the cause."""
