"""What the cache must hold, worked out from scratch.

No sums are kept, and nothing is shared with ``app.cache`` but the types.

The truth is the API state (nodes, pods, PodGroups) and the list of reservations as they stand; from
these everything else follows.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Answer, MemberState, Stage
from app.model.amounts import Amounts
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.node import Node
from app.model.parts import Part, SubGroup
from app.model.pod import GATE, QUEUE_GATE, Pod, TaskStatus
from app.model.shape import PodShape, Toleration
from app.model.workload import GroupPhase, PodGroup

OURS = "volcano"
ANYWHERE = Toleration(exists=True)
ON_A_NODE = (MemberState.BOUND, MemberState.RUNNING, MemberState.SUCCEEDED)


@dataclass(frozen=True)
class Reservation:
    """A member's place; ``holder`` is its UID."""

    holder: str
    group: GroupKey
    node: NodeName
    stage: Stage
    since: float
    shape: PodShape
    void: bool
    answer: Answer

    @property
    def revocable(self) -> bool:
        return self.stage is not Stage.BINDING

    @property
    def taken(self) -> bool:
        """Whether the API server said that it took the Binding."""
        return not self.revocable and self.answer is Answer.YES


@dataclass(frozen=True)
class KeptSlot:
    """A place for a member that does not exist."""

    holder: str
    group: GroupKey
    node: NodeName
    role: str
    since: float
    shape: PodShape


@dataclass(frozen=True)
class Reservations:
    """All that was reserved at one moment."""

    members: Mapping[str, Reservation]
    slots: Mapping[str, KeptSlot]

    @classmethod
    def read(cls, cache: ClusterCache) -> "Reservations":
        members = {
            str(m.pod.uid): Reservation(
                m.pod.uid, m.group, m.node, m.stage, m.since, m.pod.shape, m.void, m.answer
            )
            for m in cache.members.values()
            if m.stage is not Stage.WAITING and not m.pod.node
        }
        slots = {
            s.holder: KeptSlot(s.holder, group.key, s.node, s.role, s.since, s.shape)
            for group in cache.groups.values()
            for s in group.slots.values()
        }
        return cls(members, slots)

    def places(self) -> list["Place"]:
        """Both."""
        return [*self.members.values(), *self.slots.values()]

    def revocable(self) -> set[str]:
        """Holders whose place can be taken back."""
        return {p.holder for p in self.members.values() if p.revocable} | set(self.slots)


Place = Reservation | KeptSlot


@dataclass(frozen=True)
class Taken:
    """What one holder takes."""

    node: NodeName
    requests: Amounts
    reserved: bool
    releasing: bool


@dataclass
class Api:
    """What the API server says."""

    nodes: dict[NodeName, Node] = field(default_factory=dict)
    pods: dict[PodUid, Pod] = field(default_factory=dict)
    groups: dict[GroupKey, PodGroup] = field(default_factory=dict)

    def takes(self, name: NodeName, shape: PodShape) -> bool:
        node = self.nodes.get(name)
        if node is None or not node.ready:
            return False
        return not node.unschedulable or ANYWHERE in shape.tolerations

    def taken(self, has_reservations: Reservations) -> dict[str, Taken]:
        """Every charge there must be, by holder."""
        out: dict[str, Taken] = {}
        for pod in self.pods.values():
            if pod.node and pod.status not in (TaskStatus.SUCCEEDED, TaskStatus.FAILED):
                releasing = pod.status is TaskStatus.RELEASING
                out[pod.uid] = Taken(pod.node, pod.shape.requests, False, releasing)
        for reserve in has_reservations.members.values():
            assert reserve.holder not in out, "bound and reserved at once"
            out[reserve.holder] = Taken(reserve.node, reserve.shape.requests, True, False)
        for slot in has_reservations.slots.values():
            out[slot.holder] = Taken(slot.node, slot.shape.requests, True, False)
        return out

    def idle(self, name: NodeName, taken: Iterable[Taken]) -> Counter[str]:
        """Free room by resource; resources that come to zero are zero."""
        free: Counter[str] = Counter()
        node = self.nodes.get(name)
        if node is not None and node.ready:
            free.update(dict(node.allocatable))
        for one in taken:
            if one.node == name:
                free.subtract(dict(one.requests))
        return free

    def is_squeezed(self, one: Taken, taken: Iterable[Taken]) -> bool:
        """Whether it asks for something of which its node has less than nothing."""
        free = self.idle(one.node, taken)
        return any(amount and free[resource] < 0 for resource, amount in one.requests)

    def lingers(self, pod: Pod) -> bool:
        """Whether it is terminating on a node that is there and ready."""
        node = self.nodes.get(pod.node)
        return pod.status is TaskStatus.RELEASING and node is not None and node.ready

    def has_group(self, pod: Pod) -> bool:
        """Whether it can be planned: alone, or its PodGroup is there."""
        return not pod.grouped or pod.group in self.groups


def is_held(pod: Pod) -> bool:
    """Whether somebody else's gate is on it; Volcano's is ours to open if the pod asks for it."""
    asked = pod.annotations.get(QUEUE_GATE) == "true"
    return bool(set(pod.gates) - {GATE} - ({QUEUE_GATE} if asked else set()))


