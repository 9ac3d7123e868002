"""How far the Bind call of a member has come, from the call to the answer of the API server."""

from collections.abc import Mapping

from app.cache.decisions import Decisions
from app.cache.gangs.members import Answer, Member, Stage
from app.cache.gangs.registry import Registry
from app.cache.gangs.story import Stimulus
from app.cache.nodes.usage import NodeUsage
from app.cache.reserved.losses import Losses
from app.model.ids import NO_NODE, PodUid
from app.model.reason import TAKEN


class BindSteps:
    """Each step names the member by its UID: it may be gone when a call goes on."""

    def __init__(
        self,
        decisions: Decisions,
        *,
        node_usage: NodeUsage,
        registry: Registry,
        members: Mapping[PodUid, Member],
        losses: Losses,
    ) -> None:
        self._decisions = decisions
        self._node_usage = node_usage
        self._registry = registry
        self._members = members
        self._losses = losses

    def assume(self, uid: PodUid, *, now: float) -> None:
        """Bind was called for a planned member."""
        member = self._members.get(uid)
        if member is not None and member.revocable:
            self._decisions.tell(member, told=True)
            self._decisions.choose(member, NO_NODE, now=now)
            self._decisions.restage(member, Stage.ASSUMED, now=now, by=Stimulus.BIND)

    def binding(self, uid: PodUid, *, now: float) -> bool:
        """Note that the pod's Binding is about to be sent; False when it has lost its place.

        From here on no event takes the place away but the pod's own end.
        """
        member = self._members.get(uid)
        if member is None or member.stage is Stage.WAITING:
            return False
        if not member.pod.node and member.stage is not Stage.BINDING:
            self._decisions.restage(member, Stage.BINDING, now=now, by=Stimulus.BARRIER)
        return True

    def sent(self, uid: PodUid) -> None:
        """A member's Binding leaves: from now on the API server may take it."""
        member = self._members.get(uid)
        if member is not None:
            self._decisions.sent(member)

    def answered(self, uid: PodUid, answer: Answer) -> None:
        """Something is known of a member's Binding; that the API server took it stays known."""
        member = self._members.get(uid)
        if member is None or member.stage is not Stage.BINDING:
            return
        if member.answer in (Answer.YES, answer):
            return
        self._decisions.answered(member, answer)
        if member.reserved and member.void and answer is Answer.YES:
            self._losses.relieve(member.node, TAKEN)  # it was to leave room to others

    def unassume(self, uid: PodUid, *, now: float, why: str = "") -> None:
        """The scheduler gave the Bind call up (or it failed): planned again, the room is kept.

        Unless the place became void while the Binding was under way: then it waits. Not when
        another call for the same pod was told that it is bound. Of a Binding whose answer was lost
        the room is kept in any case while the node is there: the pod may be on it.
        """
        member = self._members.get(uid)
        if member is None or not member.reserved or member.answer is Answer.YES:
            return
        node, group, usage = member.node, self._registry.groups[member.group], self._node_usage
        stands = usage.takes(node, member.pod.shape) and not usage.is_squeezed(uid)
        may_be_there = member.sent and member.answer is Answer.OPEN and node in usage.nodes
        if may_be_there or (stands and group.known and not member.void):
            # Until now its place could not be taken back.
            self._registry.signals.note_overfull(when=member.stage is Stage.BINDING)
            self._decisions.restage(member, Stage.PLANNED, now=now, by=Stimulus.BINDING, why=why)
        else:
            self._losses.unplace(member, since=now, by=Stimulus.BINDING, why=why)
