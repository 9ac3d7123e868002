"""What must hold after every step: everything counted as it goes equals a count
from scratch."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis.stateful import invariant, rule

from app.cache.audit import audit
from app.cache.decisions import state_of
from app.cache.gangs.groups import Group
from app.cache.gangs.story import entries
from app.cache.gangs.views import gang_view
from app.cache.neighbours.placed_pods import Occupant
from app.cache.neighbours.pods_with_rules import keys_asked
from app.core.sums import part_of
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.job import Template
from app.model.placed_pods import NOBODY, Codes, PlacedPods, terms_of
from app.model.resources import Vector
from app.model.shape import PodShape
from app.model.snapshot import Snapshot
from tests.cache.machine import TERMINAL, Machine
from tests.cache.naive import OURS, Reservations, Taken, has_failed_leaving, recount
from tests.placed_pods import PlacedPod, read_placed_pods


class Checks(Machine):
    """Invariants, and snapshots that stay what they were."""

    # --- what must hold --------------------------------------------------------------------------

    @invariant()
    def charges_are_what_holds_room(self) -> None:
        node_usage = self.cache.node_usage
        expected = self.api.taken(Reservations.read(self.cache))
        actual = {
            holder: Taken(c.node, c.request, c.reserved, c.releasing)
            for holder, c in node_usage.charges.items()
        }
        assert actual == expected
        reserved = {taken.node for taken in expected.values() if taken.reserved}
        assert node_usage.reserved_nodes() == reserved
        used, releasing = node_usage.sorted_used()
        zero = np.zeros((len(self.api.nodes), len(node_usage.axis)), dtype=np.int64)
        sums, going = zero.copy(), zero.copy()
        for row, name in enumerate(sorted(self.api.nodes)):
            for taken in expected.values():
                if taken.node == name:
                    sums[row] += node_usage.axis.vector(taken.requests)
                    going[row] += node_usage.axis.vector(taken.requests) * taken.releasing
        assert np.array_equal(used, sums)
        assert np.array_equal(releasing, going)

    @invariant()
    def no_reservation_is_on_a_node_without_room(self) -> None:
        now = Reservations.read(self.cache)
        taken = self.api.taken(now)
        open_to_loss = now.revocable()
        for place in now.places():
            if place.holder in open_to_loss:
                assert self.api.takes(place.node, place.shape)
                assert not self.api.is_squeezed(taken[place.holder], taken.values())
                assert self.cache.groups[place.group].known

    @invariant()
    def a_place_is_void_only_while_its_binding_is_under_way(self) -> None:
        now = Reservations.read(self.cache)
        void = {uid for uid, reserve in now.members.items() if reserve.void}
        assert self.void <= void
        for uid, reserve in now.members.items():
            if not self.api.takes(reserve.node, reserve.shape) or uid in void - self.void:
                assert uid in void
                assert not reserve.revocable

    @invariant()
    def bindings_under_way_fit_without_those_that_are_void(self) -> None:
        now = Reservations.read(self.cache)
        taken = self.api.taken(now)
        going = {uid for uid, p in now.members.items() if p.void and not p.taken}
        staying = [t for holder, t in taken.items() if holder not in going]
        for uid, reserve in now.members.items():
            is_sure = uid in going or reserve.taken
            assert is_sure or not self.api.is_squeezed(taken[uid], staying)

    @invariant()
    def stories_end_where_members_are(self) -> None:
        for member in self.cache.members.values():
            if member.story:
                last = entries(member.story)[-1].after
                assert last.removesuffix(", void") == state_of(member)

    @invariant()
    def groups_equal_a_recount(self) -> None:
        has_reservations = Reservations.read(self.cache)
        known = [*self.api.pods.values(), *self.unseen.values()]
        tracked = [p for p in known if p.uid in self.cache.members]
        for pod in known:
            if pod.uid not in self.cache.members and pod.scheduler == OURS:
                assert pod.status in TERMINAL
                assert pod.grouped
                assert pod.group not in self.api.groups
        lost = {uid for uid, member in self.cache.members.items() if member.lost}
        assert {p.uid for p in tracked if has_failed_leaving(p)} <= lost
        counted = recount(tracked, has_reservations, self.api, lost=lost)
        assert set(self.cache.groups) == set(counted) | set(self.api.groups)
        for key, expected in counted.items():
            group = self.cache.groups[key]
            assert +group.counted.kinds == +expected.kinds
            assert dict(group.counted.part_kinds) == +expected.parts
            arrivals = group.counted.arrivals
            assert dict(arrivals.at_bind) == +expected.arrived
            assert dict(arrivals.accepted) == +expected.accepted
            assert (arrivals.unanswered, arrivals.voided) == (expected.unanswered, expected.voided)
            assert group.counted.held == dict(expected.held)
            assert group.counted.gated == dict(expected.gated)
            assert group.counted.wanted == dict(expected.wanted)
            assert group.counted.lingering == dict(+expected.lingering)
            assert set(group.waiting) == expected.waiting
            assert group.counted.best_effort_waiting == expected.best_effort
            assert group.counted.lost == expected.lost
            stored = self.api.groups.get(key)
            if stored is not None:
                assert group.phase is self.phases[key]
            wants = expected.pending(stored, group.phase, solo=group.solo) and not group.awaits
            assert (key in self.cache.registry.pending) is wants
            assert (key in self.cache.registry.reserved) is expected.reserved

    @invariant()
    def pods_are_awaited_under_the_owner_they_have(self) -> None:
        awaited = self.cache.pods.awaited.by_owner
        assert all(awaited.values()), "an owner is asked about for nobody"
        filed = {uid: owner for owner, pods in awaited.items() for uid in pods}
        owners = {p.uid: p.owner for p in (*self.api.pods.values(), *self.unseen.values())}
        for uid, member in self.cache.members.items():
            group, owner = self.cache.groups[member.group], owners[uid]
            assert (uid in filed) is bool(group.awaits)
            assert uid not in filed or (owner is not None and filed[uid] == owner.uid)
        assert filed.keys() <= self.cache.members.keys()

    @invariant()
    def tasks_fit_the_axis(self) -> None:
        vector = self.cache.node_usage.vector
        for member in self.cache.members.values():
            assert np.array_equal(member.task.request, vector(member.pod.shape.requests))

    @invariant()
    def what_members_to_come_ask_for_is_on_the_axis(self) -> None:
        axis = self.cache.node_usage.axis
        for group in self.cache.groups.values():
            for template in group.templates.values():
                assert {name for name, _ in template.shape.requests} <= set(axis.names)

    @invariant()
    def the_audit_finds_nothing(self) -> None:
        outcome = audit(self.cache, [*self.api.pods.values(), *self.unseen.values()])
        assert outcome.drifts == ()
        now = Reservations.read(self.cache)
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
        assert all(snapshot.gangs[gang.key] is gang for gang in snapshot.pending)
        assert set(snapshot.awaited) == {gang for gang in snapshot.pending if gang.is_awaited}
        assert set(snapshot.torn) == {gang for gang in snapshot.pending if gang.partial}
        assert set(snapshot.shown) == {
            gang for gang in snapshot.pending if any(task.shown for task in gang.waiting)
        }
        for key, view in snapshot.gangs.items():
            self.check_view(view, self.cache.groups[key])
        self.check_usage(snapshot)
        self.check_ports(snapshot)
        self.check_placed_pods(snapshot)
        self.kept = (snapshot, fingerprint(snapshot))

    def check_view(self, view: Gang, group: Group) -> None:
        anew = Group(
            group.key,
            group.solo,
            group.default_queue,
            group.namespace_queue,
            pod_group=group.pod_group,
            phase=group.phase,
            templates=self.templates_of(group),
            awaits=group.awaits,
            former_queue=group.former_queue,
            cool_down_until=group.cool_down_until,
            given_up=group.given_up,
            claim_since=group.claim_since,
            reached=group.reached,
            foreign=group.foreign,
        )
        for member in group.members.values():
            anew.add(member)
        for slot in group.slots.values():
            anew.add_slot(slot)
        expected = gang_view(
            anew, vector=self.cache.node_usage.vector, classes=self.cache.registry.classes
        )
        for name in (f.name for f in fields(Gang) if f.name != "version"):
            left, right = getattr(view, name), getattr(expected, name)
            if name in ("waiting", "queue_first"):
                assert {t.uid for t in left} == {t.uid for t in right}
            elif name == "role_shapes":  # the shape of a role that was seen is remembered
                assert {m.pod.role for m in group.members.values()} <= set(left)
                assert right.keys() <= left.keys()
                seen = group.role_shapes
                assert all(unnamed(left[r]) == unnamed(right[r]) for r in right if r not in seen)
            else:
                assert np.array_equal(left, right), name

    def templates_of(self, group: Group) -> Mapping[str, Template]:
        stored = self.api.groups.get(group.key)
        return {} if stored is None else self.templates.get(stored.owner_uid, {})

    def check_placed_pods(self, snapshot: Snapshot) -> None:
        """Told when a pod has a rule about other pods: every pod and slot that has a node."""
        known = {p.uid: p for p in (*self.api.pods.values(), *self.unseen.values())}
        curious = [
            pod
            for pod in known.values()
            if (pod.shape.looks_at_pods if pod.scheduler == OURS else pod.shape.pod_anti_affinity)
            and pod.status not in TERMINAL
            and (pod.uid in self.cache.members or pod.uid in self.cache.pods.foreign)
        ]
        assert snapshot.inter_pod or not curious
        if not snapshot.inter_pod:
            assert snapshot.placed_pods is NOBODY
            return
        for gang in snapshot.pending:
            shapes = [*gang.role_shapes.values(), *(task.shape for task in gang.waiting)]
            assert all(shape.spread_identity is not None for shape in shapes)
            assert keys_asked(shapes) <= snapshot.placed_pods.labels.keys()
        self.check_told(snapshot.placed_pods)

    @invariant()
    def placed_pods_are_what_has_a_place(self) -> None:
        table = self.cache.node_usage.table()
        self.check_told(self.cache.pods.table.placed_pods(table, frozenset({"size"})))

    def check_told(self, placed_pods: PlacedPods) -> None:
        has_reservations, table = Reservations.read(self.cache), self.cache.node_usage.table()
        known = {p.uid: p for p in (*self.api.pods.values(), *self.unseen.values())}
        taken = self.api.taken(has_reservations)
        there = {holder: t.node for holder, t in taken.items() if t.node in self.api.nodes}
        expected = [Occupant.of(pod, there[uid]) for uid, pod in known.items() if uid in there]
        expected += [
            Occupant.of_slot(slot, namespace="default")
            for group in self.cache.groups.values()
            for slot in group.slots.values()
            if slot.holder in there
        ]
        told = read_placed_pods(placed_pods, nodes=len(table.nodes))
        labels = placed_pods.labels.keys()
        assert Counter(seen_of(one, one.node, one.staying, labels) for one in told) == Counter(
            seen_of(one, table.index[one.node], not one.leaving, labels) for one in expected
        )

    def check_usage(self, snapshot: Snapshot) -> None:
        assert set(snapshot.usage) == {view.queue for view in snapshot.gangs.values()}
        for queue, usage in snapshot.usage.items():
            parts = [part_of(v)[1] for v in snapshot.gangs.values() if v.queue == queue]
            assert usage.groups == len(parts)
            *sums, releasing, committed = np.add.reduce(parts)
            for name, total in zip(
                ("allocated", "request", "inqueue", "elastic"), sums, strict=True
            ):
                assert np.array_equal(getattr(usage, name), total), name
            lingering = self.lingering_of(queue)
            assert np.array_equal(releasing, lingering)
            assert (usage.releasing is not None) is bool(lingering.any())
            assert usage.releasing is None or np.array_equal(usage.releasing, lingering)
            assert (usage.committed is not None) is bool(committed.any())
            assert usage.committed is None or np.array_equal(usage.committed, committed)

    def lingering_of(self, queue: QueueName) -> Vector:
        """What terminating pods of groups of ``queue`` have on nodes that are up."""
        total = np.zeros(len(self.cache.node_usage.axis), dtype=np.int64)
        for member in self.cache.members.values():
            if self.cache.groups[member.group].queue == queue and self.api.lingers(member.pod):
                total += self.cache.node_usage.vector(member.pod.shape.requests)
        return total

    def check_ports(self, snapshot: Snapshot) -> None:
        has_reservations = Reservations.read(self.cache)
        taken = self.api.taken(has_reservations)
        rows = {
            snapshot.table.index[taken[holder].node]
            for holder, shape in self.shapes_of_holders(has_reservations)
            if shape.host_ports and holder in taken and taken[holder].node in self.api.nodes
        }
        assert set(snapshot.ports) == rows
        known = {*self.cache.members, *self.cache.pods.foreign, *has_reservations.slots}
        assert set(self.cache.rules.ports) <= known, "ports of holders that are gone"

    def shapes_of_holders(self, has_reservations: Reservations) -> list[tuple[str, PodShape]]:
        known = (*self.api.pods.values(), *self.unseen.values())
        slots = [(slot.holder, slot.shape) for slot in has_reservations.slots.values()]
        return [(pod.uid, pod.shape) for pod in known] + slots

    def check_kept(self) -> None:
        if self.kept is not None:
            snapshot, print_then = self.kept
            assert all(
                np.array_equal(a, b) for a, b in zip(fingerprint(snapshot), print_then, strict=True)
            )

    def teardown(self) -> None:
        self.take_a_snapshot()


def seen_of(
    one: PlacedPod | Occupant, row: int, staying: bool, labels: Set[str]
) -> tuple[object, ...]:
    """What rules see of it, of its labels those with keys that are asked for."""
    seen = frozenset((key, one.labels[key]) for key in labels & one.labels.keys())
    return row, one.namespace, seen, terms_of(one.shape), staying


def arrays_of(snapshot: Snapshot) -> list[np.ndarray[Any, Any]]:
    table = snapshot.table
    out = [snapshot.used, snapshot.releasing, table.allocatable, table.total]
    for view in snapshot.gangs.values():
        out += [view.allocated, view.request, view.gated_request, view.releasing]
        out += [] if view.min_request is None else [view.min_request]
        out += [task.request for task in view.waiting]
    for usage in snapshot.usage.values():
        out += [usage.allocated, usage.request, usage.inqueue, usage.elastic]
        out += [] if usage.releasing is None else [usage.releasing]
    return [*out, snapshot.placed_pods.rows, *(column.codes for column in columns_of(snapshot))]


def columns_of(snapshot: Snapshot) -> list[Codes[Any]]:
    of = snapshot.placed_pods
    return [of.homes, of.leaving, of.terms, *of.labels.values()]


def fingerprint(snapshot: Snapshot) -> list[Any]:
    """Everything in it by value."""
    names = [node.name for node in snapshot.table.nodes]
    keys = sorted(snapshot.gangs)
    waiting = [sorted(t.uid for t in snapshot.gangs[key].waiting) for key in keys]
    values = [list(column.values) for column in columns_of(snapshot)]
    texts = [str(waiting), str(values)]
    return [array.copy() for array in arrays_of(snapshot)] + [names, keys, *texts]


def unnamed(shape: PodShape) -> PodShape:
    """The shape without what rules about other pods see."""
    return replace(shape, spread_identity=None)
