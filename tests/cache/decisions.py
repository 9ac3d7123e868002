"""What we may decide: places given, moved, used and taken back."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from app.cache.gangs.members import Answer, MemberState, Stage
from app.cache.gangs.views import task_of
from app.cache.reserved import unused
from app.cache.reserved.revocable import revocable
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.plan import GangPlacement, Placement, Revocable
from app.model.workload import GroupPhase
from tests.builders import make_shape, make_task
from tests.cache.machine import (
    NODES,
    ODD,
    ROLE,
    Machine,
    kind_is,
    shapes,
)
from tests.cache.naive import Reservation, Reservations


class Decisions(Machine):
    """Rules that make, use and take back reservations."""

    # --- reservations ---------------------------------------------------------------------------

    @precondition(lambda self: self.cache.groups)
    @rule(data=st.data(), late=st.sampled_from([0.0, 3.0]))
    def reserve(self, data: st.DataObject, late: float) -> None:
        """A plan, maybe of ``late`` seconds ago, maybe of things that are not so any more."""
        key = self.some_group(data)
        members = list(self.cache.groups[key].members.values())
        uids = [m.pod.uid for m in members if m.kind is MemberState.WAITING or data.draw(ODD)]
        placements = []
        some = st.sets(st.sampled_from(uids), min_size=1, max_size=3)
        for uid in sorted(data.draw(some)) if uids else ():
            task = task_of(self.cache.members[uid].pod, self.cache.node_usage.vector)
            placements.append(Placement(task, self.some_node(data)))
        for _ in range(data.draw(st.integers(0, 2)) if not self.cache.groups[key].solo else 0):
            shape = data.draw(shapes(self.extended))
            slot = make_task(
                "",
                uid=PodUid(""),
                role=data.draw(ROLE),
                shape=shape,
                axis=self.cache.node_usage.axis,
            )
            placements.append(Placement(slot, self.some_node(data)))
        if placements:
            self.publish(GangPlacement(key, tuple(placements), whole=True), late=late)

    def some_member(self, data: st.DataObject) -> PodUid:
        """Mostly one with a reservation."""
        members = self.cache.members
        placed = [uid for uid in members if members[uid].kind is MemberState.PLACED]
        void = [PodUid(uid) for uid in sorted(self.void)]
        return data.draw(st.sampled_from(void * 9 + sorted(placed) * 4 + sorted(members)))

    def some_group(self, data: st.DataObject) -> GroupKey:
        """Mostly one with something to decide."""
        wanting = sorted(self.cache.registry.pending) * 4
        return data.draw(st.sampled_from(wanting + sorted(self.cache.groups)))

    def some_node(self, data: st.DataObject) -> NodeName:
        free = [n for n in sorted(self.api.nodes) if self.api.takes(n, make_shape())]
        return NodeName(data.draw(st.sampled_from(free * 6 + [NodeName(n) for n in NODES])))

    def publish(self, decided: GangPlacement, *, late: float) -> None:
        before = Reservations.read(self.cache)
        expected = self.bears(decided, before)
        new = [p.task for p in decided.placements if p.task.is_slot]
        taken_up = self.has_late_comers(decided, before, since=self.now + 1 - late)
        with self.step(adopts=decided.gang):
            assert self.cache.reservations.reserve(decided, now=self.now - late) is expected
        after = Reservations.read(self.cache)
        if not expected:
            assert after == before
            return
        for placement in decided.placements:
            if not placement.task.is_slot:
                assert after.members[placement.task.uid].node == placement.node
        used = len(before.slots) + len(new) - len(after.slots)
        kept = sum(slot.group == decided.gang for slot in after.slots.values())
        needed = self.slots_needed(self.api.groups[decided.gang]) if new else kept
        assert kept <= needed, "no room is kept beyond what the group lacks"
        assert (used > 0) is (bool(new) and (taken_up or kept + used > needed))
        assert len(after.members) - len(before.members) <= used + len(decided.placements) - len(new)

    def has_late_comers(
        self, decided: GangPlacement, before: Reservations, *, since: float
    ) -> bool:
        """Whether members that the plan did not know take up, or make needless, a slot."""
        planned = {p.task.uid for p in decided.placements}
        roles = {slot.role for slot in before.slots.values() if slot.group == decided.gang}
        roles |= {p.task.role for p in decided.placements if p.task.is_slot}
        return any(
            member.since > since and uid not in planned and roles & {member.pod.role, ""}
            for uid, member in self.cache.groups[decided.gang].waiting.items()
        )

    def bears(self, decided: GangPlacement, before: Reservations) -> bool:
        """Whether the cluster, looked at afresh, can take the whole of it."""
        key = decided.gang
        group = self.cache.groups[key]
        stored = self.api.groups.get(key)
        if group.awaits or (not group.solo and (stored is None or stored.deleting)):
            return False
        taken = list(self.api.taken(before).values())
        asked: dict[NodeName, Counter[str]] = {}
        for placement in decided.placements:
            if not self.api.takes(placement.node, placement.task.shape):
                return False
            uid = placement.task.uid
            if uid and not kind_is(self.cache, self.cache.members[uid].pod, MemberState.WAITING):
                return False
            asked.setdefault(placement.node, Counter()).update(dict(placement.task.shape.requests))
        return all(self.fits(need, self.api.idle(node, taken)) for node, need in asked.items())

    @staticmethod
    def fits(need: Counter[str], free: Counter[str]) -> bool:
        """What is not asked for may be lacking."""
        return all(free[name] >= amount for name, amount in need.items() if amount)

    @precondition(lambda self: self.cache.members)
    @rule(data=st.data(), node=st.sampled_from([*NODES, "n9"]))
    def move(self, data: st.DataObject, node: str) -> None:
        uid = self.some_member(data)
        member = self.cache.members[uid]
        before = Reservations.read(self.cache)
        movable = member.stage in (Stage.WAITING, Stage.PLANNED) and (
            kind_is(self.cache, member.pod, MemberState.WAITING, MemberState.PLACED)
        )
        taken = [t for h, t in self.api.taken(before).items() if h != uid or t.node != node]
        free = self.api.idle(NodeName(node), taken)
        place = before.members.get(uid)
        is_settled = member.pod.pinned and place is not None and place.node != node
        expected = (
            movable
            and not is_settled
            and self.api.has_group(member.pod)
            and not self.cache.groups[member.group].awaits
            and self.api.takes(NodeName(node), member.pod.shape)
            and self.fits(Counter(dict(member.pod.shape.requests)), free)
        )
        with self.step():
            assert self.cache.reservations.move(uid, NodeName(node), now=self.now) is expected
        if not expected:
            assert Reservations.read(self.cache) == before

    @precondition(lambda self: self.cache.members)
    @rule(data=st.data(), offered=st.sampled_from([NODES, NODES, NODES[:1], ("n9",)]))
    def exchange(self, data: st.DataObject, offered: Sequence[str]) -> None:
        """A member and an equal one of its gang change places."""
        uid = self.some_member(data)
        done = self.changing_places(
            lambda: self.cache.reservations.exchange(
                uid, [NodeName(n) for n in offered], now=self.now
            )
        )
        assert not done or self.cache.members[uid].node in offered

    @precondition(lambda self: self.cache.members)
    @rule(data=st.data())
    def change_places(self, data: st.DataObject) -> None:
        """Two equal members do, of whichever groups."""
        one, other = self.some_member(data), self.some_member(data)
        before = [self.cache.members[uid].node for uid in (one, other)]
        done = self.changing_places(
            lambda: self.cache.reservations.change_places(one, other, now=self.now)
        )
        after = [self.cache.members[uid].node for uid in (other, one)]
        assert not done or after == before

    def changing_places(self, change: Callable[[], bool]) -> bool:
        """Nobody loses anything, and two change if any do; returns whether it was done."""
        before = Reservations.read(self.cache)
        with self.step():
            done = change()
        after = Reservations.read(self.cache)
        changed = {u for u, p in before.members.items() if after.members[u].node != p.node}
        assert set(after.members) == set(before.members)
        assert after.slots == before.slots
        assert Counter(p.node for p in after.places()) == Counter(p.node for p in before.places())
        assert len(changed) in ((0, 2) if done else (0,))
        return done

    @precondition(lambda self: self.cache.members)
    @rule(data=st.data(), what=st.sampled_from(["assume", "binding", "binding", "unassume"]))
    def bind_call(self, data: st.DataObject, what: str) -> None:
        """A step of a Binding; of one that is under way mostly an answer."""
        uid = self.some_member(data)
        reserve = Reservations.read(self.cache).members.get(uid)
        if reserve is not None and not reserve.revocable and data.draw(st.integers(0, 3)):
            self.answer(reserve, data.draw(st.sampled_from(Answer)))
        else:
            self.call(uid, what)

    def answer(self, reserve: Reservation, answer: Answer) -> None:
        with self.step():
            self.cache.bind_steps.answered(PodUid(reserve.holder), answer)
        after = Reservations.read(self.cache).members[reserve.holder]
        assert after == (reserve if reserve.taken else replace(reserve, answer=answer))

    def call(self, uid: PodUid, what: str) -> None:
        before, void = Reservations.read(self.cache).members, uid in self.void
        with self.step(quiet={uid} if what == "unassume" else ()):
            getattr(self.cache.bind_steps, what)(uid, now=self.now)
        after = Reservations.read(self.cache).members
        if uid not in before:
            assert after == before
        elif what == "unassume":
            kept = after.get(uid)
            if before[uid].taken:
                assert kept == before[uid], "it is bound, whoever says that it is not"
                return
            assert kept is None or (kept.stage is Stage.PLANNED and not void)
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
            self.cache.reservations.withdraw(uid, now=self.now)
        assert uid not in Reservations.read(self.cache).revocable()

    @precondition(lambda self: self.parts())
    @rule(data=st.data())
    def take_back_what_stands_or_falls_together(self, data: st.DataObject) -> None:
        parts = self.parts()
        holders = [holder for part in parts for holder in part.holders]
        assert len(holders) == len(set(holders))
        assert set(holders) <= Reservations.read(self.cache).revocable()
        part = data.draw(st.sampled_from(parts))
        group = self.cache.groups[part.gang]
        assert not (part.whole and group.on_nodes), "it is begun"
        with self.step(asked=part.holders):
            self.cache.reservations.take_back(part.holders, why="test")
        assert not set(part.holders) & Reservations.read(self.cache).revocable()
        assert not self.held_by(part.gang) if part.whole else group.complete

    def parts(self) -> list[Revocable]:
        """What can be taken back."""
        return list(revocable(self.cache.groups.values(), vector=self.cache.node_usage.vector))

    @precondition(lambda self: self.cache.groups)
    @rule(
        data=st.data(),
        what=st.sampled_from(["phase", "phase", "hold", "give up", "release"]),
        phase=st.sampled_from(list(GroupPhase)),
    )
    def decide_about_a_group(self, data: st.DataObject, what: str, phase: GroupPhase) -> None:
        key = data.draw(st.sampled_from(sorted(self.cache.groups)))
        if what == "phase" and key in self.api.groups:
            self.phases[key] = phase
        with self.step(asked=self.held_by(key) if what == "release" else ()):
            if what == "phase":
                self.cache.decisions.set_phase(key, phase)
            elif what == "hold":
                self.cache.decisions.cool_down(key, until=self.now + 5)
            elif what == "give up":
                self.cache.decisions.give_up(key)
            else:
                self.cache.reservations.release(key, why="test")
        assert what != "release" or not self.held_by(key)

    @rule(seconds=st.integers(0, 10))
    def ask_who_is_late(self, seconds: int) -> None:
        before = self.now - seconds
        now = Reservations.read(self.cache)
        late = {
            p.holder for p in now.members.values() if p.stage is Stage.PLANNED and p.since < before
        }
        reserved = self.cache.registry.reserved.values()
        overdue = unused.overdue(reserved, before=before, prebind_before=self.now)
        told = [str(uid) for _, uids in overdue for uid in uids]
        assert sorted(told) == sorted(late)
        stale = {
            slot.group
            for slot in now.slots.values()
            if max(slot.since, self.cache.groups[slot.group].filled_at) < before
            if not (self.cache.groups[slot.group].owed and self.cache.groups[slot.group].templates)
        }
        assert {group.key for group in unused.stale_slots(reserved, before=before)} == stale
