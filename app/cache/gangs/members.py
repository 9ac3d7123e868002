"""A pod of ours and how far it has come.

::

    unseen -> slot -> planned -> assumed -> binding -> bound -> running -> done
                         ^          |          |
                         +-released-+----------+

* *slot*: the plan has room for a member that does not exist yet (kept by its group).
* *planned*: the plan gave the pod a node.
* *assumed*: kube-scheduler called Bind for it; the barrier holds the call.
* *binding*: the barrier is open, the Binding is on its way or accepted.
* *bound*, *running*, *done*: what the API server says (``spec.nodeName``, ``status.phase``).
* *released*: back to waiting: vetoed, timed out, node gone, gang incomplete.

A member's room is charged from *planned* on and until it is done; a change of stage on the same
node changes no sum.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from app.cache.gangs.story import Steps
from app.model.amounts import Amounts
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Task
from app.model.ids import NO_NODE, GroupKey, NodeName, PodUid
from app.model.parts import NO_SUB_GROUP, Part, SubGroup
from app.model.pod import TERMINAL, Pod, TaskStatus
from app.model.shape import PodShape


class Stage(Enum):
    """How far a member has come on our side; what the API server says comes from the pod."""

    __hash__ = object.__hash__

    WAITING = "waiting"
    PLANNED = "planned"
    ASSUMED = "assumed"
    BINDING = "binding"


class Answer(Enum):
    """What is known of a Binding that the watch has not shown; of one stage only, *binding*."""

    __hash__ = object.__hash__

    OPEN = "open"
    """The Binding is on its way, or its answer was lost."""
    YES = "yes"
    """The API server took it."""
    NO = "no"
    """The pod was looked at: it is not bound, and its Binding is not sent for now."""


ARRIVED = frozenset({Stage.ASSUMED, Stage.BINDING})
"""Stages after kube-scheduler called Bind."""


class MemberState(Enum):
    """The state a group counts a member under (the key of its counts, so hashed by identity)."""

    __hash__ = object.__hash__

    WAITING = "waiting"
    GATED = "gated"
    PLACED = "placed"
    BOUND = "bound"
    RUNNING = "running"
    RELEASING = "releasing"
    RELEASING_PLACED = "releasing-placed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


PLACED_KINDS = frozenset({MemberState.PLACED, MemberState.BOUND, MemberState.RUNNING})
"""Members whose room counts as their group's allocation (volcano.md §3.1, Allocated statuses)."""

SCHEDULED_KINDS = frozenset(
    {
        MemberState.BOUND,
        MemberState.RUNNING,
        MemberState.SUCCEEDED,
        MemberState.FAILED,
        MemberState.RELEASING_PLACED,
    }
)
"""Members that reached a node, terminating ones included (volcano.md §4.1)."""

ON_NODE_KINDS = frozenset({MemberState.BOUND, MemberState.RUNNING, MemberState.SUCCEEDED})
"""Members that reached a node or finished there: they count for the barrier."""

READY_KINDS = PLACED_KINDS | {MemberState.SUCCEEDED}
"""Members that count as ready (volcano.md §3.1, ReadyTaskNum)."""

VALID_KINDS = READY_KINDS | {MemberState.WAITING, MemberState.GATED}
"""Members that count for their role's minimum, or will when they are placed, whatever gate they
wait behind (volcano.md §3.1, ValidTaskNum)."""

_KIND_OF = {
    TaskStatus.BOUND: MemberState.BOUND,
    TaskStatus.RUNNING: MemberState.RUNNING,
    TaskStatus.SUCCEEDED: MemberState.SUCCEEDED,
    TaskStatus.FAILED: MemberState.FAILED,
    TaskStatus.UNKNOWN: MemberState.UNKNOWN,
}


_NO_PART: Final = Part("")


