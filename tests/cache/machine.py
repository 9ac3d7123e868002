"""The cache under test, what the API server says, and what one step may do to reservations.

The machine talks to the cache as the process does: objects through the feed, reservations through
the cache's own methods. Every reservation that went away in a step must have a reason, and is told
in ``lost`` exactly when nobody asked for it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import PLACED_KINDS, MemberState, Stage
from app.cache.gangs.signals import Signals
from app.cache.snapshots.snapshotter import Snapshotter
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.job import Template
from app.model.parts import SubGroupPolicy
from app.model.pod import Owner, Pod, TaskStatus
from app.model.shape import HostPort, LabelSelector, Operator, PodShape, PodTerm, Requirement
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, Namespace, PodGroup
from app.service.activity import Activity
from app.service.intake.feed import Feed
from tests.builders import ALONE, make_amounts
from tests.cache.naive import ANYWHERE, OURS, Api, Reservation, Reservations, Taken

NODES = ("n0", "n1", "n2")
PODS = tuple(f"p{i}" for i in range(7))
GROUPS = ("g0", "g1")
SUB_GROUPS = [
    (SubGroupPolicy("by-size", keys=("size",), size=2, least=1),),
    (SubGroupPolicy("by-size", keys=("size",), size=1, least=2),),
]
VALID = (*PLACED_KINDS, MemberState.SUCCEEDED, MemberState.WAITING, MemberState.GATED)
ROLES = ("", "a", "b")
QUEUES = ("default", "q1")
OWNERS = tuple(Owner("apps/v1", "ReplicaSet", name, f"uid-{name}") for name in ("rs0", "rs1"))
SIZED = LabelSelector((Requirement("size", Operator.IN, ("old", "new")),))
TERMINAL = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def shapes(extended: int) -> st.SearchStrategy[PodShape]:
    """One of a few shapes; some ask for one of the ``extended`` resources known so far."""
    plain = [
        PodShape(requests=make_amounts(cpu=1000, pods=1)),
        PodShape(requests=make_amounts(cpu=2000, pods=1)),
        PodShape(requests=make_amounts(pods=1)),
        PodShape(requests=make_amounts(cpu=1000, pods=1), tolerations=(ANYWHERE,)),
        PodShape(
            requests=make_amounts(cpu=1000, pods=1), host_ports=(HostPort("0.0.0.0", "TCP", 80),)
        ),
        PodShape(
            requests=make_amounts(cpu=1000, pods=1),
            pod_anti_affinity=(ALONE,),
        ),
        PodShape(
            requests=make_amounts(cpu=1000, pods=1),
            pod_affinity=(PodTerm("kubernetes.io/hostname", SIZED, ("default",)),),
        ),
    ]
    special = [
        PodShape(requests=make_amounts(cpu=1000, pods=1, **{f"example.com/r{k}": 1}))
        for k in range(extended)
    ]
    return st.sampled_from(plain[:1] * 4 + plain + special)


ROLE = st.sampled_from(ROLES)
ODD = st.sampled_from([False] * 9 + [True])


def kind_is(cache: ClusterCache, pod: Pod, *kinds: MemberState) -> bool:
    member = cache.members.get(pod.uid)
    return member is not None and member.kind in kinds


@dataclass(frozen=True)
class OpenQuestions:
    """What a planner would look at: room, and who wants it."""

    free: Mapping[NodeName, Counter[str]]
    wanting: frozenset[GroupKey]
    waiting: frozenset[PodUid]

    def are_told(self, signals: Signals, *, before: "OpenQuestions") -> None:
        """The planner hears of it when somebody may get a place who could not before."""
        if not self.wanting <= before.wanting or not self.waiting <= before.waiting:
            assert signals.dirty, "somebody wants a place, and nobody will plan"
        if self._is_roomier_than(before):
            assert signals.may_place, "there is room, and nobody who waits gets it"

    def _is_roomier_than(self, before: "OpenQuestions") -> bool:
        return any(
            free[name] > before.free.get(node, Counter())[name]
            for node, free in self.free.items()
            for name in free
        )


class Machine(RuleBasedStateMachine):
    """State, and :meth:`step` around everything that changes it."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[GroupKey] = set()
        self.cache = ClusterCache(schedulers=frozenset({OURS}))
        activity = Activity(
            clock=lambda: self.now, elected=False, namespace="", name="", identity=""
        )
        self.feed = Feed(
            self.cache, activity=activity, clock=lambda: self.now, settled=self.changed.update
        )
        self.snapshotter = Snapshotter(self.cache)
        self.api = Api()
        self.unseen: dict[PodUid, Pod] = {}
        self.gone: dict[PodUid, Pod] = {}
        """Pods that the API server had; a call of kube-scheduler does not bring them back."""
        self.phases: dict[GroupKey, GroupPhase] = {}
        self.feed.upsert("namespaces", Namespace("default", {}, {}))
        self.named_queue = ""
        """What the namespace names."""
        self.now = 100.0
        self.births = 0
        self.extended = 0
        self.templates: dict[str, Mapping[str, Template]] = {}
        self.kept: tuple[Snapshot, list[Any]] | None = None
        self.void: set[str] = set()
        """Members whose Binding is under way for what their group is not any more."""

    # --- one step and what it may do to reservations ---------------------------------------------

    @contextmanager
    def step(
        self,
        *,
        asked: Collection[str] = (),
        quiet: Collection[str] = (),
        brings: Collection[str] = (),
        adopts: GroupKey | None = None,
    ) -> Iterator[None]:
        """``asked``: holders that the step takes places from; ``quiet``: without telling it.

        ``brings``: those that keep theirs in another group. ``adopts``: the group that may give a
        slot to a member in this step.
        """
        self.now += 1
        before, open_before = Reservations.read(self.cache), self._open_questions()
        held = self._held()
        self.cache.signals.taken_up()
        self.cache.signals.overfull = False
        yield
        after = Reservations.read(self.cache)
        reserved = self._newly_reserved(before, after)
        if any(amount > held[what] + reserved[what] for what, amount in self._held().items()):
            assert self.cache.signals.overfull, "a queue holds more, by no reservation"
        self.void &= {uid for uid, reserve in after.members.items() if not reserve.revocable}
        self._open_questions().are_told(self.cache.signals, before=open_before)
        told, self.cache.losses.lost = self.cache.losses.lost, []
        gone = {
            uid
            for uid, reserve in before.members.items()
            if uid not in brings and self._is_lost(reserve, after.members.get(uid))
        }
        assert Counter(str(loss.uid) for loss in told) == Counter(gone - set(quiet))
        slots = {
            holder: slot
            for holder, slot in before.slots.items()
            if holder not in after.slots and slot.group != adopts
        }
        self._explain(
            before,
            after,
            gone={uid for uid in gone if uid not in asked and uid not in quiet},
            slots={h for h in slots if h not in asked},
        )

    def _held(self) -> "Counter[tuple[QueueName, str]]":
        """What each queue's groups hold, by resource."""
        held: Counter[tuple[QueueName, str]] = Counter()
        for group in self.cache.groups.values():
            for requests, count in group.counted.held.items():
                held.update({(group.queue, name): count * n for name, n in requests})
        return held

    def _newly_reserved(
        self, before: Reservations, after: Reservations
    ) -> "Counter[tuple[QueueName, str]]":
        known = {place.holder for place in before.places()}
        more: Counter[tuple[QueueName, str]] = Counter()
        for place in after.places():
            if place.holder not in known:
                queue = self.cache.groups[place.group].queue
                more.update({(queue, name): n for name, n in place.shape.requests})
        return more

    def _open_questions(self) -> "OpenQuestions":
        node_usage, pending = self.cache.node_usage, self.cache.registry.pending.values()
        return OpenQuestions(
            free={
                name: Counter(
                    dict(zip(node_usage.axis.names, node_usage.idle(name).tolist(), strict=True))
                )
                for name in node_usage.nodes
                if node_usage.nodes[name].ready
            },
            wanting=frozenset(group.key for group in pending),
            waiting=frozenset(uid for group in pending for uid in group.waiting),
        )

    def _is_lost(self, reserve: Reservation, now: Reservation | None) -> bool:
        """Whether it is gone and not kept: not bound; what another group has is another one."""
        if now is None:
            return not self._is_bound(PodUid(reserve.holder))
        return reserve.revocable and now.group != reserve.group

    def brings_place(self, pod: Pod, moved: Pod) -> bool:
        """Whether a pod that stood alone keeps its place in the group that it moves to."""
        reserve = Reservations.read(self.cache).members.get(pod.uid)
        stored = self.api.groups.get(moved.group)
        if reserve is None or stored is None or reserve.stage is Stage.ASSUMED:
            return False
        roles = 0 < sum(stored.role_minimum.values()) <= stored.min_member
        parted = roles or stored.sub_groups
        takes_one = stored.min_member <= 1 and not parted and not stored.deleting
        is_ready = moved.status is TaskStatus.PENDING
        return not pod.grouped and is_ready and takes_one and stored.queue == self.queue_alone

    @property
    def queue_alone(self) -> str:
        """The queue of pods that stand alone."""
        return self.named_queue or "default"

    def _is_bound(self, uid: PodUid) -> bool:
        return uid in self.api.pods and bool(self.api.pods[uid].node)

    def _explain(
        self, before: Reservations, after: Reservations, *, gone: set[str], slots: set[str]
    ) -> None:
        """Nobody asked for these: the pod ended, the node went, or the room ran out."""
        squeezed: dict[NodeName, list[tuple[float, str, Taken]]] = {}
        for uid in gone:
            reserve = before.members[uid]
            pod = self.api.pods.get(PodUid(uid)) or self.unseen.get(PodUid(uid))
            if pod is None or pod.status is not TaskStatus.PENDING or pod.group != reserve.group:
                continue
            assert reserve.revocable, "a Binding under way was taken back"
            if self.api.takes(reserve.node, reserve.shape):
                taken = Taken(reserve.node, pod.shape.requests, True, False)
                squeezed.setdefault(reserve.node, []).append((reserve.since, uid, taken))
        for holder in slots:
            slot = before.slots[holder]
            if self.api.takes(slot.node, slot.shape):
                taken = Taken(slot.node, slot.shape.requests, True, False)
                squeezed.setdefault(slot.node, []).append((slot.since, holder, taken))
        for node, given_back in squeezed.items():
            self._was_needed(node, sorted(given_back, key=lambda one: one[:2]), after)

    def _was_needed(
        self, node: NodeName, given_back: list[tuple[float, str, Taken]], after: Reservations
    ) -> None:
        taken = self.api.taken(after)
        oldest, holder, room = given_back[0]
        together = [*taken.values(), room]
        assert self.api.is_squeezed(room, together), f"{holder} was given back without need"
        lacking = {name for name, left in self.api.idle(node, together).items() if left < 0}
        stay = [
            (one.since, one.holder)
            for one in after.places()
            if one.node == node
            and one.holder in after.revocable()
            and lacking & {name for name, amount in taken[one.holder].requests if amount}
        ]
        assert all(key < (oldest, holder) for key in stay), "the latest go first"

    def put(self, pod: Pod) -> None:
        self.unseen.pop(pod.uid, None)
        self.gone.pop(pod.uid, None)
        self.api.pods[pod.uid] = pod
        self.feed.upsert("pods", pod)

    def some_pod(self, data: st.DataObject, *, ours: bool = False) -> Pod:
        return data.draw(
            st.sampled_from([p for p in self.api.pods.values() if not ours or p.scheduler == OURS])
        )

    @property
    def has_ours(self) -> bool:
        return any(pod.scheduler == OURS for pod in self.api.pods.values())

    def alone_with_places(self) -> list[Pod]:
        """Pods without a group that have places."""
        places = Reservations.read(self.cache).members
        return [pod for uid, pod in self.api.pods.items() if uid in places and not pod.grouped]

    def reserved_nodes(self) -> list[NodeName]:
        """Nodes on which places are kept."""
        return sorted(
            {place.node for place in Reservations.read(self.cache).places()} & {*self.api.nodes}
        )

    def held_by(self, key: GroupKey) -> set[str]:
        """Holders whose place a release of that group gives back."""
        now = Reservations.read(self.cache)
        return {p.holder for p in now.places() if p.group == key} & now.revocable()

    def under_way(self, key: GroupKey) -> set[str]:
        """Members of that group whose Binding is."""
        members = Reservations.read(self.cache).members.values()
        return {p.holder for p in members if p.group == key and not p.revocable}

    def lacking(self, group: PodGroup) -> Counter[str]:
        """How many members that are not there its roles lack; those that failed are there."""
        members = [m for m in self.cache.members.values() if m.group == group.key]
        there = Counter(m.pod.role for m in members if m.kind in VALID or not m.lost)
        roles = self.cache.groups[group.key].role_minimum
        return Counter({role: max(least - there[role], 0) for role, least in roles.items()})

    def slots_needed(self, group: PodGroup) -> int:
        mine = [m for m in self.cache.members.values() if m.group == group.key and not m.lost]
        foreign = self.cache.groups[group.key].foreign
        of_any_role = foreign + sum(m.pod.role == "" and m.kind not in VALID for m in mine)
        return max(
            group.min_member - len(mine) - foreign,
            self.lacking(group).total() - of_any_role,
            self.lacking_of_sizes(group),
            0,
        )

    def lacking_of_sizes(self, group: PodGroup) -> int:
        """How many members at least make as many of its sub-groups whole as it needs."""
        members = [m for m in self.cache.members.values() if m.group == group.key]
        there = Counter(m.pod.labels.get("size", "") for m in members if m.kind in VALID)
        del there[""]
        most = 0
        for policy in group.sub_groups:
            lacks = sorted(max(policy.size - count, 0) for count in there.values())
            most += sum([*lacks, *[policy.size] * policy.least][: policy.least])
        return most
