"""PodGroups and queues: what is asked for, and under whose limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from app.model.amounts import Amounts
from app.model.booleans import boolean
from app.model.ids import DEFAULT_QUEUE, NO_QUEUE, GroupKey, QueueName, group_key
from app.model.parts import Policies
from app.model.pod import said_preemptable
from app.model.topology import ALLOCATED, NetworkTopology, TopologyAffinity

EVICTION_ENDS: Final = "pumice.sh/eviction-ends"
"""Annotation of a PodGroup: what ends when one of its pods is evicted."""
JOB_ENDS: Final = "job"
"""The value where a policy of the owning job answers an eviction by ending all its pods."""

STRANDED_RELEASED: Final = "pumice.sh/stranded-released"
"""Annotation of a PodGroup that is below its minimum: since when no room is kept for the rest."""
EVICT_OVER_CAPABILITY: Final = "pumice.sh/evict-over-capability"
"""Annotation of a queue: whether pods are evicted that it holds beyond its capability."""
AFFINITY: Final = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER: Final = "volcano.sh/task-topology-task-order"
TASK_TOPOLOGY: Final = frozenset({AFFINITY, ANTI_AFFINITY, TASK_ORDER})
"""Annotations of a PodGroup: which tasks belong together, which do not, and in what order."""
NODE_GROUP: Final = "volcano.sh/nodegroup-name"
"""Label of a node: the node group that it belongs to."""
NODE_GROUP_LIMITS: Final = "volcano.sh/nodegroup-resource-limits"
"""Annotation of a queue: a JSON object, node group -> resource list."""


class GroupPhase(StrEnum):
    """PodGroup phases (volcano.md §4.1); a new group has the empty one."""

    NEW = ""
    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


class QueueState(StrEnum):
    """Queue states (volcano.md §4.3); a queue has the empty one until a controller looked at it."""

    NEW = ""
    OPEN = "Open"
    CLOSING = "Closing"
    CLOSED = "Closed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a PodGroup, as stored; ``changed`` is RFC 3339 text."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    transition_id: str = ""
    changed: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class PodGroup:
    """A PodGroup object. ``role_minimum`` is ``minTaskMember``; ``min_resources`` None: unset.

    ``sub_groups`` is ``subGroupPolicy``, empty when it asks for nothing but single members.
    ``min_limits`` are the lines of these that quotas have for limits, ``limits.cpu``.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    created: float
    min_member: int = 0
    role_minimum: Mapping[str, int] = field(default_factory=dict)
    sub_groups: Policies = ()
    topology: NetworkTopology | None = None
    """The domain that all members ask for; None: none."""
    affinity: TopologyAffinity | None = None
    """Where members go by where others are; None: the group does not say."""
    queue: QueueName = DEFAULT_QUEUE
    priority_class: str = ""
    min_resources: Amounts | None = None
    min_limits: Amounts = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    phase: GroupPhase = GroupPhase.NEW
    conditions: tuple[Condition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    deleting: bool = False
    owner_kind: str = ""
    """Kind of the controlling owner (``Job`` of ``batch.volcano.sh`` for a vcjob's group)."""
    owner_uid: str = ""
    generation: int = 0
    reached: Mapping[str, int] = field(default_factory=dict)
    """The largest minimum that the gang has had on nodes (:mod:`app.model.reached`), as stored."""

    @property
    def key(self) -> GroupKey:
        """``namespace/name``."""
        return group_key(self.namespace, self.name)

    @property
    def domain(self) -> str:
        """The domain of the network that the group was said to be in; empty: none."""
        return self.annotations.get(ALLOCATED, "")

    @property
    def looks_at_network(self) -> bool:
        """Whether the group, or a sub-group, asks for a domain of the network."""
        parts = (policy.topology for policy in self.sub_groups)
        return any(each is not None for each in (self.topology, *parts))

    @property
    def ends_whole(self) -> bool:
        """Whether the loss of one member ends all, as its owner says (:data:`EVICTION_ENDS`)."""
        return self.annotations.get(EVICTION_ENDS) == JOB_ENDS

    @property
    def released(self) -> bool:
        """Whether no room is kept for members that its gang lacks (:data:`STRANDED_RELEASED`)."""
        return bool(self.annotations.get(STRANDED_RELEASED))

    @property
    def preemptable(self) -> bool | None:
        """What the group says about the eviction of members that do not say; None: nothing."""
        return said_preemptable(self.annotations, self.labels)

    @property
    def minimum(self) -> tuple[object, ...]:
        """What must be placed together, to be compared; a status counts in ``generation`` too."""
        return self.min_member, self.role_minimum, self.sub_groups, self.min_resources


@dataclass(frozen=True, slots=True)
class NodeGroupRules:
    """A queue's ``affinity``: names of node groups (:data:`NODE_GROUP`), in the order given.

    ``required`` and ``preferred`` are those of ``nodeGroupAffinity``, ``banned`` and ``avoided``
    the required and the preferred ones of ``nodeGroupAntiAffinity``.
    """

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()

    @property
    def are_set(self) -> bool:
        """Whether the rules name any group."""
        return bool(self.required or self.preferred or self.banned or self.avoided)

    def allow(self, group: str) -> bool:
        """Whether pods may go to nodes of ``group``: what is avoided is not forbidden."""
        wanted = group in self.required or group in self.preferred
        return group in self.avoided or (wanted and group not in self.banned)


DEEPEST_QUEUE: Final = 64
"""How many levels below the root count, in the tree of queues and in that of their annotations."""
HIERARCHY: Final = "volcano.sh/hierarchy"


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """A queue. Limits that are not set are absent from their amounts; ``parent`` empty: root."""

    name: QueueName
    uid: str
    resource_version: str
    created: float
    weight: int = 1
    capability: Amounts = ()
    deserved: Amounts = ()
    guarantee: Amounts = ()
    parent: QueueName = NO_QUEUE
    reclaimable: bool = True
    priority: int = 0
    in_order: bool = False
    """``dequeueStrategy: fifo``: no group gets a place before those ahead of it have theirs."""
    state: QueueState = QueueState.NEW
    annotations: Mapping[str, str] = field(default_factory=dict)
    allocated: Amounts = ()
    """``status.allocated`` as stored (to write it only on change)."""
    node_groups: NodeGroupRules | None = None
    """On which node groups its pods go; None: the queue does not say."""
    node_group_limits: Mapping[str, Amounts] | None = field(default_factory=dict)
    """How much its pods may take of node groups together; None: the annotation is malformed."""
    deleting: bool = False

    @property
    def evicts_over_capability(self) -> bool:
        """Whether pods are evicted that the queue holds beyond its capability."""
        return boolean(self.annotations.get(EVICT_OVER_CAPABILITY, "")) is True

    @property
    def way(self) -> tuple[str, ...]:
        """The names below the root that the annotation for hierarchical shares gives the queue.

        At most :data:`DEEPEST_QUEUE` of them: admission refuses more.
        """
        names = self.annotations.get(HIERARCHY, "").split("/", DEEPEST_QUEUE + 1)
        return tuple(names[1 : DEEPEST_QUEUE + 1])

    @property
    def is_open(self) -> bool:
        """Whether the queue takes new groups; a queue without a state is open."""
        return self.state in (QueueState.OPEN, QueueState.NEW) and not self.deleting

    @property
    def limits(self) -> tuple[object, ...]:
        """What decides how much the queue may hold, to be compared: most updates are of status."""
        shares = self.weight, self.capability, self.deserved, self.guarantee
        groups = self.node_groups, self.node_group_limits
        return (*shares, *groups, self.parent, self.is_open, self.in_order)


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass."""

    name: str
    value: int
    is_default: bool = False
    preempts: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Namespace:
    """A namespace's labels (affinity) and annotations (default queue)."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota: ``hard`` and ``used`` by quota name (``requests.cpu``, ``pods``)."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts
    scoped: bool = False
    """Has scopes or a scope selector: such quotas are not looked at (volcano.md §3.6)."""
