"""What the API server may say: nodes and pods come, change and go."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from app.cache.gangs.members import PLACED_KINDS, Member, MemberState, Stage
from app.model.amounts import amounts
from app.model.ids import NodeName
from app.model.pod import GATE, GROUP_ANNOTATION, QUEUE_GATE, TASK_SPEC, Owner, Pod, TaskStatus
from app.model.shape import PodShape
from app.model.workload import GroupPhase, PodGroup
from tests.builders import make_amounts, make_node, make_pod, make_queue
from tests.cache.machine import (
    GROUPS,
    NODES,
    ODD,
    OWNERS,
    PODS,
    ROLE,
    TERMINAL,
    Machine,
    kind_is,
    shapes,
)
from tests.cache.naive import OURS, KeptSlot, Reservations, is_held

GATES = [(GATE,), (QUEUE_GATE,), (GATE, QUEUE_GATE), ("other.io/gate",)]


class Events(Machine):
    """Rules that change them."""

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

    @precondition(lambda self: self.reserved_nodes())
    @rule(data=st.data(), by=st.sampled_from([1000, 2000]))
    def a_node_shrinks_below_what_is_reserved(self, data: st.DataObject, by: int) -> None:
        node = self.api.nodes[data.draw(st.sampled_from(self.reserved_nodes()))]
        taken = list(self.api.taken(Reservations.read(self.cache)).values())
        room = dict(node.allocatable)
        used = sum(dict(t.requests).get("cpu", 0) for t in taken if t.node == node.name)
        cpu = max(0, used - by)
        smaller = replace(node, allocatable=amounts(room | {"cpu": cpu}))
        self.api.nodes[node.name] = smaller
        with self.step():
            self.feed.upsert("nodes", smaller)

    @precondition(lambda self: self.reserved_nodes())
    @rule(data=st.data(), more=st.sampled_from([500, 1000, 2000]))
    def others_take_reserved_room(self, data: st.DataObject, more: int) -> None:
        name = data.draw(st.sampled_from(self.reserved_nodes()))
        taken = list(self.api.taken(Reservations.read(self.cache)).values())
        cpu = max(0, self.api.idle(name, taken)["cpu"]) + more
        self.births += 1
        pod = make_pod(
            f"p{self.births}",
            scheduler=data.draw(st.sampled_from([OURS, "default-scheduler"])),
            shape=PodShape(requests=make_amounts(cpu=cpu, pods=1)),
            node=name,
        )
        with self.step():
            self.put(pod)

    @precondition(lambda self: self.api.nodes)
    @rule(data=st.data())
    def drop_node(self, data: st.DataObject) -> None:
        node = self.api.nodes.pop(data.draw(st.sampled_from(sorted(self.api.nodes))))
        with self.step():
            self.feed.remove("nodes", node)

    @precondition(lambda self: self.extended < 2)
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
        group, role = data.draw(st.sampled_from(("", *GROUPS, *GROUPS[:1] * 3))), data.draw(ROLE)
        annotations = {GROUP_ANNOTATION: group} if group else {}
        if data.draw(st.integers(0, 3)) == 0:
            annotations[QUEUE_GATE] = data.draw(st.sampled_from(["true", "false"]))
        return make_pod(
            f"p{self.births}",
            scheduler=data.draw(st.sampled_from([OURS, OURS, OURS, "default-scheduler"])),
            shape=data.draw(shapes(self.extended)),
            labels=data.draw(st.sampled_from([{}, {"size": "old"}])),
            annotations=annotations | ({TASK_SPEC: role} if role else {}),
            gates=data.draw(st.sampled_from([()] * 4 + GATES)),
            owner=data.draw(st.sampled_from([None, None, *OWNERS])),
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
        pod = replace(self.new_pod(data), node=node, phase=phase, gates=())
        with self.filling(pod):
            self.put(pod)

    @precondition(lambda self: len(self.unseen) < 2)
    @rule(data=st.data())
    def filter_shows_a_pod_first(self, data: st.DataObject) -> None:
        pod = replace(self.new_pod(data), scheduler=OURS, gates=())
        self.unseen[pod.uid] = pod
        with self.adopting(pod):
            self.cache.set_pod(pod, now=self.now, observed=True)

    @precondition(lambda self: self.gone)
    @rule(data=st.data(), phase=st.sampled_from(["Pending", "Running"]))
    def filter_shows_a_pod_that_is_gone(self, data: st.DataObject, phase: str) -> None:
        pod = self.gone[data.draw(st.sampled_from(sorted(self.gone)))]
        before = Reservations.read(self.cache)
        self.cache.signals.taken_up()
        with self.step():
            late = replace(pod, phase=phase, deleting=False, node=NodeName(""), gates=())
            self.cache.set_pod(late, now=self.now, observed=True)
        assert pod.uid not in self.cache.members
        assert Reservations.read(self.cache) == before
        assert not self.cache.signals.may_place

    @precondition(lambda self: self.gone and len(self.api.pods) < len(PODS))
    @rule(data=st.data())
    def the_watch_shows_a_pod_that_was_gone(self, data: st.DataObject) -> None:
        """It cannot; if it does it is believed."""
        pod = self.gone[data.draw(st.sampled_from(sorted(self.gone)))]
        fresh = replace(pod, phase="Pending", deleting=False, node=NodeName(""))
        with self.adopting(fresh):
            self.put(fresh)

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
        before, tracked = Reservations.read(self.cache), pod.uid in self.cache.members
        self.cache.signals.taken_up()
        with self.step():
            self.put(replace(pod, resource_version="7"))
        assert Reservations.read(self.cache) == before
        assert not self.cache.signals.may_place or not tracked

    @contextmanager
    def adopting(self, pod: Pod) -> Iterator[None]:
        """A member becomes ready to be planned: a slot for its role is used up for it."""
        before = Reservations.read(self.cache)
        with self.step(adopts=pod.group):
            yield
        used = [
            slot
            for holder, slot in before.slots.items()
            if slot.group == pod.group and holder not in Reservations.read(self.cache).slots
        ]
        mine = [
            slot
            for slot in before.slots.values()
            if slot.group == pod.group and slot.role in (pod.role, "")
        ]
        ready = pod.scheduler == OURS and not is_held(pod)
        if not ready:
            assert used == []
        elif mine:
            self._adopted(pod, used, mine)
        else:
            self._given_up(pod, used, [s for s in before.slots.values() if s.group == pod.group])

    @contextmanager
    def filling(self, pod: Pod, *, brings: Collection[str] = ()) -> Iterator[None]:
        """A member that has a node joins: a slot for its role is not needed any more."""
        before = Reservations.read(self.cache)
        with self.step(adopts=pod.group, brings=brings):
            yield
        mine = {
            holder
            for holder, slot in before.slots.items()
            if slot.group == pod.group and slot.role in (pod.role, "")
        }
        member = self.cache.members.get(pod.uid)
        if mine and member is not None and member.kind in PLACED_KINDS:
            assert mine - set(Reservations.read(self.cache).slots)

    def _given_up(self, pod: Pod, used: list[KeptSlot], slots: list[KeptSlot]) -> None:
        """One slot is one too many when the group needs fewer, with the pod that came."""
        stored = self.api.groups.get(pod.group)
        if stored is None or not slots:
            assert used == []
            return
        assert len(used) == (len(slots) > self.slots_needed(stored))
        member = self.cache.members[pod.uid]
        if used and member.stage is not Stage.WAITING:
            assert (member.stage, member.node) == (Stage.PLANNED, used[0].node)
            assert used[0].shape.fits_like(pod.shape)

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
        """Where it is reserved or elsewhere, by us or by others."""
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
        if pod.group != moved.group and pod.uid in self.cache.members:
            self._moves(pod, moved)

    def _moves(self, pod: Pod, moved: Pod) -> None:
        member = self.cache.members[pod.uid]
        if self.brings_place(pod, moved):
            self._brings_place(member, moved)
        elif moved.status is TaskStatus.PENDING and member.stage is not Stage.BINDING:
            with self.adopting(moved):
                self.put(moved)
        else:
            with self.filling(moved):
                self.put(moved)
            self.void |= self.under_way(moved.group) & {pod.uid}

    def _brings_place(self, member: Member, moved: Pod) -> None:
        before = member.stage, member.node, member.since, member.void
        if self.phases[moved.group] in (GroupPhase.NEW, GroupPhase.PENDING):
            self.phases[moved.group] = GroupPhase.INQUEUE
        with self.filling(moved, brings=[moved.uid]):
            self.put(moved)
        after = self.cache.members[moved.uid]
        assert (after.stage, after.node, after.since, after.void) == before

    @precondition(lambda self: self.alone_with_places())
    @rule(data=st.data(), name=st.sampled_from(GROUPS))
    def a_controller_gives_a_pod_a_group(self, data: st.DataObject, name: str) -> None:
        """One that exists already, or is made now."""
        pod = data.draw(st.sampled_from(self.alone_with_places()))
        moved = replace(pod, annotations={**pod.annotations, GROUP_ANNOTATION: name})
        if moved.group not in self.api.groups:
            made = PodGroup("default", name, f"uid-{name}-of-{pod.name}", "1", 0.0, min_member=1)
            self.api.groups[made.key], self.phases[made.key] = made, made.phase
            with self.step():
                self.feed.upsert("podgroups", made)
        self._moves(pod, moved)

    @precondition(lambda self: self.has_ours)
    @rule(data=st.data(), owner=st.sampled_from([None, *OWNERS]))
    def a_pod_gets_another_owner(self, data: st.DataObject, owner: Owner | None) -> None:
        with self.step():
            self.put(replace(self.some_pod(data, ours=True), owner=owner))

    @rule(owner=st.sampled_from(OWNERS))
    def an_owner_wants_no_gang(self, owner: Owner) -> None:
        with self.step():
            self.cache.pods.await_no_group(owner.uid)

    @precondition(lambda self: self.has_ours)
    @rule(data=st.data(), gates=st.sampled_from([(), *GATES]))
    def gates_change(self, data: st.DataObject, gates: tuple[str, ...]) -> None:
        pod = self.some_pod(data, ours=True)
        changed = replace(pod, gates=gates)
        opened = kind_is(self.cache, pod, MemberState.GATED) and not is_held(changed)
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
    @rule(data=st.data(), readable=st.booleans())
    def a_pod_is_gone(self, data: st.DataObject, readable: bool) -> None:
        pod = self.some_pod(data)
        del self.api.pods[pod.uid]
        self.are_gone([pod])
        with self.step():
            if readable:
                self.feed.remove("pods", pod)
            else:
                self.feed.reject("pods", pod.key, "broken", uid=pod.uid, deleted=True)

    def are_gone(self, pods: Iterable[Pod]) -> None:
        self.gone |= {pod.uid: pod for pod in pods if pod.scheduler == OURS}

    @precondition(lambda self: self.api.pods)
    @rule(data=st.data())
    def an_unreadable_update_changes_nothing(self, data: st.DataObject) -> None:
        pod, before = self.some_pod(data), Reservations.read(self.cache)
        with self.step():
            self.feed.reject("pods", pod.key, "broken", uid=pod.uid)
        assert Reservations.read(self.cache) == before

    @rule(seconds=st.sampled_from([0.0, 5.0]))
    def pods_nobody_confirmed_are_forgotten(self, seconds: float) -> None:
        with self.step(), self.unseen_may_go():
            self.cache.pods.forget_observed(before=self.now - seconds)

    @contextmanager
    def unseen_may_go(self) -> Iterator[None]:
        yield
        self.unseen = {u: p for u, p in self.unseen.items() if u in self.cache.members}

    @rule(data=st.data())
    def pods_are_listed_again(self, data: st.DataObject) -> None:
        stay = {uid: p for uid, p in self.api.pods.items() if not data.draw(ODD)}
        self.are_gone(pod for uid, pod in self.api.pods.items() if uid not in stay)
        self.are_gone(self.unseen.values())
        self.api.pods, self.unseen = stay, {}
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
