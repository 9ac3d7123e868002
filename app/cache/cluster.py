"""The live cluster: events in, reservations kept, snapshots out.

Every change comes as an *event* (``set_*``/``drop_*``, here and in :mod:`app.cache.pods`: what the
API server says) or as a *decision* of ours (:mod:`app.cache.reserved`, :mod:`app.cache.decisions`).
Both change members by one door, :mod:`app.cache.decisions`. The invariant after each call: the node
usage holds exactly one charge for every member that has a node (bound or reserved) and is not done,
one for every slot, and one for every foreign pod on a node; nothing else.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from app.cache.decisions import Decisions
from app.cache.device_claims import DeviceClaims
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, MemberState
from app.cache.gangs.registry import Registry
from app.cache.neighbours.rules import Rules
from app.cache.nodes.devices import DeviceUsage
from app.cache.nodes.domains import NetworkTree
from app.cache.nodes.loads import Loads
from app.cache.nodes.numa import NumaUsage
from app.cache.nodes.usage import NodeUsage
from app.cache.nodes.volumes import VolumeUsage
from app.cache.occupants import Occupants
from app.cache.pods import Pods
from app.cache.reserved.bind_steps import BindSteps
from app.cache.reserved.kept_slots import KeptSlots
from app.cache.reserved.losses import Losses
from app.cache.reserved.pipelined import Pipelined
from app.cache.reserved.reservations import Reservations
from app.cache.reserved.shortages import Shortages
from app.cache.reserved.unplaced_claims import UnplacedClaims
from app.model.device_claims import CountedClaims
from app.model.device_families import DeviceConfig, DeviceSetting
from app.model.disruption import DisruptionBudget
from app.model.http_extender import NOT_ASKED, HttpExtenderFacts
from app.model.ids import DEFAULT_QUEUE, ROOT_QUEUE, GroupKey, NodeName, PodUid, QueueName
from app.model.load import NodeLoad
from app.model.node import Node
from app.model.numa import NumaTopology
from app.model.plan import Collected
from app.model.pod import Pod
from app.model.reason import CLOSED, NODE_GONE, SMALLER
from app.model.resources import Vector
from app.model.topology import HyperNode
from app.model.workload import DEEPEST_QUEUE, GroupPhase, Namespace, PodGroup, Queue, Quota


def _undated() -> float:
    return 0.0


class ClusterCache:
    """Nodes, pods, groups, queues and every reservation, each in a part of its own.

    ``schedulers`` are the names that are ours; single pods that name no queue are in the
    ``default_queue``. ``clock`` dates what the stories of members and groups tell.
    """

    http_extender: HttpExtenderFacts = NOT_ASKED
    """What the server of the plugin ``extender`` has answered."""
    bind_timeout_s: float | None = None
    """How long the configuration lets kube-scheduler bind volumes; None: it does not say."""

    def __init__(
        self,
        *,
        schedulers: frozenset[str],
        default_queue: QueueName = DEFAULT_QUEUE,
        clock: Callable[[], float] = _undated,
    ) -> None:
        self._clock = clock
        self.node_usage = NodeUsage()
        self.network = NetworkTree()
        self.registry = Registry(self.node_usage, default_queue=default_queue)
        self.groups, self.signals = self.registry.groups, self.registry.signals
        self.namespaces = self.registry.namespaces
        self.members: dict[PodUid, Member] = {}
        self.rules = Rules()
        self.queues: dict[QueueName, Queue] = {}
        self.giving_up: set[QueueName] = set()
        """Queues whose pods beyond their capability are evicted."""
        self.quotas: dict[str, Quota] = {}
        self.budgets: dict[str, DisruptionBudget] = {}
        self.decisions = Decisions(self.registry, self.node_usage, clock=clock)
        self.slots = KeptSlots(self.node_usage, self.registry, self.rules)
        self.shortages = Shortages(self.node_usage, self.members, self.groups, self.decisions)
        self.losses = Losses(
            self.decisions,
            node_usage=self.node_usage,
            registry=self.registry,
            members=self.members,
            slots=self.slots,
            shortages=self.shortages,
        )
        occupants = Occupants(self.members, self.slots)
        self.numa = NumaUsage(self.node_usage, occupant=occupants.of_cpus)
        self.reservations = Reservations(
            self.decisions,
            node_usage=self.node_usage,
            numa=self.numa,
            registry=self.registry,
            members=self.members,
            rules=self.rules,
            network=self.network,
            slots=self.slots,
            losses=self.losses,
        )
        self.unplaced_claims = UnplacedClaims(self.registry)
        self.pipelined = Pipelined(self.node_usage, registry=self.registry, members=self.members)
        self.bind_steps = BindSteps(
            self.decisions,
            node_usage=self.node_usage,
            registry=self.registry,
            members=self.members,
            losses=self.losses,
        )
        self.pods = Pods(
            self.decisions,
            schedulers=schedulers,
            node_usage=self.node_usage,
            registry=self.registry,
            members=self.members,
            rules=self.rules,
            slots=self.slots,
            losses=self.losses,
            reservations=self.reservations,
        )
        self.device_claims = DeviceClaims(
            self.registry, self.members, see=self._see, classes_changed=self._follow_devices
        )
        occupants.others = self.pods.pod
        self.devices = DeviceUsage(self.node_usage, occupant=occupants.of_devices)
        self.volumes = VolumeUsage(self.node_usage, ask_of=occupants.volumes, told=self._look_again)
        self.loads = Loads(self.node_usage, shape_of=self.pods.shape_of, clock=clock)
        self._collected: tuple[Collected, ...] = ()

    @property
    def namespaces_heard_of(self) -> Collection[str]:
        """The namespaces that are known, those that are gone, and those of pods."""
        return self.registry.namespaces_heard_of

    @property
    def collected(self) -> tuple[Collected, ...]:
        """Free room that is kept for groups which wait for more, as the last cycle decided.

        Without what was decided before a resource became known: the next cycle keeps it anew.
        """
        width = len(self.node_usage.axis)
        return tuple(
            each
            for each in self._collected
            if all(len(amount) == width for _, amount in each.nodes)
        )

    def collect(self, collected: tuple[Collected, ...], *, now: float) -> None:
        """Keep this free room for groups that wait for more of it, and no other."""
        self._collected = collected
        for each in collected:
            group = self.groups.get(each.gang)
            if group is not None and not group.collecting_since:
                group.collecting_since = now
                self.registry.changed(group, replan=False)

    # --- events: pods ----------------------------------------------------------------------------

    def set_pod(self, pod: Pod, *, now: float, observed: bool = False) -> None:
        """Add or replace a pod. ``observed``: seen in a Filter call, the watch is still behind."""
        if self.pods.ours(pod):
            pod = self.device_claims.asking(pod)
        self.pods.set_pod(self.devices.rules.marked(pod), now=now, observed=observed)
        self.devices.heed(pod)

    def _see(self, pod: Pod) -> None:
        self.set_pod(pod, now=self._clock())

    def drop_pod(self, uid: PodUid) -> None:
        """A pod is gone; what it held is free at once, and only the watch can bring it back."""
        self.pods.drop_pod(uid)
        self.device_claims.drop_pod(uid)

    # --- events: nodes ---------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """Add or replace a node; reservations on one that takes no more pods are given back."""
        was_up = self.node_usage.is_up(node.name)
        before = self.node_usage.nodes.get(node.name)
        self.network.set_node(node)
        if not self.node_usage.set_node(node):
            return
        self.devices.set_node(node)
        if node.ready is not was_up:
            self._count_lingering(node.name)
        self.signals.note_dirty()
        if node.may_take_more(before):
            self.registry.look_again()
        self.losses.follow_node(node.name, CLOSED)
        self.losses.relieve(node.name, SMALLER)

    def drop_node(self, name: NodeName) -> None:
        """Forget a node; reservations on it are given back."""
        self.network.drop_node(name)
        self.devices.drop_node(name)
        if self.node_usage.drop_node(name):
            self.signals.note_dirty()
            self._count_lingering(name)
            self.losses.follow_node(name, NODE_GONE)

    def _count_lingering(self, name: NodeName) -> None:
        """Count the terminating pods of a node that came up or went down anew."""
        there = (self.members.get(PodUid(holder)) for holder in self.node_usage.holders(name))
        for member in filter(None, there):
            if member.kind is MemberState.RELEASING_PLACED:
                self.decisions.count_lingering(member)

    def set_hyper_node(self, hyper_node: HyperNode) -> None:
        """Add or replace a HyperNode; places that were given inside it stay."""
        if self.network.set(hyper_node):
            self._look_again()

    def drop_hyper_node(self, name: str) -> None:
        """Forget a HyperNode; places that were given inside it stay."""
        if self.network.drop(name):
            self._look_again()

    def set_network_labels(self, labels: tuple[str, ...]) -> None:
        """Take these labels of nodes for the network's domains while there are no HyperNodes."""
        if self.network.set_labels(labels):
            self._look_again()

    def set_numa(self, topology: NumaTopology) -> None:
        """Add or replace a Numatopology; most say that pods have begun, or ended."""
        if self.numa.set_topology(topology):
            self._look_again()

    def _look_again(self) -> None:
        self.signals.note_dirty()
        self.registry.look_again()

    def set_loads(self, loads: Mapping[NodeName, NodeLoad]) -> None:
        """Replace the loads of all nodes."""
        if self.loads.set(loads):
            self._look_again()

    def set_device_setting(self, setting: DeviceSetting) -> None:
        """Take over what the plugin ``deviceshare`` is told."""
        known = [*(member.pod for member in self.members.values()), *self.pods.foreign.values()]
        for pod in self.devices.rules.set(setting.exclusive, known):
            self.pods.set_pod(pod, now=self._clock())
        if self.devices.set_setting(setting):
            self._follow_devices()
            self._look_again()

    def set_counted_claims(self, counted: CountedClaims) -> None:
        """Take over what the plugin ``capacity`` is told of claims."""
        if self.device_claims.set_counted(counted):
            self._look_again()

    def set_device_config(self, key: str, config: DeviceConfig | None) -> None:
        """Take over what the ConfigMap ``key`` of device plugins says; None: it is gone."""
        if self.devices.set_config(key, config):
            self._follow_devices()
            self._look_again()

    def use_device_config(self, key: str) -> None:
        """Let that ConfigMap of device plugins count, by ``namespace/name``."""
        if self.devices.use_config(key):
            self._follow_devices()
            self._look_again()

    def set_chip_health(self, node: str, ill: frozenset[str] | None) -> None:
        """Take over which chips of a node do not work; None: nothing tells any more."""
        if self.devices.set_chip_health(node, ill):
            self._look_again()

    def has_its_devices(self, member: Member) -> bool:
        """Whether the member with a place has devices there, or asks for none."""
        if not self.devices.needs(member.pod.shape.devices):
            return True
        return self.devices.decision(member.pod.uid, now=0.0) is not None

    def _follow_devices(self) -> None:
        names = (each.resources for each in self.device_claims.classes.values())
        if self.node_usage.set_devices(self.devices.unlisted.union(*names)):
            self._look_again()

    # --- events: groups and the rest -------------------------------------------------------------

    def set_group(self, pod_group: PodGroup) -> None:
        """Add or replace a PodGroup; its phase is taken over only the first time we see it."""
        before = self._before(pod_group)
        group = self.registry.open(pod_group.key, solo=False)
        group.note_reached()
        asked_before = group.asks
        if before is None:
            group.phase = pod_group.phase
            group.reached = Counter(pod_group.reached)
        if before is None or before.minimum != pod_group.minimum:
            group.begin_anew()
            group.foreign = self.registry.foreign_members.count(group.key)
        self.registry.specify(group, pod_group)
        if pod_group.min_resources:
            self.node_usage.vector(pod_group.min_resources)
        self.pods.recall(group)
        if before is not None:
            group.ask_otherwise(asked_before)
            self._take_back(group, before=before, now=pod_group)
        self.registry.changed(group)

    def _before(self, pod_group: PodGroup) -> PodGroup | None:
        """The PodGroup as known before; another of the name has gone while the watch was down."""
        group = self.groups.get(pod_group.key)
        before = group.pod_group if group else None
        if before is not None and before.uid != pod_group.uid:
            self.drop_group(pod_group.key)
            return None
        return before

    def _take_back(self, group: Group, *, before: PodGroup, now: PodGroup) -> None:
        """Give back what was reserved for the group as it was and may not stay as it is."""
        if now.queue != before.queue:
            self.losses.revoke(group, why="PodGroup moved to another queue")
        elif now.topology != before.topology:
            self.losses.revoke(group, why="PodGroup asks for another network topology")
        elif now.minimum != before.minimum or now.released:
            self.slots.drop_surplus(group)

    def drop_group(self, key: GroupKey) -> None:
        """Forget a PodGroup; members that are not on a node yet lose their places.

        Finished members do not count any more, until there is a PodGroup of that name again.
        """
        group = self.groups.get(key)
        if group is None or group.pod_group is None:
            return
        self.losses.revoke(group, why="PodGroup was deleted")
        self.registry.specify(group, None)
        group.phase = GroupPhase.NEW
        group.reached = Counter()
        self.registry.changed(group)
        self.pods.retire(group)

    def set_namespace(self, namespace: Namespace) -> None:
        """Add or replace a namespace; it may name the queue of pods that stand alone."""
        self._take_elsewhere(self.registry.set_namespace(namespace.name, namespace))

    def drop_namespace(self, name: str) -> None:
        """Forget a namespace."""
        self._take_elsewhere(self.registry.set_namespace(name, None))

    def _take_elsewhere(self, groups: Iterable[Group]) -> None:
        for group in groups:
            self.losses.revoke(group, why="namespace got another queue")
            self.registry.changed(group)

    def set_queue(self, queue: Queue) -> None:
        """Add or replace a queue."""
        groups = queue.node_group_limits or {}
        for limits in (queue.capability, queue.deserved, queue.guarantee, *groups.values()):
            self.node_usage.vector(limits)
        self.registry.limit_by_node_groups(queue.name, limited=bool(groups))
        before = self.queues.get(queue.name)
        if before is None or before.limits != queue.limits:
            self.signals.note_overfull()
            self.registry.look_again()
        self.queues[queue.name] = queue
        self.giving_up.discard(queue.name)
        if queue.evicts_over_capability:
            self.giving_up.add(queue.name)
        self.signals.note_dirty()

    def total(self) -> Vector:
        """What the cluster has, shape ``(R,)``, as a snapshot of this moment would say."""
        asked = (
            self.registry.refresh().asked_of_cordoned if self.node_usage.table().cordoned else None
        )
        return self.node_usage.total(asked_of_cordoned=asked)

    def ancestors(self, name: QueueName) -> list[QueueName]:
        """The queues above ``name`` up to the root, nearest first.

        Cut at a cycle, at a gap, and after `DEEPEST_QUEUE` of them.
        """
        path = [name]
        while path[-1] != ROOT_QUEUE and path[-1] in self.queues and len(path) <= DEEPEST_QUEUE:
            above = self.queues[path[-1]].parent or ROOT_QUEUE
            if above in path or above not in self.queues:
                break
            path.append(above)
        return path[1:]

    def drop_queue(self, name: QueueName) -> None:
        """Forget a queue."""
        self.registry.limit_by_node_groups(name, limited=False)
        if self.queues.pop(name, None) is not None:
            self.giving_up.discard(name)
            self._look_again()
