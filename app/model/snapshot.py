"""What one planning cycle looks at: an immutable picture of the cluster.

Arrays are read-only; ``N`` nodes, ``R`` resources of the axis.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.model.device_families import DEFAULT_DEVICES, DeviceConfig, DevicesTaken, NodeDevices
from app.model.device_slices import ClaimedDevices
from app.model.disruption import DisruptionBudget
from app.model.domains import Domains
from app.model.eviction import EvictionPlan
from app.model.gang import Gang
from app.model.http_extender import NOT_ASKED as NO_ANSWERS
from app.model.http_extender import HttpExtenderFacts
from app.model.ids import ROOT_QUEUE, GroupKey, NodeName, PodUid, QueueName
from app.model.load import NodeLoad
from app.model.node import Node
from app.model.numa import Cpus, NumaNode
from app.model.parts import NO_SUB_GROUP, SubGroup
from app.model.placed_pods import NOBODY, PlacedPods
from app.model.plan import Collected
from app.model.resources import Matrix, ResourceAxis, Vector
from app.model.running import NOT_ASKED, Running
from app.model.shape import HostPort, PodShape
from app.model.volumes import NO_VOLUMES, Volumes
from app.model.workload import DEEPEST_QUEUE, Namespace, Queue, Quota


@dataclass(frozen=True, slots=True, eq=False)
class NodeTable:
    """The nodes, sorted by name. ``generation`` changes when anything but usage changed.

    ``allocatable`` has shape ``(N, R)`` and is zero in rows of nodes that are not ready, which are
    ``away``; ``cordoned`` are rows of nodes that are ready. ``total`` (shape ``(R,)``) is the sum
    of the other rows.
    """

    axis: ResourceAxis
    nodes: tuple[Node, ...]
    index: Mapping[NodeName, int]
    allocatable: Matrix
    total: Vector
    away: tuple[int, ...]
    cordoned: tuple[int, ...]
    generation: int

    def sizes(self) -> Matrix:
        """What each node has to give, shape ``(N, R)``, also those that are ``away``."""
        if not self.away:
            return self.allocatable
        sizes = self.allocatable.copy()
        for row in self.away:
            sizes[row] = np.maximum(sizes[row], self.axis.vector(self.nodes[row].allocatable))
        return sizes

    def total_with(
        self, used: Callable[[list[int]], Matrix], *, asked_of_cordoned: Vector | None
    ) -> Vector:
        """What the cluster has, shape ``(R,)``, for shares and limits.

        ``used`` gives what runs on the nodes of these rows, shape ``(A, R)``. Of nodes that are
        away or cordoned that counts, as it counts for the queue that it belongs to. What is free
        there does not count, as no queue can have it. The exception is what groups ask for whose
        pods tolerate the cordon (``asked_of_cordoned``): as much of a cordoned node does count.
        """
        if not (self.away or self.cordoned):
            return self.total
        total: Vector = self.total + used([*self.away, *self.cordoned]).sum(axis=0)
        if asked_of_cordoned is None or not self.cordoned:
            return total
        rows = list(self.cordoned)
        free = np.maximum(self.allocatable[rows] - used(rows), 0).sum(axis=0)
        total += np.minimum(free, asked_of_cordoned)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class QueueUsage:
    """What a queue's own groups (not its children's) amount to, each of shape ``(R,)``.

    ``allocated``: members with a place, slots included. ``request``: those and the waiting ones.
    ``inqueue``: what admitted groups may still claim of their ``minResources``.
    ``elastic``: what groups hold beyond their ``minResources``, where these are unset all of it.
    ``groups`` counts them. ``releasing``: members that terminate on nodes that are up, which count
    in none of the others (None: there are none). What the queue gets now must fit beside them; what
    it deserves, or holds of that, they do not change.
    """

    allocated: Vector
    request: Vector
    inqueue: Vector
    elastic: Vector
    groups: int = 0
    releasing: Vector | None = None
    committed: Vector | None = None
    """The part of ``inqueue`` that others may not take with their places; None: nothing."""


class MemberPlace(NamedTuple):
    """Where a member of ``role`` is, or has a place, or a slot; ``request`` has the shape (R,)."""

    node: NodeName
    role: str
    request: Vector
    sub_group: SubGroup = NO_SUB_GROUP


@dataclass(frozen=True, slots=True)
class Veto:
    """The stock filters refused ``node`` for ``shape`` (volumes, devices, …)."""

    shape: PodShape
    node: NodeName


@dataclass(frozen=True, slots=True)
class NominatedRoom:
    """Room on ``node`` for a pod that others were, or are about to be, evicted for.

    ``done``: as far as is known they have gone.
    """

    node: NodeName
    done: bool


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """Room on ``node``, shape ``(R,)``, that pods were evicted from for a pod without a gang here.

    It is not ours, or its PodGroup does not show yet.
    """

    node: NodeName
    request: Vector
    priority: int


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The cluster at one ``generation``.

    ``used`` (shape ``(N, R)``): everything bound, assumed or reserved; ``releasing``: the part of
    it whose pods are terminating. ``pending`` are the gangs of ``gangs`` that need a decision
    (waiting members, or not admitted yet, or members unseen); among them ``awaited`` are those that
    were admitted and lack members, ``torn`` those that are bound in part. ``shown`` are gangs with
    members for which their queue keeps room (:attr:`Task.shown`). ``nominated_room`` are pending
    gangs of no more than one with their waiting members that others were evicted for.
    ``placed_pods`` are filled only when some rule looks at pods (``inter_pod``); ``ports`` only has
    nodes with host ports in use.
    """

    generation: int
    table: NodeTable
    used: Matrix
    releasing: Matrix
    gangs: Mapping[GroupKey, Gang]
    pending: tuple[Gang, ...]
    awaited: tuple[Gang, ...]
    torn: tuple[Gang, ...]
    queues: Mapping[QueueName, Queue]
    usage: Mapping[QueueName, QueueUsage]
    shown: tuple[Gang, ...] = ()
    nominated_room: Mapping[GroupKey, Mapping[PodUid, NominatedRoom]] = field(default_factory=dict)
    collected: tuple[Collected, ...] = ()
    """Room that the last cycle kept for gangs which wait for more."""
    claims: tuple[Claim, ...] = ()
    """Of pods that are in none of ``gangs``, those of the highest priority first."""
    placed_pods: PlacedPods = NOBODY
    inter_pod: bool = False
    ports: Mapping[int, frozenset[HostPort]] = field(default_factory=dict)
    outlook: int = 0
    """Changes whenever something does that may help groups that were set aside."""
    vetoes: frozenset[Veto] = frozenset()
    places: Mapping[GroupKey, tuple[MemberPlace, ...]] = field(default_factory=dict)
    """Where members of groups are, that hold room: of groups that say which of their roles belong
    together, of those that ask for a domain of the network, and of those in queues with limits per
    node group; of all PodGroups while one of them asks where others are."""
    affine: tuple[Gang, ...] = ()
    """The gangs that have a ``topologyAffinity``."""
    domains: Domains | None = None
    """The domains of the network; None: no HyperNodes are known."""
    numa: Mapping[NodeName, NumaNode] = field(default_factory=dict)
    """The nodes of which a Numatopology tells."""
    numa_taken: Mapping[PodUid, Cpus] = field(default_factory=dict)
    """The cpus that pods on these have to themselves; they give them back when they go."""
    devices: Mapping[NodeName, tuple[NodeDevices, ...]] = field(default_factory=dict)
    """The devices that pods share, by family, of nodes that have some."""
    devices_taken: Mapping[PodUid, tuple[DevicesTaken, ...]] = field(default_factory=dict)
    """What pods have of these; they give it back when they go."""
    device_config: DeviceConfig = DEFAULT_DEVICES
    volumes: Volumes = NO_VOLUMES
    claimed_devices: ClaimedDevices | None = None
    """The devices that claims are about, and these claims; None: no pod has any."""
    loads: Mapping[NodeName, NodeLoad] = field(default_factory=dict)
    """How busy nodes are, as far as that was measured; filled only where a plugin asks for it."""
    http_extender: HttpExtenderFacts = NO_ANSWERS
    """What the server of the plugin ``extender`` has answered."""
    quotas: tuple[Quota, ...] = ()
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    asked_of_cordoned: Vector | None = None
    """What pending gangs ask for whose pods tolerate a cordon, shape ``(R,)``; None: there are no
    such gangs."""
    running: Running = NOT_ASKED
    """The pods that evictions may take; filled only for questions about evictions."""
    budgets: tuple[DisruptionBudget, ...] = ()
    """The PodDisruptionBudgets; filled with ``running``."""
    begun: tuple[EvictionPlan, ...] = ()
    """Evictions that were decided before: their preemptors wait for victims to go."""
    stuck: frozenset[PodUid] = frozenset()
    """Pods that were to be evicted and do not go: no plan counts on them."""
    paused: frozenset[GroupKey] = frozenset()
    """Groups that pods were evicted for in vain: none are evicted for these now."""
    coveting: tuple[PodShape, ...] = ()
    """What pods of other schedulers look like that wait for a node; filled with ``running``."""
    shuffled: float = 0.0
    """When pods were last evicted to run on other nodes (seconds since the epoch); 0: never."""
    revoked: float = 0.0
    """When pods were last evicted from nodes of a closed zone; as above."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """The values of PriorityClasses, by name."""

    @property
    def axis(self) -> ResourceAxis:
        """The axis of every vector in it."""
        return self.table.axis

    @property
    def total(self) -> Vector:
        """What the cluster has, see :meth:`NodeTable.total_with`."""
        return self.table.total_with(
            self.used.__getitem__, asked_of_cordoned=self.asked_of_cordoned
        )

    def terminating(self) -> Vector:
        """What terminating pods have on nodes that are not away, shape ``(R,)``."""
        away = list(self.table.away)
        found: Vector = self.releasing.sum(axis=0) - self.releasing[away].sum(axis=0)
        return found

    def ancestry(self, queue: QueueName) -> tuple[QueueName, ...]:
        """``queue`` and its ancestors up to the root, nearest first.

        Cut at a cycle, at a gap, and where the queue is more than `DEEPEST_QUEUE` levels below.
        """
        path: list[QueueName] = []
        at: QueueName | None = queue
        while at is not None and at in self.queues and at not in path:
            path.append(at)
            if at == ROOT_QUEUE or len(path) > DEEPEST_QUEUE:
                break
            at = self.queues[at].parent or ROOT_QUEUE
        return tuple(path)
