"""Whether a Binding may be sent, first or again.

The barrier let the gang go on what was true then. A Binding waits for a burst and a connection, and
where the API server fails seconds pass: the PodGroup, a member or a node may have changed by then,
or another scheduler have taken the room. So before it is sent for the first time no place of the
gang may have become void since (what else members come to, others need not wait for). If one has,
and whenever it is sent again:

* a gang of which no member is bound goes on only while it is complete as it is now, and otherwise
  stops as a whole;
* a gang of which a member is bound already is brought to its minimum, whatever it has become;
* no pod is sent to a node that does not take it any more, or has too little room for it and all
  that stay; while a victim of that shortage may be bound there all the same, others wait.

Members ask at different moments, and the answer of one may be lost or still be awaited when another
asks. That one finds out about its own Binding first, and then waits for the others' (*in doubt*):
if one of them turns out to be bound all go on, else all stop.
"""

from enum import Enum

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, MemberState
from app.cache.reserved.shortages import Shortage
from app.model.ids import PodUid
from app.model.reason import CLOSED, NO_ROOM, NODE_GONE


class BindingCheck(Enum):
    """What a member's gang looks like to one whose Binding was not sent, or failed."""

    STANDS = "stands"
    IN_DOUBT = "in doubt"
    FALLEN = "fallen"


def may_leave(cache: ClusterCache, uid: PodUid) -> bool:
    """Whether the member's Binding may be sent, now that its turn has come."""
    member = cache.members.get(uid)
    if member is None or not member.reserved:
        return True  # the API server knows more of it than we do
    if member.sent or cache.groups[member.group].counted.arrivals.voided:
        return standing(cache, uid) is BindingCheck.STANDS
    return _takes(cache, member) and cache.shortages.room_of(member) is Shortage.THERE


def standing(cache: ClusterCache, uid: PodUid) -> BindingCheck:
    """Whether the member's Binding may be sent again, as far as is known now."""
    member = cache.members.get(uid)
    if member is None or not member.reserved:
        return BindingCheck.FALLEN
    group, room = cache.groups[member.group], cache.shortages.room_of(member)
    if not group.known or not _takes(cache, member) or room is Shortage.GONE:
        return BindingCheck.FALLEN
    if _is_begun(group, member) or (group.complete and not member.void):
        return BindingCheck.STANDS if room is Shortage.THERE else BindingCheck.IN_DOUBT
    return BindingCheck.IN_DOUBT if group.counted.arrivals.unanswered else BindingCheck.FALLEN


def _is_begun(group: Group, member: Member) -> bool:
    """Whether a member is bound, or was when this one's call was released: others follow."""
    if group.begun or not group.counted.kinds[MemberState.FAILED] or not group.lacks_bound:
        return group.begun
    return any(other.failed_at > member.since for other in group.members.values())


def why_fallen(cache: ClusterCache, uid: PodUid) -> str:
    """What the pod's place lacks; empty: it is the gang that lacks something."""
    member = cache.members.get(uid)
    if member is None or not member.reserved:
        return ""
    if not _takes(cache, member):
        return CLOSED if member.node in cache.node_usage.nodes else NODE_GONE
    return NO_ROOM if cache.shortages.room_of(member) is Shortage.GONE else ""


def _takes(cache: ClusterCache, member: Member) -> bool:
    return cache.node_usage.takes(member.node, member.pod.shape)
