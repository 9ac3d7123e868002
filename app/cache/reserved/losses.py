"""Room is given to members and taken from them; events make some of it void.

Reservations that became void by an event (node gone, another pod took the room, pod deleted) are
given back at once, the latest first, and listed in :attr:`Losses.lost` for the barrier, which may
hold a Bind call. Only a Binding that is under way is never taken back: the API server may have
accepted it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.cache.decisions import Decisions
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, MemberState, Stage
from app.cache.gangs.registry import Registry
from app.cache.gangs.story import Stimulus
from app.cache.nodes.usage import NodeUsage
from app.cache.reserved.kept_slots import KeptSlots
from app.cache.reserved.shortages import Shortages
from app.core.placement.single import SingleNode
from app.model.decision import DecisionKind
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.ids import NO_NODE, GroupKey, NodeName, PodUid
from app.model.pod import TaskStatus
from app.model.reason import TAKEN
from app.model.shape import PodShape


@dataclass(frozen=True, slots=True)
class Lost:
    """A reservation that an event made void, and why."""

    uid: PodUid
    group: GroupKey
    why: str


class Losses:
    """The room of members; that of slots is in ``slots``."""

    def __init__(
        self,
        decisions: Decisions,
        *,
        node_usage: NodeUsage,
        registry: Registry,
        members: Mapping[PodUid, Member],
        slots: KeptSlots,
        shortages: Shortages,
    ) -> None:
        self.lost: list[Lost] = []
        self._decisions = decisions
        self._node_usage = node_usage
        self._registry = registry
        self._members = members
        self._slots = slots
        self._shortages = shortages

    # --- one member ------------------------------------------------------------------------------

    def charge(self, member: Member) -> bool:
        """Let the member take room where it is; returns whether any sum changed."""
        node, pod = member.charged_node, member.pod
        if not node:
            return self._node_usage.discharge(pod.uid)
        changed = self._node_usage.charge(
            pod.uid,
            node,
            pod.shape.requests,
            reserved=not pod.node,
            releasing=pod.status is TaskStatus.RELEASING,
        )
        if changed or member.void:  # one that is void was to leave room to others
            self.relieve(node, TAKEN)
        return changed

    def put(
        self,
        member: Member,
        node: NodeName,
        *,
        now: float,
        by: Stimulus,
        why: str = "",
        generation: int = 0,
        exchange: Exchange = ANY_EQUAL,
    ) -> None:
        """Plan a member on ``node``; the caller says that the group changed."""
        self._decisions.put(
            member,
            Stage.PLANNED,
            node=node,
            since=now,
            by=by,
            why=why,
            generation=generation,
            exchange=exchange,
        )
        self.charge(member)

    def move(self, member: Member, node: NodeName, *, now: float, by: Stimulus) -> None:
        """Plan a member on ``node``; what it had is free for others then."""
        had_node = bool(member.node)
        self.put(member, node, now=now, by=by, exchange=member.exchange)
        self._registry.changed(self._registry.groups[member.group], replan=had_node)

    def unplace(self, member: Member, *, since: float, by: Stimulus, why: str = "") -> None:
        """Take the place of a member away: it waits, ``since`` that time."""
        had_node = bool(member.node)
        self._decisions.put(member, Stage.WAITING, node=NO_NODE, since=since, by=by, why=why)
        self.charge(member)
        self._registry.changed(self._registry.groups[member.group], replan=had_node)

    def note(self, member: Member, why: str) -> None:
        """A member loses its place: a Bind call of it that is held ends."""
        self.lost.append(Lost(member.pod.uid, member.group, why))

    def take(self) -> list[Lost]:
        """The reservations that were lost since this was asked last."""
        lost, self.lost = self.lost, []
        return lost

    def lose(self, holder: str, why: str, *, by: Stimulus) -> bool:
        """Take a reservation back if that can be done; returns whether it was."""
        member = self._members.get(PodUid(holder))
        if member is None:
            return self._slots.drop(holder)
        if not member.revocable:
            return False
        self.note(member, why)
        self.unplace(member, since=member.since, by=by, why=why)
        return True

    # --- groups ----------------------------------------------------------------------------------

    def revoke(self, group: Group, *, why: str) -> None:
        """Take all back that a group has, as an event has it; Bindings under way, if they fail."""
        if group.has_reservations:
            kind = DecisionKind.RELEASE if group.slots else None
            self._decisions.note_group(group, "given back", by=Stimulus.WATCH, why=why, kind=kind)
        for holder in [*group.slots, *group.members]:
            self.lose(holder, why, by=Stimulus.WATCH)
        for member in group.members.values():
            if member.reserved:
                self._decisions.avoid(member, why=why)

    def take_back(self, holders: Iterable[str], *, why: str) -> None:
        """Take the places of these members and slots back, but of Bindings under way."""
        for holder in holders:
            self.lose(holder, why, by=Stimulus.TAKEN_BACK)

    # --- nodes -----------------------------------------------------------------------------------

    def follow_node(self, node: NodeName, why: str) -> None:
        """Take back what is reserved on ``node`` for holders that it does not take any more."""
        known = self._node_usage.nodes.get(node)
        single = SingleNode(known) if known is not None else None
        for holder in sorted(self._node_usage.holders(node)):
            shape = self._reserved_shape(holder)
            if shape is None:
                self._follow_closed(holder)
                continue
            if single is not None and self._node_usage.takes(node, shape) and single.takes(shape):
                continue
            if not self.lose(holder, why, by=Stimulus.WATCH):
                # its Binding is under way: if that fails it is lost
                self._decisions.avoid(self._members[PodUid(holder)], why=why)

    def _follow_closed(self, holder: str) -> None:
        """Follow the end of a pod whose node takes no pods any more: none may follow there."""
        member = self._members.get(PodUid(holder))
        if member is None or member.kind is not MemberState.RELEASING_PLACED:
            return
        if not self._node_usage.takes(member.pod.node, member.pod.shape):
            self._decisions.replace_by_another(member, lost=True)

    def _reserved_shape(self, holder: str) -> PodShape | None:
        """What a member or slot asks for; None for a pod that is on a node."""
        member = self._members.get(PodUid(holder))
        if member is not None:
            return member.pod.shape if member.reserved else None
        kept = self._slots.find(holder)
        return kept[1].shape if kept else None

    def relieve(self, node: NodeName, why: str) -> None:
        """Give reservations back, latest first, while the node has less room than is reserved.

        Of Bindings under way as many become void as must, should these fail.
        """
        if not self._node_usage.is_short(node):
            return
        holders = sorted(self._node_usage.holders(node), key=self._age, reverse=True)
        for holder in holders:
            if self._node_usage.is_squeezed(holder):
                self.lose(holder, why, by=Stimulus.WATCH)
        self._shortages.settle(node, why=why)

    def _age(self, holder: str) -> tuple[float, str]:
        """When the reservation was made; holders without one do not matter."""
        member = self._members.get(PodUid(holder))
        if member is not None:
            return (member.since, holder)
        kept = self._slots.find(holder)
        return (kept[1].since if kept else 0.0, holder)
