"""Whatever events and promises come in whatever order, the cache equals what is worked out anew.

The machine talks to the cache as the process does: objects through the feed, promises through the
cache's own methods. After each step everything that the cache counts as it goes is compared with
:mod:`tests.cache.naive`; every promise that went away in the step must have a reason, and is told
in ``lost`` exactly when nobody asked for it.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.cache.audit import audit
from app.cache.cluster import ClusterCache
from app.cache.groups import Group, usage_of
from app.cache.members import Kind, Stage
from app.cache.snapshotter import Snapshotter
from app.cache.views import gang_view, task_of
from app.model.gang import Gang
from app.model.ids import GroupKey, NodeName, PodUid, QueueName, group_key
from app.model.plan import GangPlacement, Placement
from app.model.pod import GROUP_ANNOTATION, TASK_SPEC, Pod, TaskStatus
from app.model.shape import HostPort, PodShape
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, PodGroup, PriorityClass
from app.service.activity import Activity
from app.service.feed import Feed
from tests.builders import make_amounts, make_node, make_pod, make_queue, make_task
from tests.cache.naive import OURS, Api, KeptSlot, Promises, Taken, recount

NODES = ("n0", "n1", "n2")
PODS = tuple(f"p{i}" for i in range(7))
GROUPS = ("g0", "g1")
ROLES = ("", "a", "b")
QUEUES = ("default", "q1")
TERMINAL = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def shapes(extended: int) -> st.SearchStrategy[PodShape]:
    """One of a few shapes; some ask for one of the ``extended`` resources known so far."""
    plain = [
        PodShape(requests=make_amounts(cpu=1000, pods=1)),
        PodShape(requests=make_amounts(cpu=2000, pods=1)),
        PodShape(requests=make_amounts(pods=1)),
        PodShape(
            requests=make_amounts(cpu=1000, pods=1), host_ports=(HostPort("0.0.0.0", "TCP", 80),)
        ),
    ]
    special = [
        PodShape(requests=make_amounts(cpu=1000, pods=1, **{f"example.com/r{k}": 1}))
        for k in range(extended)
    ]
    return st.sampled_from(plain + special)


class CacheMachine(RuleBasedStateMachine):
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
        self.phases: dict[GroupKey, GroupPhase] = {}
        self.now = 100.0
        self.births = 0
        self.extended = 0
        self.kept: tuple[Snapshot, list[Any]] | None = None

    @initialize(cpu=st.sampled_from([3000, 5000]), least=st.integers(0, 3))
    def start(self, cpu: int, least: int) -> None:
        for name in NODES[:2]:
            self.set_node(name=name, cpu=cpu, pods=10, extra=0, ready=True, cordoned=False)
        for name in GROUPS:
            self.set_group(
                name=name,
                least=least,
                role_least={},
                phase=GroupPhase.INQUEUE,
                queue="default",
                deleting=False,
            )

    # --- one step and what it may do to promises -------------------------------------------------

    @contextmanager
    def step(
        self,
        *,
        asked: Collection[str] = (),
        quiet: Collection[str] = (),
        adopts: GroupKey | None = None,
    ) -> Iterator[None]:
        """``asked``: holders that the step takes places from; ``quiet``: without telling it.

        ``adopts``: the group that may give a slot to a member in this step.
        """
        self.now += 1
        before = Promises.read(self.cache)
        yield
        after = Promises.read(self.cache)
        told, self.cache.lost = self.cache.lost, []
        gone = {
            uid
            for uid in before.members
            if uid not in after.members and not self._is_bound(PodUid(uid))
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

    def _is_bound(self, uid: PodUid) -> bool:
        return uid in self.api.pods and bool(self.api.pods[uid].node)

    def _explain(
        self, before: Promises, after: Promises, *, gone: set[str], slots: set[str]
    ) -> None:
        """Nobody asked for these: the pod ended, the node went, or the room ran out."""
        squeezed: dict[NodeName, list[tuple[float, str, Taken]]] = {}
        for uid in gone:
            promise = before.members[uid]
            pod = self.api.pods.get(PodUid(uid)) or self.unseen.get(PodUid(uid))
            if pod is None or pod.status is not TaskStatus.PENDING or pod.group != promise.group:
                continue
            assert promise.revocable, "a Binding under way was taken back"
            if self.api.takes(promise.node):
                taken = Taken(promise.node, pod.shape.requests, True, False)
                squeezed.setdefault(promise.node, []).append((promise.since, uid, taken))
        for holder in slots:
            slot = before.slots[holder]
            if self.api.takes(slot.node):
                taken = Taken(slot.node, slot.shape.requests, True, False)
                squeezed.setdefault(slot.node, []).append((slot.since, holder, taken))
        for node, given_back in squeezed.items():
            self._was_needed(node, sorted(given_back, key=lambda one: one[:2]), after)

    def _was_needed(
        self, node: NodeName, given_back: list[tuple[float, str, Taken]], after: Promises
    ) -> None:
        taken = list(self.api.taken(after).values())
        oldest, holder, room = given_back[0]
        assert self.api.is_short(node, [*taken, room]), f"{holder} was given back without need"
        stay = [
            (one.since, one.holder)
            for one in after.places()
            if one.node == node and one.holder in after.revocable()
        ]
        assert all(key < (oldest, holder) for key in stay), "the latest go first"

    def put(self, pod: Pod) -> None:
        self.unseen.pop(pod.uid, None)
        self.api.pods[pod.uid] = pod
        self.feed.upsert("pods", pod)

    def some_pod(self, data: st.DataObject, *, ours: bool = False) -> Pod:
        return data.draw(
            st.sampled_from([p for p in self.api.pods.values() if not ours or p.scheduler == OURS])
        )

    @property
    def has_ours(self) -> bool:
        return any(pod.scheduler == OURS for pod in self.api.pods.values())

    # --- events: nodes ---------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NODES),
        cpu=st.sampled_from([1000, 2000, 3000, 5000]),
        pods=st.sampled_from([2, 10]),
        extra=st.integers(0, 2),
        ready=st.sampled_from([True] * 5 + [False]),
        cordoned=st.sampled_from([False] * 5 + [True]),
    )
    def set_node(
        self, *, name: str, cpu: int, pods: int, extra: int, ready: bool, cordoned: bool
    ) -> None:
        node = make_node(
            name,
            cpu=cpu,
            pods=pods,
            ready=ready,
            unschedulable=cordoned,
            extra={f"example.com/r{k}": extra for k in range(self.extended)} if extra else {},
        )
        self.api.nodes[node.name] = node
        with self.step():
            self.feed.upsert("nodes", node)

    @precondition(lambda self: self.api.nodes)
    @rule(data=st.data())
    def drop_node(self, data: st.DataObject) -> None:
        node = self.api.nodes.pop(data.draw(st.sampled_from(sorted(self.api.nodes))))
        with self.step():
            self.feed.remove("nodes", node)

    @rule()
    def a_resource_appears(self) -> None:
        """The axis grows under everything that is held."""
        name = f"example.com/r{self.extended}"
        self.extended += 1
        with self.step():
            self.feed.upsert("queues", make_queue("q1", capability=make_amounts(**{name: 5})))

    # --- events: pods ----------------------------------------------------------------------------

    def new_pod(self, data: st.DataObject) -> Pod:
        self.births += 1
        group, role = data.draw(st.sampled_from(("", *GROUPS, *GROUPS))), data.draw(ROLE)
        annotations = {GROUP_ANNOTATION: group} if group else {}
        return make_pod(
            f"p{self.births}",
            scheduler=data.draw(st.sampled_from([OURS, OURS, OURS, "default-scheduler"])),
            shape=data.draw(shapes(self.extended)),
            annotations=annotations | ({TASK_SPEC: role} if role else {}),
            gates=data.draw(st.sampled_from([()] * 4 + [("pumice.sh/plan",), ("other.io/gate",)])),
            pinned=NodeName(data.draw(st.sampled_from([""] * 5 + [*NODES]))),
            nominated=NodeName(data.draw(st.sampled_from([""] * 5 + [*NODES]))),
        )

    @precondition(lambda self: len(self.api.pods) < len(PODS))
    @rule(data=st.data())
    def create_pod(self, data: st.DataObject) -> None:
        pod = self.new_pod(data)
        with self.adopting(pod):
            self.put(pod)

    @precondition(lambda self: len(self.api.pods) < len(PODS))
    @rule(data=st.data(), phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]))
    def a_pod_is_first_seen_on_a_node(self, data: st.DataObject, phase: str) -> None:
        node = NodeName(data.draw(st.sampled_from(NODES)))
        with self.step():
            self.put(replace(self.new_pod(data), node=node, phase=phase, gates=()))

    @precondition(lambda self: len(self.unseen) < 2)
    @rule(data=st.data())
    def filter_shows_a_pod_first(self, data: st.DataObject) -> None:
        pod = replace(self.new_pod(data), scheduler=OURS, gates=())
        self.unseen[pod.uid] = pod
        with self.adopting(pod):
            self.cache.set_pod(pod, now=self.now, observed=True)

    @precondition(lambda self: self.unseen)
    @rule(data=st.data())
    def the_watch_catches_up(self, data: st.DataObject) -> None:
        pod = self.unseen[data.draw(st.sampled_from(sorted(self.unseen)))]
        with self.step():
            self.put(replace(pod, resource_version="2"))

    @precondition(lambda self: self.api.pods)
    @rule(data=st.data())
    def an_update_without_news_takes_nothing(self, data: st.DataObject) -> None:
        pod = self.some_pod(data)
        before, tracked = Promises.read(self.cache), pod.uid in self.cache.members
        self.cache.signals.dirty = False
        with self.step():
            self.put(replace(pod, resource_version="7"))
        assert Promises.read(self.cache) == before
        assert not self.cache.signals.dirty or not tracked

    @contextmanager
    def adopting(self, pod: Pod) -> Iterator[None]:
        """A member becomes ready to be planned: a slot for its role is used up for it."""
        before = Promises.read(self.cache)
        with self.step(adopts=pod.group):
            yield
        used = [
            slot
            for holder, slot in before.slots.items()
            if slot.group == pod.group and holder not in Promises.read(self.cache).slots
        ]
        mine = [
            slot
            for slot in before.slots.values()
            if slot.group == pod.group and slot.role in (pod.role, "")
        ]
        ready = pod.scheduler == OURS and not any(g != "pumice.sh/plan" for g in pod.gates)
        if not mine or not ready:
            assert used == []
            return
        self._adopted(pod, used, mine)

    def _adopted(self, pod: Pod, used: list[KeptSlot], mine: list[KeptSlot]) -> None:
        assert len(used) == 1
        assert used[0] in mine
        like = [
            slot
            for slot in mine
            if slot.shape.fits_like(pod.shape) and pod.pinned in ("", slot.node)
        ]
        member = self.cache.members[pod.uid]
        if not like:
            assert member.stage is Stage.WAITING
            return
        assert used[0] in like
        assert (member.stage, member.node) == (Stage.PLANNED, used[0].node)
        hinted = [slot for slot in like if slot.node == pod.nominated]
        assert used[0] in hinted or not hinted or pod.pinned

    @precondition(lambda self: any(not p.node for p in self.api.pods.values()))
    @rule(data=st.data(), deleting=st.booleans())
    def a_pod_is_bound(self, data: st.DataObject, deleting: bool) -> None:
        """Where we promised it or elsewhere, by us or by others."""
        loose = [p for p in self.api.pods.values() if not p.node and p.status not in TERMINAL]
        if not loose:
            return
        pod = data.draw(st.sampled_from(loose))
        member = self.cache.members.get(pod.uid)
        nodes = [*NODES, *([member.node] * 3 if member and member.node else [])]
        node = NodeName(data.draw(st.sampled_from(nodes)))
        with self.step():
            self.put(replace(pod, node=node, gates=(), deleting=pod.deleting or deleting))

    @precondition(lambda self: self.api.pods)
    @rule(data=st.data(), phase=st.sampled_from(["Running", "Succeeded", "Failed", "Unknown"]))
    def a_pod_changes_phase(self, data: st.DataObject, phase: str) -> None:
        pod = self.some_pod(data)
        if pod.status not in TERMINAL and (pod.node or phase != "Running"):
            with self.step():
                self.put(replace(pod, phase=phase))

    @precondition(lambda self: self.api.pods)
    @rule(data=st.data())
    def a_pod_is_being_deleted(self, data: st.DataObject) -> None:
        pod = self.some_pod(data)
        with self.step():
            self.put(replace(pod, deleting=True))

    @precondition(lambda self: self.has_ours)
    @rule(data=st.data(), group=st.sampled_from(("", *GROUPS)))
    def a_pod_moves_to_another_group(self, data: st.DataObject, group: str) -> None:
        pod = self.some_pod(data, ours=True)
        rest = {k: v for k, v in pod.annotations.items() if k != GROUP_ANNOTATION}
        moved = replace(pod, annotations=rest | ({GROUP_ANNOTATION: group} if group else {}))
        loose = self.cache.members.get(pod.uid)
        if pod.group == moved.group or loose is None:
            return
        if moved.status is TaskStatus.PENDING and loose.stage is not Stage.BINDING:
            with self.adopting(moved):
                self.put(moved)
        else:
            with self.step():
                self.put(moved)

    @precondition(lambda self: self.has_ours)
    @rule(data=st.data(), gates=st.sampled_from([(), ("pumice.sh/plan",), ("other.io/gate",)]))
    def gates_change(self, data: st.DataObject, gates: tuple[str, ...]) -> None:
        pod = self.some_pod(data, ours=True)
        opened = kind_is(self.cache, pod, Kind.GATED) and "other.io/gate" not in gates
        changed = replace(pod, gates=gates)
        if pod.node:
            return
        with self.adopting(changed) if opened else self.step():
            self.put(changed)

    @precondition(lambda self: self.api.pods)
    @rule(data=st.data())
    def a_pod_is_resized_or_labelled(self, data: st.DataObject) -> None:
        pod = self.some_pod(data)
        shape = data.draw(shapes(self.extended))
        with self.step():
            self.put(replace(pod, shape=shape, labels={"size": "new"}))

    @precondition(lambda self: self.api.pods)
    @rule(data=st.data())
    def a_pod_is_gone(self, data: st.DataObject) -> None:
        pod = self.some_pod(data)
        del self.api.pods[pod.uid]
        with self.step():
            self.feed.remove("pods", pod)

    @rule(seconds=st.sampled_from([0.0, 5.0]))
    def pods_nobody_confirmed_are_forgotten(self, seconds: float) -> None:
        with self.step(), self.unseen_may_go():
            self.cache.forget_observed(before=self.now - seconds)

    @contextmanager
    def unseen_may_go(self) -> Iterator[None]:
        yield
        self.unseen = {u: p for u, p in self.unseen.items() if u in self.cache.members}

    @rule(data=st.data())
    def pods_are_listed_again(self, data: st.DataObject) -> None:
        self.api.pods = {uid: p for uid, p in self.api.pods.items() if not data.draw(ODD)}
        self.unseen = {}
        with self.step():
            self.feed.begin_listing("pods")
            for pod in self.api.pods.values():
                self.feed.upsert("pods", pod)
            self.feed.end_listing("pods")

    @rule(data=st.data())
    def nodes_are_listed_again(self, data: st.DataObject) -> None:
        self.api.nodes = {name: n for name, n in self.api.nodes.items() if not data.draw(ODD)}
        with self.step():
            self.feed.begin_listing("nodes")
            for node in self.api.nodes.values():
                self.feed.upsert("nodes", node)
            self.feed.end_listing("nodes")

    # --- events: groups and queues ---------------------------------------------------------------

    @rule(
        name=st.sampled_from(GROUPS),
        least=st.integers(0, 4),
        role_least=st.sampled_from([{}, {"a": 1}, {"a": 1, "b": 2}]),
        phase=st.sampled_from(list(GroupPhase)),
        queue=st.sampled_from(QUEUES),
        deleting=st.sampled_from([False] * 9 + [True]),
    )
    def set_group(
        self,
        *,
        name: str,
        least: int,
        role_least: dict[str, int],
        phase: GroupPhase,
        queue: str,
        deleting: bool,
    ) -> None:
        """Made, or its minimum raised or lowered; a stored phase counts only the first time."""
        group = PodGroup(
            namespace="default",
            name=name,
            uid=f"uid-{name}",
            resource_version="1",
            created=0.0,
            min_member=least,
            role_minimum=role_least,
            queue=QueueName(queue),
            min_resources=make_amounts(cpu=1000 * least) if least != 1 else None,
            priority_class="high" if least == 2 else "",
            phase=phase,
            deleting=deleting,
        )
        if group.key not in self.api.groups:
            self.phases[group.key] = phase
        self.api.groups[group.key] = group
        with self.step():
            self.feed.upsert("podgroups", group)

    @precondition(lambda self: self.api.groups)
    @rule(data=st.data())
    def drop_group(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.api.groups)))
        gone = self.api.groups.pop(key)
        self.phases.pop(key)
        with self.step(asked=self.held_by(key)):
            self.feed.remove("podgroups", gone)
        members = self.cache.groups[key].members.values() if key in self.cache.groups else ()
        assert not any(m.pod.status in TERMINAL for m in members)
        assert not self.held_by(key)

    @rule()
    def groups_are_listed_again(self) -> None:
        with self.step():
            self.feed.begin_listing("podgroups")
            for group in self.api.groups.values():
                self.feed.upsert("podgroups", group)
            self.feed.end_listing("podgroups")

    @rule(name=st.sampled_from(QUEUES), there=st.booleans(), value=st.integers(1, 3))
    def queues_and_classes_change(self, name: str, there: bool, value: int) -> None:
        change = self.feed.upsert if there else self.feed.remove
        with self.step():
            change("queues", make_queue(name, capability=make_amounts(cpu=1000 * value)))
        with self.step():
            change("priorityclasses", PriorityClass("high", value))

    # --- promises --------------------------------------------------------------------------------

    def held_by(self, key: GroupKey) -> set[str]:
        """Holders whose place a release of that group gives back."""
        now = Promises.read(self.cache)
        return {p.holder for p in now.places() if p.group == key} & now.revocable()

    @precondition(lambda self: self.cache.groups)
    @rule(data=st.data(), late=st.sampled_from([0.0, 3.0]))
    def promise(self, data: st.DataObject, late: float) -> None:
        """A plan, maybe of ``late`` seconds ago, maybe of things that are not so any more."""
        key = self.some_group(data)
        members = list(self.cache.groups[key].members.values())
        uids = [m.pod.uid for m in members if m.kind is Kind.WAITING or data.draw(ODD)]
        placements = []
        for uid in data.draw(st.sets(st.sampled_from(uids), max_size=3)) if uids else set():
            task = task_of(self.cache.members[uid].pod, self.cache.rooms.vector)
            placements.append(Placement(task, self.some_node(data)))
        for _ in range(data.draw(st.integers(0, 2)) if not self.cache.groups[key].solo else 0):
            shape = data.draw(shapes(self.extended))
            slot = make_task(
                "", uid=PodUid(""), role=data.draw(ROLE), shape=shape, axis=self.cache.rooms.axis
            )
            placements.append(Placement(slot, self.some_node(data)))
        if placements:
            self.publish(GangPlacement(key, tuple(placements), whole=True), late=late)

    def some_member(self, data: st.DataObject) -> PodUid:
        """Mostly one with a promise."""
        members = self.cache.members
        placed = [uid for uid in members if members[uid].kind is Kind.PLACED]
        return data.draw(st.sampled_from(sorted(placed) * 4 + sorted(members)))

    def some_group(self, data: st.DataObject) -> GroupKey:
        """Mostly one with something to decide."""
        wanting = sorted(self.cache.registry.pending) * 4
        return data.draw(st.sampled_from(wanting + sorted(self.cache.groups)))

    def some_node(self, data: st.DataObject) -> NodeName:
        free = [n for n in sorted(self.api.nodes) if self.api.takes(n)]
        return NodeName(data.draw(st.sampled_from(free * 6 + [NodeName(n) for n in NODES])))

    def publish(self, decided: GangPlacement, *, late: float) -> None:
        before = Promises.read(self.cache)
        expected = self.bears(decided, before)
        new = [p.task for p in decided.placements if p.task.is_slot]
        with self.step(adopts=decided.gang):
            assert self.cache.promise(decided, now=self.now - late) is expected
        after = Promises.read(self.cache)
        if not expected:
            assert after == before
            return
        for placement in decided.placements:
            if not placement.task.is_slot:
                assert after.members[placement.task.uid].node == placement.node
        if not new:
            assert after.slots == before.slots
        assert len(after.slots) <= len(before.slots) + len(new)
        assert len(after.members) - len(before.members) + len(after.slots) - len(
            before.slots
        ) <= len(decided.placements)

    def bears(self, decided: GangPlacement, before: Promises) -> bool:
        """Whether the cluster, looked at afresh, can take the whole of it."""
        key = decided.gang
        solo = self.cache.groups[key].solo
        stored = self.api.groups.get(key)
        if not solo and (stored is None or stored.deleting):
            return False
        taken = list(self.api.taken(before).values())
        asked: dict[NodeName, Counter[str]] = {}
        for placement in decided.placements:
            if not self.api.takes(placement.node):
                return False
            uid = placement.task.uid
            if uid and not kind_is(self.cache, self.cache.members[uid].pod, Kind.WAITING):
                return False
            asked.setdefault(placement.node, Counter()).update(dict(placement.task.shape.requests))
        return all(self.fits(need, self.api.idle(node, taken)) for node, need in asked.items())

    @staticmethod
    def fits(need: Counter[str], free: Counter[str]) -> bool:
        return all(free[name] >= need[name] for name in {*need, *free})

    @precondition(lambda self: self.cache.members)
    @rule(data=st.data(), node=st.sampled_from([*NODES, "n9"]))
    def move(self, data: st.DataObject, node: str) -> None:
        uid = self.some_member(data)
        member = self.cache.members[uid]
        before = Promises.read(self.cache)
        movable = member.stage in (Stage.WAITING, Stage.PLANNED) and (
            kind_is(self.cache, member.pod, Kind.WAITING, Kind.PLACED)
        )
        taken = [t for h, t in self.api.taken(before).items() if h != uid or t.node != node]
        free = self.api.idle(NodeName(node), taken)
        expected = (
            movable
            and self.api.has_group(member.pod)
            and self.api.takes(NodeName(node))
            and self.fits(Counter(dict(member.pod.shape.requests)), free)
        )
        with self.step():
            assert self.cache.move(uid, NodeName(node), now=self.now) is expected
        if not expected:
            assert Promises.read(self.cache) == before

    @precondition(lambda self: self.cache.members)
    @rule(data=st.data(), what=st.sampled_from(["assume", "assume", "binding", "unassume"]))
    def bind_call(self, data: st.DataObject, what: str) -> None:
        uid = self.some_member(data)
        before = Promises.read(self.cache).members
        with self.step(quiet={uid} if what == "unassume" else ()):
            getattr(self.cache, what)(uid, now=self.now)
        after = Promises.read(self.cache).members
        if uid not in before:
            assert after == before
        elif what == "unassume":
            kept = after.get(uid)
            assert kept is None or kept.stage is Stage.PLANNED
            assert kept or before[uid].stage is Stage.BINDING, "only a Binding outlives its place"
        else:
            binding = what == "binding" or before[uid].stage is Stage.BINDING
            assert after[uid].stage is (Stage.BINDING if binding else Stage.ASSUMED)

    @precondition(lambda self: self.cache.members)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        uid = self.some_member(data)
        planned = self.cache.members[uid].stage is Stage.PLANNED
        with self.step(asked={uid}, quiet={uid} if planned else ()):
            self.cache.withdraw(uid, now=self.now)
        assert uid not in Promises.read(self.cache).revocable()

    @precondition(lambda self: self.cache.groups)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.cache.groups)))
        with self.step(asked=self.held_by(key)):
            self.cache.release(key, why="test")
        assert not self.held_by(key)

    @precondition(lambda self: self.cache.groups)
    @rule(data=st.data(), phase=st.sampled_from(list(GroupPhase)))
    def decide_phase(self, data: st.DataObject, phase: GroupPhase) -> None:
        key = data.draw(st.sampled_from(sorted(self.cache.groups)))
        if key in self.api.groups:
            self.phases[key] = phase
        with self.step():
            self.cache.set_phase(key, phase)

    @precondition(lambda self: self.cache.groups)
    @rule(data=st.data())
    def hold_back(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.cache.groups)))
        with self.step():
            self.cache.hold(key, until=self.now + 5)

    @rule(seconds=st.integers(0, 10))
    def ask_who_is_late(self, seconds: int) -> None:
        before = self.now - seconds
        now = Promises.read(self.cache)
        late = {
            p.holder for p in now.members.values() if p.stage is Stage.PLANNED and p.since < before
        }
        told = [str(uid) for _, uids in self.cache.overdue(before=before) for uid in uids]
        assert sorted(told) == sorted(late)
        stale = {slot.group for slot in now.slots.values() if slot.since < before}
        assert {group.key for group in self.cache.stale_slots(before=before)} == stale

    # --- what must hold --------------------------------------------------------------------------

    @invariant()
    def charges_are_what_holds_room(self) -> None:
        rooms = self.cache.rooms
        expected = self.api.taken(Promises.read(self.cache))
        actual = {
            holder: Taken(c.node, c.request, c.promised, c.releasing)
            for holder, c in rooms.charges.items()
        }
        assert actual == expected
        promised = {taken.node for taken in expected.values() if taken.promised}
        assert rooms.promised_nodes() == promised
        used, releasing = rooms.sorted_used()
        zero = np.zeros((len(self.api.nodes), len(rooms.axis)), dtype=np.int64)
        sums, going = zero.copy(), zero.copy()
        for row, name in enumerate(sorted(self.api.nodes)):
            for taken in expected.values():
                if taken.node == name:
                    sums[row] += rooms.axis.vector(taken.requests)
                    going[row] += rooms.axis.vector(taken.requests) * taken.releasing
        assert np.array_equal(used, sums)
        assert np.array_equal(releasing, going)

    @invariant()
    def no_promise_stands_on_a_node_without_room(self) -> None:
        now = Promises.read(self.cache)
        taken = list(self.api.taken(now).values())
        open_to_loss = now.revocable()
        for place in now.places():
            if place.holder in open_to_loss:
                assert self.api.takes(place.node)
                assert not self.api.is_short(place.node, taken)
                assert self.cache.groups[place.group].known

    @invariant()
    def groups_equal_a_recount(self) -> None:
        promises = Promises.read(self.cache)
        known = [*self.api.pods.values(), *self.unseen.values()]
        tracked = [p for p in known if p.uid in self.cache.members]
        for pod in known:
            if pod.uid not in self.cache.members and pod.scheduler == OURS:
                assert pod.status in TERMINAL
                assert pod.grouped
        counted = recount(tracked, promises)
        assert set(self.cache.groups) == set(counted) | set(self.api.groups)
        for key, expected in counted.items():
            group = self.cache.groups[key]
            assert +group.kinds == +expected.kinds
            assert +group.role_kinds == +expected.roles
            assert +group.arrived == +expected.arrived
            assert group.held == dict(expected.held)
            assert group.gated == dict(expected.gated)
            assert group.wanted == dict(expected.wanted)
            assert set(group.waiting) == expected.waiting
            stored = self.api.groups.get(key)
            if stored is not None:
                assert group.phase is self.phases[key]
            wants = expected.pending(stored, group.phase, solo=group.solo)
            assert (key in self.cache.registry.pending) is wants
            assert (key in self.cache.registry.promised) is expected.promised

    @invariant()
    def tasks_fit_the_axis(self) -> None:
        vector = self.cache.rooms.vector
        for member in self.cache.members.values():
            assert np.array_equal(member.task.request, vector(member.pod.shape.requests))

    @invariant()
    def the_audit_finds_nothing(self) -> None:
        outcome = audit(self.cache, [*self.api.pods.values(), *self.unseen.values()])
        assert outcome.drifts == ()
        now = Promises.read(self.cache)
        assert outcome.promises == len(now.members) + len(now.slots)

    @rule()
    def take_a_snapshot(self) -> None:
        self.check_kept()
        snapshot = self.snapshotter.snapshot()
        for array in arrays_of(snapshot):
            with pytest.raises(ValueError, match="read-only"):
                array += 1
        assert set(snapshot.gangs) == set(self.cache.groups)
        assert {g.key for g in snapshot.pending} == set(self.cache.registry.pending)
        for key, view in snapshot.gangs.items():
            self.check_view(view, self.cache.groups[key])
        self.check_usage(snapshot)
        self.check_ports(snapshot)
        self.kept = (snapshot, fingerprint(snapshot))

    def check_view(self, view: Gang, group: Group) -> None:
        anew = Group(
            group.key,
            group.solo,
            pod_group=group.pod_group,
            phase=group.phase,
            hold_until=group.hold_until,
        )
        for member in group.members.values():
            anew.add(member)
        for slot in group.slots.values():
            anew.add_slot(slot)
        expected = gang_view(
            anew, vector=self.cache.rooms.vector, classes=self.cache.registry.classes
        )
        for name in (f.name for f in fields(Gang)):
            left, right = getattr(view, name), getattr(expected, name)
            if name == "waiting":
                assert {t.uid for t in left} == {t.uid for t in right}
            elif name == "role_shapes":
                assert {m.pod.role for m in group.members.values()} <= set(left)
            else:
                assert np.array_equal(left, right), name

    def check_usage(self, snapshot: Snapshot) -> None:
        assert set(snapshot.usage) == {view.queue for view in snapshot.gangs.values()}
        for queue, usage in snapshot.usage.items():
            parts = [usage_of(v) for v in snapshot.gangs.values() if v.queue == queue]
            assert usage.groups == len(parts)
            for name in ("allocated", "request", "inqueue", "elastic"):
                total = sum(getattr(part, name) for part in parts)
                assert np.array_equal(getattr(usage, name), total), name

    def check_ports(self, snapshot: Snapshot) -> None:
        promises = Promises.read(self.cache)
        taken = self.api.taken(promises)
        rows = {
            snapshot.table.index[taken[holder].node]
            for holder, shape in self.shapes_of_holders(promises)
            if shape.host_ports and holder in taken and taken[holder].node in self.api.nodes
        }
        assert set(snapshot.ports) == rows

    def shapes_of_holders(self, promises: Promises) -> list[tuple[str, PodShape]]:
        known = (*self.api.pods.values(), *self.unseen.values())
        slots = [(slot.holder, slot.shape) for slot in promises.slots.values()]
        return [(pod.uid, pod.shape) for pod in known] + slots

    def check_kept(self) -> None:
        if self.kept is not None:
            snapshot, print_then = self.kept
            assert all(
                np.array_equal(a, b) for a, b in zip(fingerprint(snapshot), print_then, strict=True)
            )

    def teardown(self) -> None:
        self.take_a_snapshot()


ROLE = st.sampled_from(ROLES)
ODD = st.sampled_from([False] * 9 + [True])


def kind_is(cache: ClusterCache, pod: Pod, *kinds: Kind) -> bool:
    member = cache.members.get(pod.uid)
    return member is not None and member.kind in kinds


def arrays_of(snapshot: Snapshot) -> list[np.ndarray[Any, Any]]:
    table = snapshot.table
    out = [snapshot.used, snapshot.releasing, table.allocatable, table.total]
    for view in snapshot.gangs.values():
        out += [view.allocated, view.request, view.gated_request]
        out += [] if view.min_request is None else [view.min_request]
        out += [task.request for task in view.waiting]
    for usage in snapshot.usage.values():
        out += [usage.allocated, usage.request, usage.inqueue, usage.elastic]
    return out


def fingerprint(snapshot: Snapshot) -> list[Any]:
    """Everything in it by value."""
    names = [node.name for node in snapshot.table.nodes]
    keys = sorted(snapshot.gangs)
    waiting = [sorted(t.uid for t in snapshot.gangs[key].waiting) for key in keys]
    return [array.copy() for array in arrays_of(snapshot)] + [names, keys, str(waiting)]


TestCacheMachine = pytest.mark.timeout(300)(CacheMachine.TestCase)
TestCacheMachine.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True, database=None
)


def test_a_group_key_is_its_namespace_and_name() -> None:
    assert group_key("default", "g0") == GroupKey("default/g0")