@dataclass(slots=True, eq=False)
class Member:
    """A pod of ours, what was decided about it and what is known of how that goes.

    It is changed by :mod:`app.cache.decisions` only.
    """

    pod: Pod
    group: GroupKey
    task: Task
    stage: Stage = Stage.WAITING
    node: NodeName = NO_NODE
    """The reserved node, while the stage is not WAITING."""
    exchange: Exchange = ANY_EQUAL
    """The class of that place as the planner gave it."""
    since: float = 0.0
    """When the member entered its stage, or got the place that it lost, in epoch seconds."""
    refused: bool = False
    """Whether the last Filter said "wait", so that the pod must be woken when it gets a place."""
    missed: int = 0
    """How many nodes it was offered since, none of which it could have."""
    told: bool = False
    """Whether the present place is acted on: the pod has it, or kube-scheduler."""
    void: bool = False
    """Whether the place was to be lost while its Binding was under way, and is if that fails."""
    sent: bool = False
    """Whether that Binding has left."""
    answer: Answer = Answer.OPEN
    """What is known of the Binding."""
    failed_at: float = 0.0
    """When the pod failed on its node, if that was seen."""
    hinted: NodeName = NO_NODE
    """The node of the last nomination by us or the leader before us.

    Empty from when the member may evict others.
    """
    chosen: NodeName = NO_NODE
    """The node that Filter answered last, or a process before this one may have, while
    kube-scheduler has neither come to Bind nor been told something else."""
    chosen_at: float = 0.0
    """Since when that node is chosen."""
    observed: bool = False
    """Whether only a Filter call has shown it so far, and not the watch."""
    lost: bool = False
    """Whether the gang needs another member in place of this one.

    This one ended, or ends where none may follow.
    """
    part: Part = _NO_PART
    """What the group counts the member for, as long as it does."""
    lingers: bool = False
    """Whether the pod is terminating on a node that is up.

    Until it is gone, the capability of its queue counts what it has there.
    """
    story: Steps | None = None
    """The latest steps the member took, once it took one."""

    @property
    def evicted_for_on(self) -> NodeName:
        """The node for which kube-scheduler evicts others in favour of the pod."""
        return self.pod.evicted_for_on if self.pod.nominated != self.hinted else NO_NODE

    @property
    def kind(self) -> MemberState:
        """What the group counts the member as."""
        status = self.pod.status
        if status is TaskStatus.RELEASING or (self.lost and self.pod.deleting):
            return MemberState.RELEASING_PLACED if self.pod.node else MemberState.RELEASING
        if status is not TaskStatus.PENDING:
            return _KIND_OF[status]
        if self.stage is not Stage.WAITING:
            return MemberState.PLACED
        return MemberState.GATED if self.pod.foreign_gates else MemberState.WAITING

    @property
    def reserved(self) -> bool:
        """Whether the member has a place that the API server does not know yet."""
        return self.stage is not Stage.WAITING and not self.pod.node

    @property
    def planned(self) -> bool:
        """Whether the member has such a place and has not come to Bind."""
        return self.stage is Stage.PLANNED and self.kind is MemberState.PLACED

    @property
    def exchange_class(self) -> Exchange:
        """The class of its place, by what the planner and, since then, the pod itself say."""
        return self.exchange.narrowed(self.task.exchange)

    @property
    def revocable(self) -> bool:
        """Whether that place can be taken back: its Binding is not under way."""
        return self.reserved and self.stage is not Stage.BINDING

    @property
    def in_prebind(self) -> bool:
        """Whether kube-scheduler took the node and gets ready what the pod needs there.

        It nominates the pod before it waits for volumes or devices, and not any more if that fails.
        """
        waits = bool(self.chosen) and self.pod.nominated == self.chosen
        return waits and not self.pod.node and self.pod.status is TaskStatus.PENDING

    @property
    def may_arrive(self) -> bool:
        """Whether the API server may take its Binding, or may have taken it."""
        is_open = self.stage is Stage.BINDING and self.answer is Answer.OPEN
        return is_open and self.sent and not self.pod.node

    @property
    def arrived(self) -> bool:
        """Whether the member came to Bind and its gang can count on it: its place is not void."""
        if self.stage is not Stage.BINDING:
            return self.stage is Stage.ASSUMED
        return not self.void or self.answer is Answer.YES

    @property
    def charged_node(self) -> NodeName:
        """The node on which the member takes room: the bound one, else the reserved one, if any."""
        if self.pod.status in TERMINAL:
            return NO_NODE
        return self.pod.node or self.node


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """Room for a member of ``role`` that does not exist yet; ``holder`` names it in node usage.

    ``serial`` grows from one slot of a group to the next. ``sub_group`` is that of the member; of
    none: the member may be of any.
    """

    holder: str
    role: str
    node: NodeName
    shape: PodShape
    since: float
    serial: int
    exchange: Exchange = ANY_EQUAL
    sub_group: SubGroup = NO_SUB_GROUP

    @property
    def request(self) -> Amounts:
        """What is kept free for the slot."""
        return self.shape.requests

    def serves(self, pod: Pod) -> bool:
        """Whether ``pod`` may be the member that it is kept for."""
        return pod.pinned in (self.node, NO_NODE) and self.shape.fits_like(pod.shape)


def may_change(one: Member, other: Member) -> bool:
    """Whether ``one`` may have the place of ``other``, and give its own for it.

    Both are planned and equal, and the other's place has not been told yet. Whether the places may
    be exchanged is another question: that is for their classes to say.
    """
    return (
        not other.told  # most of a large gang were, towards its end
        and (one.pod.shape is other.pod.shape or one.pod.shape == other.pod.shape)
        and one.planned
        and other.planned
    )


def namespaces_in(members: Mapping[PodUid, Member]) -> Callable[[PodUid], str]:
    """Tells the namespace of each member; empty of a pod that is none."""

    def namespace_of(uid: PodUid) -> str:
        member = members.get(uid)
        return "" if member is None else member.pod.namespace

    return namespace_of


def decides_like(old: Pod, new: Pod) -> bool:
    """Whether a newer version of a pod says the same in all that counting and planning look at.

    Most updates are a kubelet's reports about containers, and must not set off a planning cycle.
    """
    return (
        old.phase == new.phase
        and old.node == new.node
        and old.deleting == new.deleting
        and old.gates == new.gates
        and old.pinned == new.pinned
        and old.nominated == new.nominated
        and old.priority == new.priority
        and old.annotations == new.annotations
        and old.labels == new.labels
        and old.owner == new.owner
        and old.after == new.after
        and (old.shape is new.shape or old.shape == new.shape)
    )