def has_failed_leaving(pod: Pod) -> bool:
    """Whether it ended on its node while it was being deleted."""
    return pod.deleting and bool(pod.node) and pod.status is TaskStatus.FAILED


def kind_of(pod: Pod, *, reserved: bool, lost: bool) -> MemberState:
    """The state its group must count it under."""
    if lost and pod.deleting:
        return MemberState.RELEASING_PLACED if pod.node else MemberState.RELEASING
    match pod.status:
        case TaskStatus.PENDING:
            if reserved:
                return MemberState.PLACED
            return MemberState.GATED if is_held(pod) else MemberState.WAITING
        case TaskStatus.RELEASING:
            return MemberState.RELEASING_PLACED if pod.node else MemberState.RELEASING
        case status:
            return MemberState[status.name]


@dataclass
class Recount:
    """One group, counted anew."""

    kinds: Counter[MemberState] = field(default_factory=Counter)
    parts: Counter[tuple[Part, MemberState]] = field(default_factory=Counter)
    held: Counter[Amounts] = field(default_factory=Counter)
    gated: Counter[Amounts] = field(default_factory=Counter)
    wanted: Counter[Amounts] = field(default_factory=Counter)
    lingering: Counter[Amounts] = field(default_factory=Counter)
    arrived: Counter[Part] = field(default_factory=Counter)
    accepted: Counter[Part] = field(default_factory=Counter)
    unanswered: int = 0
    voided: int = 0
    waiting: set[PodUid] = field(default_factory=set)
    best_effort: int = 0
    slots: Counter[str] = field(default_factory=Counter)
    lost: int = 0

    def add(
        self, pod: Pod, reserve: Reservation | None, stored: PodGroup | None, *, lost: bool
    ) -> None:
        kind = kind_of(pod, reserved=reserve is not None, lost=lost)
        part = part_of(pod, stored)
        self.lost += lost
        self.kinds[kind] += 1
        self.parts[part, kind] += 1
        if kind in (MemberState.PLACED, MemberState.BOUND, MemberState.RUNNING):
            self.held[pod.shape.requests] += 1
        elif kind is MemberState.GATED:
            self.gated[pod.shape.requests] += 1
        elif kind is MemberState.WAITING:
            self.wanted[pod.shape.requests] += 1
            self.waiting.add(pod.uid)
            self.best_effort += all(name == "pods" for name, _ in pod.shape.requests)
        if reserve is not None and reserve.stage in (Stage.ASSUMED, Stage.BINDING):
            stays = reserve.taken or not reserve.void
            self.arrived[part] += stays
            self.voided += not stays
            self.accepted[part] += reserve.taken
            self.unanswered += not reserve.revocable and reserve.answer is Answer.OPEN

    @property
    def on_nodes(self) -> int:
        return sum(self.kinds[kind] for kind in ON_A_NODE)

    @property
    def reserved(self) -> bool:
        return self.kinds[MemberState.PLACED] + self.slots.total() > 0

    def pending(self, pod_group: PodGroup | None, phase: GroupPhase, *, solo: bool) -> bool:
        """Whether there is something to decide."""
        if solo:
            return bool(self.waiting)
        if pod_group is None or pod_group.deleting:
            return False
        if self.waiting or phase in (GroupPhase.NEW, GroupPhase.PENDING):
            return True
        return self.lacks(pod_group) and phase is not GroupPhase.COMPLETED

    def lacks(self, pod_group: PodGroup) -> bool:
        """Whether places are lacking, in all, for a role or for whole sub-groups."""
        if (
            self.on_nodes + self.kinds[MemberState.PLACED] + self.slots.total()
            < pod_group.min_member
        ):
            return True
        minimum = pod_group.role_minimum
        if sum(minimum.values()) > pod_group.min_member:
            minimum = {}
        ready, by_size = Counter(self.slots), Counter[str]()
        for (part, kind), count in self.parts.items():
            if kind in (*ON_A_NODE, MemberState.PLACED):
                ready[part.role] += count
                by_size[part.sub_group.values] += count
        del by_size[""]
        return any(ready[role] < least for role, least in minimum.items()) or any(
            sum(count >= policy.size for count in by_size.values()) < policy.least
            for policy in pod_group.sub_groups
        )


def part_of(pod: Pod, stored: PodGroup | None) -> Part:
    """What it counts for: groups are parted by the label ``size``, or not at all."""
    if stored is None or not stored.sub_groups or "size" not in pod.labels:
        return Part(pod.role)
    return Part(pod.role, SubGroup("by-size", pod.labels["size"]))


def recount(
    pods: Iterable[Pod], has_reservations: Reservations, api: Api, *, lost: Collection[PodUid]
) -> dict[GroupKey, Recount]:
    """Every group that has a pod of ours or a slot."""
    out: dict[GroupKey, Recount] = {}
    for pod in pods:
        if pod.scheduler == OURS:
            group = out.setdefault(pod.group, Recount())
            reserve, of = has_reservations.members.get(pod.uid), api.groups.get(pod.group)
            group.add(pod, reserve, of, lost=pod.uid in lost)
            group.lingering[pod.shape.requests] += api.lingers(pod)
    for slot in has_reservations.slots.values():
        group = out.setdefault(slot.group, Recount())
        group.slots[slot.role] += 1
        group.held[slot.shape.requests] += 1
    return out
