"""Room promised to members and slots: how it is given, kept and lost.

A promise is published for a whole gang or not at all, on what is true at that moment, and then
follows its member through the stages of :mod:`app.cache.gangs.members`. It is charged on its node
like a pod that runs there. Reservations that became void by an event (node gone, another pod took
the room, pod deleted) are given back at once, the latest first, and listed in
:attr:`Reservations.lost` for whoever holds a Bind call open. Only a Binding that is under way is
never taken back: the API server may have accepted it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Answer, Member, MemberState, Stage, may_change
from app.cache.gangs.prebind import is_on_its_way
from app.cache.gangs.registry import Registry
from app.cache.neighbours.rules import Rules
from app.cache.nodes.usage import NodeUsage
from app.cache.reserved.kept_slots import KeptSlots
from app.cache.reserved.shortages import Shortages
from app.core.placement.single import SingleNode
from app.model.ids import NO_NODE, GroupKey, NodeName, PodUid, QueueName
from app.model.plan import GangPlacement
from app.model.pod import Pod, TaskStatus
from app.model.reason import TAKEN
from app.model.resources import Vector
from app.model.shape import PodShape
from app.model.workload import GroupPhase


@dataclass(frozen=True, slots=True)
class Lost:
    """A promise that an event made void, and why."""

    uid: PodUid
    group: GroupKey
    why: str


@dataclass(frozen=True, slots=True)
class Vacated:
    """What a member of a group had on a node until it ended or went."""

    group: GroupKey
    pod: Pod
    node: NodeName


class Reservations:
    """Members, their groups and the room they hold; that of slots is in :attr:`slots`."""

    def __init__(self, *, default_queue: QueueName) -> None:
        self.node_usage = NodeUsage()
        self.registry = Registry(self.node_usage, default_queue=default_queue)
        self.groups = self.registry.groups
        self.signals = self.registry.signals
        self.members: dict[PodUid, Member] = {}
        self.shortages = Shortages(self.node_usage, self.members, self.groups)
        self.rules = Rules()
        self.slots = KeptSlots(self.node_usage, self.registry, self.rules)
        self.lost: list[Lost] = []
        self.vacated: list[Vacated] = []
        """What members of gangs had that are over or gone, for whoever keeps it for their gang."""
        self.housed: list[PodUid] = []
        """Members that came into a slot, for whoever tells pods their places."""

    # --- what we decided -------------------------------------------------------------------------

    def reserve(self, decided: GangPlacement, *, now: float) -> bool:
        """Publish placements, all or none; False when the live cluster has moved on.

        Checked against what is true now: members still wait, nodes still take pods, room is there.
        """
        group = self.groups.get(decided.gang)
        if group is None or not group.known or group.deleting:
            return False
        if not self._still_holds(group, decided):
            return False
        for placement in decided.placements:
            if placement.task.is_slot:
                self.slots.add(group, placement.task, node=placement.node, now=now)
            else:
                member = self.members[placement.task.uid]
                self._put(member, Stage.PLANNED, node=placement.node, now=now)
                if member.pod.maybe_prepared_on == placement.node:
                    member.choose(placement.node, now=now)  # by a process before this one
        self.registry.changed(group, replan=False)
        if any(placement.task.is_slot for placement in decided.placements):
            for late in [m for m in group.waiting.values() if m.since > now]:
                self._adopt_slot(group, late, now=now)
            self.slots.drop_surplus(group)  # members may have come that have their nodes already
        return True

    def _still_holds(self, group: Group, decided: GangPlacement) -> bool:
        needs: dict[NodeName, Vector] = {}
        for placement in decided.placements:
            task = placement.task
            if not task.is_slot and task.uid not in group.waiting:
                return False
            if not self.node_usage.takes(placement.node, task.shape):
                return False
            request = self.node_usage.vector(task.shape.requests)
            at = needs.get(placement.node)
            needs[placement.node] = request if at is None else at + request
        return all(self.node_usage.has_room(node, need) for node, need in needs.items())

    def move(self, uid: PodUid, node: NodeName, *, now: float) -> bool:
        """Give a planned member another node instead; False (and no change) if there is no room."""
        member = self.members.get(uid)
        if member is None or member.stage not in (Stage.PLANNED, Stage.WAITING):
            return False
        if member.kind not in (MemberState.PLACED, MemberState.WAITING):
            return False
        if not self.node_usage.takes(node, member.pod.shape):
            return False
        if not self.groups[member.group].known:
            return False
        if member.node != node and not self.node_usage.has_room(node, member.task.request):
            return False
        self._move(member, Stage.PLANNED, node=node, now=now)
        return True

    def exchange(self, uid: PodUid, offered: Collection[NodeName], *, now: float) -> bool:
        """Let a planned member and an equal one of its gang change nodes.

        So that the first has one that is ``offered``; all room stays as it was planned. Not with
        one whose place was told to somebody: its Bind may be on the way.
        """
        member = self.members.get(uid)
        if member is None or not member.planned:
            return False
        for other in self.groups[member.group].members.values():
            if other.node in offered and may_change(member, other):
                self._exchange(member, other, now=now)
                return True
        return False

    def change_places(self, uid: PodUid, other: PodUid, *, now: float) -> bool:
        """Let these two planned members change nodes, if they are equal; returns whether they did.

        They may be of two groups, as long as no rule says which pods may be beside which.
        """
        member, theirs = self.members.get(uid), self.members.get(other)
        if member is None or theirs is None or member is theirs:
            return False
        if member.group != theirs.group and self.rules.are_between_pods:
            return False
        if not may_change(member, theirs):
            return False
        self._exchange(member, theirs, now=now)
        return True

    def _exchange(self, member: Member, other: Member, *, now: float) -> None:
        self.node_usage.exchange(member.pod.uid, other.pod.uid)
        member.node, other.node = other.node, member.node
        member.since, member.told = now, False

    def tell(self, member: Member, *, told: bool) -> None:
        """Somebody acts on its present place from now on, or nobody does."""
        if member.told != told:
            member.told = told
            self.node_usage.tell(member.pod.uid)

    def assume(self, uid: PodUid, *, now: float) -> None:
        """Bind was called for a planned member."""
        member = self.members.get(uid)
        if member is not None and member.revocable:
            self.tell(member, told=True)
            member.choose(NO_NODE, now=now)
            self.groups[member.group].arrivals.restage(member, Stage.ASSUMED, now=now)

    def binding(self, uid: PodUid, *, now: float) -> bool:
        """Its Binding is about to be sent; False when it has lost its place meanwhile.

        From here on no event takes the place away but the pod's own end.
        """
        member = self.members.get(uid)
        if member is None or member.stage is Stage.WAITING:
            return False
        if not member.pod.node and member.stage is not Stage.BINDING:
            self.groups[member.group].arrivals.restage(member, Stage.BINDING, now=now)
        return True

    def sent(self, uid: PodUid) -> None:
        """A member's Binding leaves: from now on the API server may take it."""
        member = self.members.get(uid)
        if member is not None:
            member.sent = True

    def answered(self, uid: PodUid, answer: Answer) -> None:
        """Something is known of a member's Binding; that the API server took it stays known."""
        member = self.members.get(uid)
        if member is None or member.stage is not Stage.BINDING:
            return
        if member.answer in (Answer.YES, answer):
            return
        self.groups[member.group].arrivals.answered(member, answer)
        if member.reserved and member.void and answer is Answer.YES:
            self._relieve(member.node, TAKEN)  # it was to leave room to others

    def unassume(self, uid: PodUid, *, now: float) -> None:
        """The scheduler gave the Bind call up (or it failed): planned again, the room is kept.

        Unless the place became void while the Binding was under way: then it waits. Not when
        another call for the same pod was told that it is bound. Of a Binding whose answer was lost
        the room is kept in any case while the node is there: the pod may be on it.
        """
        member = self.members.get(uid)
        if member is None or not member.reserved or member.answer is Answer.YES:
            return
        node, group = member.node, self.groups[member.group]
        stands = self.node_usage.takes(node, member.pod.shape) and not self.node_usage.is_squeezed(
            uid
        )
        may_be_there = (
            member.sent and member.answer is Answer.OPEN and node in self.node_usage.nodes
        )
        if may_be_there or (stands and group.known and not member.void):
            # Until now its place could not be taken back.
            self.signals.overfull |= member.stage is Stage.BINDING
            group.arrivals.restage(member, Stage.PLANNED, now=now)
        else:
            self._move(member, Stage.WAITING, node=NO_NODE, now=now)

    def withdraw(self, uid: PodUid, *, now: float) -> None:
        """Take the place of one member back; it waits again. Not while its Binding is under way."""
        member = self.members.get(uid)
        if member is None or not member.revocable:
            return
        if member.stage is Stage.ASSUMED:
            self.lost.append(Lost(uid, member.group, "place was taken back"))
        self._move(member, Stage.WAITING, node=NO_NODE, now=now)

    def pass_over(self, key: GroupKey, uids: Iterable[PodUid], *, until: float, now: float) -> None:
        """Take the places of members beyond the minimum back, for which nobody came.

        They go last from now on, and all others beyond that minimum do ``until`` then: the next of
        the gang is no more likely to be fetched than somebody else's.
        """
        group = self.groups.get(key)
        if group is None:
            return
        group.unused.update(uids)
        group.yields_until = until
        for uid in uids:
            self.withdraw(uid, now=now)

    def asked_for(self, member: Member) -> None:
        """kube-scheduler came for it: it does not go last any more."""
        group = self.groups[member.group]
        if member.pod.uid in group.unused:
            group.unused.discard(member.pod.uid)
            self.registry.changed(group, replan=False)

    def release(self, key: GroupKey, *, why: str) -> None:
        """Give back every promise of a group whose Binding is not on its way."""
        group = self.groups.get(key)
        if group is not None:
            self.take_back([*group.slots, *group.members], why=why)

    def take_back(self, holders: Iterable[str], *, why: str) -> None:
        """Give back the places of these members and slots, but of Bindings under way."""
        for holder in holders:
            self._lose(holder, why)

    def overdue(
        self, *, before: float, prebind_before: float
    ) -> list[tuple[Group, tuple[PodUid, ...]]]:
        """Members that got their place before that time and that nobody came for, by group.

        Those in PreBind have time from ``prebind_before`` on.
        """
        late: list[tuple[Group, tuple[PodUid, ...]]] = []
        for group in self.registry.reserved.values():
            uids = tuple(
                m.pod.uid
                for m in group.members.values()
                if m.stage is Stage.PLANNED and not m.pod.node and m.since < before
                if not is_on_its_way(m, before=prebind_before)
            )
            if uids:
                late.append((group, uids))
        return late

    def stale_slots(self, *, before: float) -> list[Group]:
        """Groups with slots older than that time, none of which was filled since.

        A job makes a member anew that its gang has lost, however long that takes: not its slots.
        """
        return [
            group
            for group in self.registry.reserved.values()
            if group.filled_at < before
            and not (group.owed and group.templates)
            and any(slot.since < before for slot in group.slots.values())
        ]

    def admit(self, key: GroupKey) -> None:
        """The enqueue action let the group in."""
        self.set_phase(key, GroupPhase.INQUEUE)

    def set_phase(self, key: GroupKey, phase: GroupPhase) -> None:
        """Set the phase we decided."""
        group = self.groups.get(key)
        if group is not None and group.phase is not phase:
            group.phase = phase
            self.registry.changed(group, asks_alike=True)

    def hold(self, key: GroupKey, *, until: float) -> None:
        """Keep the group from being planned before ``until``."""
        group = self.groups.get(key)
        if group is not None:
            group.cool_down_until = until
            self.registry.changed(group, asks_alike=True)

    def give_up(self, key: GroupKey) -> None:
        """Keep no room for members of the group that do not exist: not before one comes."""
        group = self.groups.get(key)
        if group is not None:
            group.given_up = True
            self.registry.changed(group)

    # --- how it is done --------------------------------------------------------------------------

    def _charge(self, member: Member) -> bool:
        """Let it take room where it is; returns whether any sum changed."""
        node, pod = member.charged_node, member.pod
        if not node:
            return self.node_usage.discharge(pod.uid)
        changed = self.node_usage.charge(
            pod.uid,
            node,
            pod.shape.requests,
            reserved=not pod.node,
            releasing=pod.status is TaskStatus.RELEASING,
        )
        if changed or member.void:  # one that is void was to leave room to others
            self._relieve(node, TAKEN)
        return changed

    def _move(self, member: Member, stage: Stage, *, node: NodeName, now: float) -> None:
        """Give a member a place or take it away; what it had is free for others then."""
        had_node = bool(member.node)
        self._put(member, stage, node=node, now=now)
        self.registry.changed(self.groups[member.group], replan=had_node)

    def _put(self, member: Member, stage: Stage, *, node: NodeName, now: float) -> None:
        """The same, where the caller says that the group changed."""
        group = self.groups[member.group]
        group.remove(member)
        member.stage, member.node, member.since = stage, node, now
        self.tell(member, told=False)
        member.void = member.sent = False
        member.answer = Answer.OPEN
        group.add(member)
        self._charge(member)

    def _adopt_slot(self, group: Group, member: Member, *, now: float) -> None:
        """Give a new member the room kept for it.

        When none is like it, or it has a node already, one is given back all the same, so that what
        is kept never exceeds what the group needs: the member is planned like any other.
        """
        pod = member.pod
        slot = self.slots.take(group, pod, now=now)
        if slot is None:
            return
        comes_in = member.stage is Stage.WAITING and not pod.node and slot.serves(pod)
        if comes_in:
            self._put(member, Stage.PLANNED, node=slot.node, now=now)
            self.housed.append(pod.uid)
        self.registry.changed(group, replan=not comes_in)

    # --- promises made void by events ------------------------------------------------------------

    def _lose_promises(self, node: NodeName, why: str) -> None:
        """Take back what was promised on ``node`` to holders that it does not take any more."""
        known = self.node_usage.nodes.get(node)
        single = SingleNode(known) if known is not None else None
        for holder in sorted(self.node_usage.holders(node)):
            shape = self._promised_shape(holder)
            if shape is None:
                self._follow_closed(holder)
                continue
            if single is not None and self.node_usage.takes(node, shape) and single.lets_in(shape):
                continue
            if not self._lose(holder, why):  # its Binding is under way: if that fails it is lost
                member = self.members[PodUid(holder)]
                self.groups[member.group].arrivals.avoid(member)

    def _follow_closed(self, holder: str) -> None:
        """Its node takes no pods any more: none may follow there when it ends."""
        member = self.members.get(PodUid(holder))
        if member is None or member.kind is not MemberState.RELEASING_PLACED:
            return
        if not self.node_usage.takes(member.pod.node, member.pod.shape):
            self.replace_by_another(member, lost=True)

    def replace_by_another(self, member: Member, *, lost: bool) -> None:
        """Another member is awaited in its stead from now on, or not any more."""
        if member.lost is lost:
            return
        group = self.groups[member.group]
        group.remove(member)
        member.lost = lost
        group.add(member)
        self.registry.changed(group)

    def _promised_shape(self, holder: str) -> PodShape | None:
        """What a member or slot asks for; None for a pod that is on a node."""
        member = self.members.get(PodUid(holder))
        if member is not None:
            return member.pod.shape if member.reserved else None
        kept = self.slots.find(holder)
        return kept[1].shape if kept else None

    def _lose(self, holder: str, why: str) -> bool:
        """Take a promise back if that can be done; returns whether it was."""
        member = self.members.get(PodUid(holder))
        if member is None:
            return self.slots.drop(holder)
        if not member.revocable:
            return False
        self.lost.append(Lost(member.pod.uid, member.group, why))
        self._move(member, Stage.WAITING, node=NO_NODE, now=member.since)
        return True

    def _relieve(self, node: NodeName, why: str) -> None:
        """Give promises back, latest first, while the node has less room than it promised.

        Of Bindings under way as many become void as must, should these fail.
        """
        if not self.node_usage.is_short(node):
            return
        holders = sorted(self.node_usage.holders(node), key=self._age, reverse=True)
        for holder in holders:
            if self.node_usage.is_squeezed(holder):
                self._lose(holder, why)
        self.shortages.settle(node)

    def _age(self, holder: str) -> tuple[float, str]:
        """When the promise was made; holders without one do not matter."""
        member = self.members.get(PodUid(holder))
        if member is not None:
            return (member.since, holder)
        kept = self.slots.find(holder)
        return (kept[1].since if kept else 0.0, holder)
