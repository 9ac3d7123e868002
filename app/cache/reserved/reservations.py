"""Room reserved for members and slots: how it is given, changed and taken back.

A reservation is published for a whole gang or not at all, on what is true at that moment, and then
follows its member through the stages of :mod:`app.cache.gangs.members`. It is charged on its node
like a pod that runs there. What events do to it is in :mod:`app.cache.reserved.losses`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from app.cache.decisions import Decisions
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, MemberState, Stage, may_change
from app.cache.gangs.registry import Registry
from app.cache.gangs.story import Stimulus
from app.cache.neighbours.rules import Rules
from app.cache.nodes.domains import NetworkTree
from app.cache.nodes.numa import NumaUsage
from app.cache.nodes.usage import NodeUsage
from app.cache.reserved.kept_slots import KeptSlots
from app.cache.reserved.losses import Losses
from app.model.decision import DecisionKind
from app.model.exchange import NO_EXCHANGE, Exchange
from app.model.ids import NO_NODE, GroupKey, NodeName, PodUid
from app.model.numa import NumaNeed
from app.model.plan import GangPlacement
from app.model.resources import Vector


class Reservations:
    """What we decided about the room of members and slots."""

    def __init__(
        self,
        decisions: Decisions,
        *,
        node_usage: NodeUsage,
        numa: NumaUsage,
        registry: Registry,
        members: Mapping[PodUid, Member],
        rules: Rules,
        network: NetworkTree,
        slots: KeptSlots,
        losses: Losses,
    ) -> None:
        self.housed: list[PodUid] = []
        """Members that came into a slot, for the actuator, which tells pods their places."""
        self._decisions = decisions
        self._node_usage = node_usage
        self._numa = numa
        self._registry = registry
        self._members = members
        self._rules = rules
        self._network = network
        self._slots = slots
        self._losses = losses

    # --- places are given ------------------------------------------------------------------------

    def reserve(
        self,
        decided: GangPlacement,
        *,
        now: float,
        by: Stimulus = Stimulus.CYCLE,
        generation: int = 0,
    ) -> bool:
        """Publish placements, all or none; False when the live cluster has moved on.

        Checked against what is true now: members still wait, nodes still take pods, room and cpus
        are there.
        ``generation`` is that of the snapshot that they were planned on.
        """
        group = self._registry.groups.get(decided.gang)
        if group is None or not group.known or group.deleting:
            return False
        if not self._still_holds(group, decided):
            return False
        for placement in decided.placements:
            node = placement.node
            if placement.task.is_slot:
                self._slots.add(group, placement, now=now)
                continue
            member = self._members[placement.task.uid]
            exchange = placement.exchange
            self._losses.put(member, node, now=now, by=by, generation=generation, exchange=exchange)
            if member.pod.maybe_prepared_on == node:
                # A process before this one told kube-scheduler, which may be in PreBind.
                self._decisions.choose(member, node, now=now)
                self._decisions.tell(member, told=True)
        slots = Counter(each.node for each in decided.placements if each.task.is_slot)
        places = f"places: {len(decided.placements)}"
        if slots:
            where = ", ".join(f"{count} on {node}" for node, count in sorted(slots.items()))
            places += f", kept for members to come: {where}"
        self._decisions.note_group(
            group,
            "reserved",
            by=by,
            why=places,
            generation=generation,
            kind=DecisionKind.PLACE if slots else None,
        )
        group.refused_since = 0.0
        self._registry.changed(group, replan=False)
        if slots:
            for late in [m for m in group.waiting.values() if m.since > now]:
                self.adopt_slot(group, late, now=now)
            self._slots.drop_surplus(group)  # members may have come that have their nodes already
        return True

    def _still_holds(self, group: Group, decided: GangPlacement) -> bool:
        needs: dict[NodeName, Vector] = {}
        of_cpus: dict[NodeName, list[NumaNeed]] = {}
        for placement in decided.placements:
            task = placement.task
            if not task.is_slot and task.uid not in group.waiting:
                return False
            if not self._node_usage.takes(placement.node, task.shape):
                return False
            request = self._node_usage.vector(task.shape.requests)
            at = needs.get(placement.node)
            needs[placement.node] = request if at is None else at + request
            if task.shape.numa is not None:
                of_cpus.setdefault(placement.node, []).append(task.shape.numa)
        return all(
            self._node_usage.has_room(node, need, owner=group.key) for node, need in needs.items()
        ) and all(self._numa.admits(node, asked) for node, asked in of_cpus.items())

    def adopt_slot(self, group: Group, member: Member, *, now: float) -> None:
        """Give a new member the room kept for it.

        When none is like it, or it has a node already, one is given back all the same, so that what
        is kept never exceeds what the group needs: the member is planned like any other.
        """
        pod = member.pod
        slot = self._slots.take(group, pod, now=now)
        if slot is None:
            return
        comes_in = member.stage is Stage.WAITING and not pod.node and slot.serves(pod)
        if comes_in:
            self._losses.put(member, slot.node, now=now, by=Stimulus.SLOT, exchange=slot.exchange)
            self.housed.append(pod.uid)
        self._registry.changed(group, replan=not comes_in)

    # --- places are changed ----------------------------------------------------------------------

    def move(
        self, uid: PodUid, node: NodeName, *, now: float, by: Stimulus = Stimulus.FILTER
    ) -> bool:
        """Give a planned member another node instead; False (and no change) if there is no room.

        So it is when its place may not be exchanged for free room.
        """
        member = self._members.get(uid)
        if member is None or member.stage not in (Stage.PLANNED, Stage.WAITING):
            return False
        if member.kind not in (MemberState.PLACED, MemberState.WAITING):
            return False
        if not self._node_usage.takes(node, member.pod.shape):
            return False
        if not self._registry.groups[member.group].known:
            return False
        if member.node not in (node, NO_NODE) and not member.exchange_class.is_open:
            return False
        if member.node != node and not self._node_usage.has_room(node, member.task.request):
            return False
        need = member.pod.shape.numa
        if member.node != node and need is not None and not self._numa.admits(node, [need]):
            return False
        self._losses.move(member, node, now=now, by=by)
        return True

    def exchange(self, uid: PodUid, offered: Collection[NodeName], *, now: float) -> bool:
        """Let a planned member and an equal one of its gang change nodes, if their places may.

        So that the first has one that is ``offered``; all room stays as it was planned. Not with
        one whose place the pod or kube-scheduler was told: its Bind may be on the way.
        """
        member = self._members.get(uid)
        if member is None or not member.planned:
            return False
        for other in self._registry.groups[member.group].members.values():
            if other.node in offered and self._may_exchange(member, other):
                self._decisions.exchange(member, other, now=now)
                return True
        return False

    def change_places(self, uid: PodUid, other: PodUid, *, now: float) -> bool:
        """Let two planned members exchange nodes, if they are equal; returns whether they did.

        The members may be of two groups where the classes of their places say so.
        """
        member, theirs = self._members.get(uid), self._members.get(other)
        if member is None or theirs is None or member is theirs:
            return False
        if not self._may_exchange(member, theirs):
            return False
        self._decisions.exchange(member, theirs, now=now)
        return True

    def exchange_of(self, member: Member) -> Exchange:
        """The class of the member's place as things are now.

        Among the members of its gang only, while some rule says which pods may be beside which. A
        place inside a domain that has other nodes by now is exchanged with no other.
        """
        mine = member.exchange_class
        if not self._network.knows(mine.inside or ()):
            return NO_EXCHANGE
        return mine.within(member.group) if self._rules.are_between_pods else mine

    def _may_exchange(self, member: Member, other: Member) -> bool:
        alike = may_change(member, other)
        return alike and self.exchange_of(member).allows(self.exchange_of(other))

    # --- places are taken back -------------------------------------------------------------------

    def withdraw(self, uid: PodUid, *, now: float, why: str = "") -> None:
        """Take the place of one member back; it waits again. Not while its Binding is under way."""
        member = self._members.get(uid)
        if member is None or not member.revocable:
            return
        if member.stage is Stage.ASSUMED:
            self._losses.note(member, "place was taken back")
        self._losses.unplace(member, since=now, by=Stimulus.TAKEN_BACK, why=why)

    def pass_over(self, key: GroupKey, uids: Iterable[PodUid], *, until: float, now: float) -> None:
        """Take the places of members beyond the minimum back, for which no call came.

        They go last from now on, and all others beyond that minimum do ``until`` then: the next of
        the gang is no more likely to be fetched than a pod of another.
        """
        group = self._registry.groups.get(key)
        if group is None:
            return
        group.unused.update(uids)
        group.yields_until = until
        for uid in uids:
            self.withdraw(uid, now=now, why="the place was not used in time")

    def release(self, key: GroupKey, *, why: str) -> None:
        """Take back every reservation of a group whose Binding is not on its way."""
        group = self._registry.groups.get(key)
        if group is not None and group.has_reservations:
            kind = DecisionKind.RELEASE if group.slots else None
            self._decisions.note_group(
                group, "given back", by=Stimulus.TAKEN_BACK, why=why, kind=kind
            )
            self.take_back([*group.slots, *group.members], why=why)

    def take_back(self, holders: Iterable[str], *, why: str) -> None:
        """Take back the places of these members and slots, but of Bindings under way."""
        self._losses.take_back(holders, why=why)
