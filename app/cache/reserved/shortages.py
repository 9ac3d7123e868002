"""Nodes that have less room than is reserved on them for members whose Bindings are under way.

Those whose places are void by then do not count where it is sure that they are not bound. Where the
API server may have taken a Binding, the room of the others is in doubt until that is known.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from app.cache.decisions import Decisions
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Answer, Member, Stage
from app.cache.nodes.usage import NodeUsage
from app.cache.reserved.victims_of_shortage import victims_of
from app.model.ids import GroupKey, NodeName, PodUid


class Shortage(Enum):
    """Whether there is the room that was reserved for a member."""

    THERE = "there"
    IN_DOUBT = "in doubt"
    GONE = "gone"


class Shortages:
    """Decides which places become void, and which members may go on."""

    def __init__(
        self,
        node_usage: NodeUsage,
        members: Mapping[PodUid, Member],
        groups: Mapping[GroupKey, Group],
        decisions: Decisions,
    ) -> None:
        self._node_usage = node_usage
        self._members = members
        self._groups = groups
        self._decisions = decisions

    def settle(self, node: NodeName, *, why: str) -> None:
        """Make as many places on ``node`` void as must be."""
        there = list(self._under_way(node))
        free = self._node_usage.free(node, without={m.pod.uid for m in there if m.void})
        stay = ((member, self._groups[member.group]) for member in there if not member.void)
        for member in victims_of(stay, -free):
            self._decisions.avoid(member, why=why)

    def room_of(self, member: Member) -> Shortage:
        """Whether the member may be bound to its node, as far as others leave it room."""
        uid, node_usage = member.pod.uid, self._node_usage
        if not node_usage.is_squeezed(uid):
            return Shortage.THERE
        void = [m for m in self._under_way(member.node) if m.void and m is not member]
        if node_usage.is_squeezed(uid, without={each.pod.uid for each in void}):
            return Shortage.GONE
        surely = {each.pod.uid for each in void if not each.may_arrive}
        return Shortage.IN_DOUBT if node_usage.is_squeezed(uid, without=surely) else Shortage.THERE

    def _under_way(self, node: NodeName) -> Iterator[Member]:
        """Members whose Bindings are, as far as is known."""
        for holder in self._node_usage.holders(node):
            member = self._members.get(PodUid(holder))
            if member is None or member.stage is not Stage.BINDING or member.pod.node:
                continue
            if member.answer is not Answer.YES:
                yield member
