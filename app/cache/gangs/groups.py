"""A group: its PodGroup or its single pod, its members, and whether these are enough.

What is summed up over members is in :mod:`app.cache.gangs.member_counts`; only the list of waiting
members is walked when the planner's view is made.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.cache.gangs.member_counts import MemberCounts
from app.cache.gangs.members import (
    ON_NODE_KINDS,
    READY_KINDS,
    Member,
    MemberState,
    Slot,
)
from app.cache.gangs.slots import SlotIndex
from app.cache.gangs.story import Steps
from app.model.ids import DEFAULT_QUEUE, NO_QUEUE, GroupKey, PodUid, QueueName, namespace_of
from app.model.job import QUEUE_NAME, Template
from app.model.parts import (
    Part,
    Policies,
    by_role,
    make_up,
    part_of,
)
from app.model.pod import QUEUE_ANNOTATION
from app.model.reached import MEMBERS, Numbers, asked, counted
from app.model.shape import PodShape
from app.model.workload import GroupPhase, PodGroup

_NONE_NAMED = ("", DEFAULT_QUEUE)
"""As admission has it for PodGroups: there the namespace's queue counts."""

_NOBODY: Final[Counter[Part]] = Counter()


@dataclass(slots=True, eq=False)
class Group:
    """One PodGroup (or a single pod: ``pod_group`` None and ``solo``) and its members.

    ``phase`` is ours to decide, so the local one counts; the stored one is read once. ``awaits``:
    UID of the owner that its pod is filed under while a controller may still give it to a PodGroup
    with others (volcano.md §5.3), else empty. ``cool_down_until`` and ``failures`` keep a gang
    whose reservation was not used from being placed again at once; ``unused`` and ``yields_until``
    let others go before members beyond its minimum that did not use their places. ``given_up``: the
    members that slots were kept for were not created; ``filled_at`` is when one last came into a
    slot. ``set_aside``: no end of other pods helps it, as the plan found that was made of this
    ``version``.
    """

    key: GroupKey
    solo: bool
    default_queue: QueueName
    namespace_queue: QueueName | None = NO_QUEUE
    """The one that its namespace names for what names none; None: the namespace is not known yet.
    """
    pod_group: PodGroup | None = None
    former_queue: QueueName = NO_QUEUE
    """The queue of the PodGroup that has gone, for as long as members are leaving after it."""
    phase: GroupPhase = GroupPhase.NEW
    members: dict[PodUid, Member] = field(default_factory=dict)
    waiting: dict[PodUid, Member] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    open_slots: SlotIndex = field(default_factory=SlotIndex)
    """The slots, indexed for members that come."""
    counted: MemberCounts = field(default_factory=MemberCounts)
    role_shapes: dict[str, PodShape] = field(default_factory=dict)
    """What the members of each role ask for, as the latest of them that came without a node."""
    templates: Mapping[str, Template] = field(default_factory=dict)
    """The roles' pods as the owning vcjob describes them."""
    awaits: str = ""
    cool_down_until: float = 0.0
    failures: int = 0
    unused: set[PodUid] = field(default_factory=set)
    yields_until: float = 0.0
    collecting_since: float = 0.0
    """When free room was first kept for it, as it waits for more; 0: never."""
    refused_since: float = 0.0
    """Since when no eviction gave it room; 0: no eviction was looked for."""
    given_up: bool = False
    claim_since: float = 0.0
    """Since when its claim counts for others although it has no places; 0: it does not."""
    filled_at: float = 0.0
    foreign: int = 0
    """How many pods of the group other schedulers have bound, at most at once.

    Such pods are no members.
    """
    reached: Numbers = field(default_factory=Counter)
    """The largest minimum that the group has had on nodes, never more than it asks for now."""
    set_aside: bool = False
    doubtful: bool = False
    """The group was set aside until something changed that may help it."""
    version: int = 0
    serial: int = 0
    """Counts slots ever made, for their names."""
    story: Steps | None = None
    """The latest steps of a gang, once there is one."""

    def add(self, member: Member) -> None:
        """Count ``member`` in its present state."""
        member.part = part_of(member.pod.role, member.pod.labels, self.sub_groups)
        self.counted.count(member, 1)
        self.members[member.pod.uid] = member
        if member.kind is MemberState.WAITING:
            self.waiting[member.pod.uid] = member
        if not member.pod.node or member.pod.role not in self.role_shapes:
            # one on a node may have been resized: those to come are made as those that wait
            self.role_shapes[member.pod.role] = member.pod.shape

    def remove(self, member: Member) -> None:
        """Stop counting ``member``; it must not have changed since it was added."""
        self.counted.count(member, -1)
        self.members.pop(member.pod.uid, None)
        self.waiting.pop(member.pod.uid, None)

    def follow(self, pod_group: PodGroup | None) -> None:
        """Be what ``pod_group`` says, which may part the members in another way."""
        if self.pod_group is not None:
            self.former_queue = self.pod_group.queue
        new = pod_group.sub_groups if pod_group is not None else ()
        if new == self.sub_groups:
            self.pod_group = pod_group
            return
        there = list(self.members.values())
        for member in there:
            self.remove(member)
        self.pod_group = pod_group
        for member in there:
            self.add(member)

    def add_slot(self, slot: Slot) -> None:
        """Count a reserved place without a member."""
        self.slots[slot.holder] = slot
        self.open_slots.add(slot)
        self.counted.count_slot(slot, 1)

    def remove_slot(self, holder: str) -> Slot:
        """Stop counting the slot of ``holder``, and return it."""
        slot = self.slots.pop(holder)
        self.open_slots.remove(slot)
        self.counted.count_slot(slot, -1)
        return slot

    def begin_anew(self) -> None:
        """Forget failures: the group asks for something else than what did not come together."""
        self.cool_down_until, self.failures, self.given_up = 0.0, 0, False
        self.collecting_since = self.refused_since = self.claim_since = 0.0

    # --- facts -----------------------------------------------------------------------------------

    @property
    def namespace(self) -> str:
        """The namespace of the PodGroup and its pods."""
        return namespace_of(self.key)

    @property
    def empty(self) -> bool:
        """Whether nothing is left of the group."""
        return self.pod_group is None and not self.members and not self.slots

    @property
    def known(self) -> bool:
        """Whether the group can be planned at all: its PodGroup exists, or it needs none.

        A group that needs none may still be in the queue of a namespace that the watch is about to
        show.
        """
        if self.pod_group is not None:
            return True
        return self.solo and not self.awaits and not self.lacks_namespace

    @property
    def lacks_namespace(self) -> bool:
        """Whether only the namespace, which is not known, can tell the group's queue."""
        return self.namespace_queue is None and self._named_queue in _NONE_NAMED

    @property
    def deleting(self) -> bool:
        """Whether the PodGroup is going away."""
        return self.pod_group is not None and self.pod_group.deleting

    @property
    def min_member(self) -> int:
        """How many members must be placed together; a single pod is its own minimum."""
        return 1 if self.solo else (self.pod_group.min_member if self.pod_group else 0)

    @property
    def role_minimum(self) -> Mapping[str, int]:
        """The PodGroup's minTaskMember, left out when it exceeds minMember (volcano.md §3.1)."""
        if self.pod_group is None:
            return {}
        minimum = self.pod_group.role_minimum
        return {} if self.pod_group.min_member < sum(minimum.values()) else minimum

    @property
    def sub_groups(self) -> Policies:
        """The policies that part the group's members further (:mod:`app.model.parts`)."""
        return self.pod_group.sub_groups if self.pod_group is not None else ()

    @property
    def is_released(self) -> bool:
        """Whether no member that it lacks is waited for (:attr:`PodGroup.released`)."""
        return self.pod_group is not None and self.pod_group.released

    @property
    def is_gang(self) -> bool:
        """Whether the group's minimum may take more than one member."""
        return self.min_member > 1 or bool(self.sub_groups)

    @property
    def needs_any_one(self) -> bool:
        """Whether one member, whichever it is, makes its minimum."""
        return not (self.is_gang or self.role_minimum)

    @property
    def queue(self) -> QueueName:
        """The queue it is charged to."""
        if self.pod_group is not None:
            return self.pod_group.queue
        former = self.former_queue if self.counted.is_leaving else NO_QUEUE
        named = former or self._named_queue
        if named in _NONE_NAMED:
            named = self.namespace_queue or named
        return QueueName(named) if named else self.default_queue

    @property
    def _named_queue(self) -> str:
        """The queue that the pods name, without a PodGroup: pods of a vcjob name the vcjob's."""
        said = next((member.pod.annotations for member in self.members.values()), {})
        return said.get(QUEUE_ANNOTATION) or ("" if self.solo else said.get(QUEUE_NAME, ""))

    @property
    def on_nodes(self) -> int:
        """Members that reached a node or finished there: they count for the barrier."""
        return self.counted.on_nodes

    @property
    def complete(self) -> bool:
        """Whether enough members have come to Bind for all of them to go (design §4, bind).

        Members on a node count, and so does every role's minimum, and what makes sub-groups whole.
        A gang that has lost some of a smaller minimum, and asks for more by now, may have that
        smaller minimum back.
        """
        return self.complete_with(_NOBODY)

    def complete_with(self, coming: Counter[Part]) -> bool:
        """Whether that holds once so many more per part have come."""
        come = self.counted.arrivals.at_bind + coming
        return self._makes_minimum(come) or self._makes_up_for_losses(come)

    @property
    def reached_minimum(self) -> bool:
        """Whether enough members are on nodes for the others to stand alone."""
        return self._makes_minimum(_NOBODY)

    @property
    def begun(self) -> bool:
        """Whether the minimum is bound in part only, as the answers to Bindings say."""
        return self.on_nodes + self.counted.arrivals.accepted.total() > 0 and self.lacks_bound

    @property
    def lacks_bound(self) -> bool:
        """Whether some of the minimum is not bound, as the answers to Bindings say."""
        return not self._makes_minimum(self.counted.arrivals.accepted)

    def _makes_minimum(self, come: Counter[Part]) -> bool:
        """Whether the minimum is on nodes or among the members per part that came."""
        if self.on_nodes + come.total() < self.min_member:
            return False
        if not (self.role_minimum or self.sub_groups):
            return True
        return self._is_made_up_of(self.counted.parts(ON_NODE_KINDS) + come)

    def _is_made_up_of(self, have: Counter[Part]) -> bool:
        """Whether ``have`` is enough for the group's roles and sub-groups."""
        return make_up(have, role_minimum=self.role_minimum, policies=self.sub_groups)

    # --- what it has had -------------------------------------------------------------------------

    @property
    def asks(self) -> Numbers:
        """The group's minimum as numbers."""
        return asked(self.min_member, self.role_minimum, self.sub_groups)

    def note_reached(self) -> None:
        """Remember the minimum as one that the group has had, if it has it on nodes."""
        if self.on_nodes and self.reached_minimum:
            self.reached = self.asks

    def ask_otherwise(self, before: Numbers) -> None:
        """Follow a change of the minimum, which was ``before``.

        What the group has by then is not what it asks for newly, members beyond the minimum
        included.
        """
        if self.asks != before:
            come = self.counted.arrivals.accepted
            on_the_way = Counter({MEMBERS: self.counted.arrivals.unanswered})
            has = self._numbers(come) + on_the_way
            self.reached = (self.reached | has) & self.asks

    @property
    def owed(self) -> Numbers:
        """The minimum that it must be brought back to before all others; none: it is not torn.

        That is the one that it had and has lost a part of. If it is bound in part beyond that, as a
        crash in the middle of binding leaves it, it is the whole minimum.
        """
        if self.on_nodes == self.counted.kinds[MemberState.SUCCEEDED] or self.reached_minimum:
            return Counter()
        if self.is_released:
            return Counter()
        asks, has = self.asks, self._numbers(_NOBODY)
        had = self.reached & asks
        if has[MEMBERS] > had[MEMBERS]:
            return asks
        return had if had - has else Counter()

    def _makes_up_for_losses(self, come: Counter[Part]) -> bool:
        owed = self.owed
        return bool(owed) and not owed - self._numbers(come)

    def _numbers(self, come: Counter[Part]) -> Numbers:
        """What the group has on nodes, and the members per part that came."""
        parts: Counter[Part] = Counter()
        if self.role_minimum or self.sub_groups:
            parts = self.counted.parts(ON_NODE_KINDS) + come
        return counted(self.on_nodes + come.total(), parts, self.sub_groups)

    def lacks(self, role: str) -> bool:
        """Whether the minimum takes one more member of ``role`` than have places, kept or taken."""
        if self._placed < self.min_member or self.sub_groups:
            return not self.placed_minimum
        kept = self.open_slots.counts().get(role, 0)
        least = self.role_minimum.get(role, 0)
        return least > 0 and least > by_role(self.counted.parts(READY_KINDS))[role] + kept

    @property
    def _placed(self) -> int:
        return self.on_nodes + self.counted.kinds[MemberState.PLACED] + len(self.slots)

    @property
    def placed_minimum(self) -> bool:
        """Whether the minimum has places, kept or taken, and that of each part."""
        if self._placed < self.min_member:
            return False
        if not (self.role_minimum or self.sub_groups):
            return True
        have = self.counted.parts(READY_KINDS)
        have.update({Part(role): kept for role, kept in self.open_slots.counts().items()})
        return self._is_made_up_of(have)

    @property
    def has_reservations(self) -> bool:
        """Whether room is kept for members that are not on a node yet."""
        return bool(self.slots) or self.counted.kinds[MemberState.PLACED] > 0

    @property
    def is_of_a_job(self) -> bool:
        """Whether the group is of a vcjob, which says what its pods will be."""
        return self._owner_kind == "Job"

    @property
    def without_its_pod(self) -> bool:
        """Whether the group is of one pod, which has not been told its group yet, or has gone.

        In the latter case the group follows.
        """
        return self._owner_kind == "Pod" and self.min_member <= 1 and not self.members

    @property
    def is_one_of_a_stateful_set(self) -> bool:
        """Whether the group has one pod, on no node, of a StatefulSet that is to be a gang."""
        alone = len(self.members) == 1 < self.min_member and not self.on_nodes
        return alone and self._owner_kind == "StatefulSet"

    @property
    def _owner_kind(self) -> str:
        return self.pod_group.owner_kind if self.pod_group is not None else ""

    @property
    def wants_planning(self) -> bool:
        """Whether the planner has a decision to make about the group."""
        if not self.known or self.deleting:
            return False
        if self.waiting:
            return True
        if self.solo or self.phase is GroupPhase.COMPLETED:
            return False
        if self.phase in (GroupPhase.NEW, GroupPhase.PENDING):
            # An empty one claims nothing: all there are would be admitted, whatever room there is.
            return not self.without_its_pod
        return not self.placed_minimum
