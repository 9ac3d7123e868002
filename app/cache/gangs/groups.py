"""A group's members, counted as they change.

Sums are kept incrementally, so a member costs the same in a gang of ten thousand as in one of two;
only the list of waiting members is walked when the planner's view is made.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Final

from app.cache.gangs.arrivals import Arrivals
from app.cache.gangs.members import (
    ON_NODE_KINDS,
    PLACED_KINDS,
    READY_KINDS,
    Member,
    MemberState,
    Slot,
)
from app.cache.gangs.slots import SlotIndex
from app.cache.gangs.story import Steps
from app.cache.gangs.tally import bump
from app.model.amounts import Amounts
from app.model.gang import Counts, Gang
from app.model.ids import DEFAULT_QUEUE, NO_QUEUE, GroupKey, PodUid, QueueName
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
    """One PodGroup (or a pod alone: ``pod_group`` None and ``solo``) and its members.

    ``phase`` is ours to decide, so the local one counts; the stored one is read once. ``awaits``:
    UID of the owner that its pod is filed under while a controller may still give it to a PodGroup
    with others (volcano.md §5.3), else empty. ``cool_down_until`` and ``failures`` keep a gang
    whose reservation was not used from being placed again at once; ``unused`` and ``yields_until``
    let others go before members beyond its minimum that nobody came for. ``given_up``: nobody
    created the members that slots were kept for; ``filled_at`` is when one last came into a slot.
    ``set_aside``: no end of other pods helps it, as the plan found that was made of this
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
    """That of its PodGroup that has gone, for as long as members are leaving after it."""
    phase: GroupPhase = GroupPhase.NEW
    members: dict[PodUid, Member] = field(default_factory=dict)
    waiting: dict[PodUid, Member] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    open_slots: SlotIndex = field(default_factory=SlotIndex)
    """The same, for members that come."""
    kinds: Counter[MemberState] = field(default_factory=Counter)
    part_kinds: Counter[tuple[Part, MemberState]] = field(default_factory=Counter)
    arrivals: Arrivals = field(default_factory=Arrivals)
    best_effort_waiting: int = 0
    queue_first: int = 0
    """Waiting members whose gates go as soon as their queue has room."""
    held: dict[Amounts, int] = field(default_factory=dict)
    """How many members or slots hold each request (their group's allocation)."""
    kept: dict[Amounts, int] = field(default_factory=dict)
    """How many slots of them do."""
    gated: dict[Amounts, int] = field(default_factory=dict)
    """The same for members that wait behind gates of others."""
    wanted: dict[Amounts, int] = field(default_factory=dict)
    """The same for all others that wait."""
    lingering: dict[Amounts, int] = field(default_factory=dict)
    """The same for members that linger (:attr:`Member.lingers`)."""
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
    given_up: bool = False
    filled_at: float = 0.0
    foreign: int = 0
    """So many of its pods other schedulers have bound, at most at once: they are no members."""
    lost_of: dict[str, int] = field(default_factory=dict)
    """Members of each role that are as good as gone: another is awaited in the stead of each."""
    reached: Numbers = field(default_factory=Counter)
    """The largest minimum that it has had on nodes, never more than it asks for now."""
    set_aside: bool = False
    doubtful: bool = False
    """It was set aside until something changed that may help it."""
    version: int = 0
    serial: int = 0
    """Counts slots ever made, for their names."""
    story: Steps | None = None
    """The latest steps of a gang, once there is one."""

    def add(self, member: Member) -> None:
        """Count ``member`` in its present state."""
        member.part = part_of(member.pod.role, member.pod.labels, self.sub_groups)
        self._count(member, 1)
        self.members[member.pod.uid] = member
        if not member.pod.node or member.pod.role not in self.role_shapes:
            # one on a node may have been resized: those to come are made as those that wait
            self.role_shapes[member.pod.role] = member.pod.shape

    def remove(self, member: Member) -> None:
        """Stop counting ``member``; it must not have changed since it was added."""
        self._count(member, -1)
        self.members.pop(member.pod.uid, None)

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

    def without(self, gone: Iterable[Member]) -> "Group":
        """A copy, as it would be if these members were gone."""
        left = copy(self)
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, dict | Arrivals):
                setattr(left, each.name, copy(value))
        for member in gone:
            left.remove(member)
        return left

    def add_slot(self, slot: Slot) -> None:
        """Count a promised place without a member."""
        self.slots[slot.holder] = slot
        self.open_slots.add(slot)
        bump(self.held, slot.request, 1)
        bump(self.kept, slot.request, 1)

    def remove_slot(self, holder: str) -> Slot:
        """Stop counting it."""
        slot = self.slots.pop(holder)
        self.open_slots.remove(slot)
        bump(self.held, slot.request, -1)
        bump(self.kept, slot.request, -1)
        return slot

    def _count(self, member: Member, sign: int) -> None:
        kind, request = member.kind, member.pod.shape.requests
        self.kinds[kind] += sign
        if member.lost:
            bump(self.lost_of, member.part.role, sign)
        bump(self.part_kinds, (member.part, kind), sign)
        if kind is MemberState.WAITING:
            self.best_effort_waiting += sign * member.task.best_effort
            self.queue_first += sign * member.task.queue_first
            bump(self.wanted, request, sign)
            if sign > 0:
                self.waiting[member.pod.uid] = member
            else:
                self.waiting.pop(member.pod.uid, None)
        elif kind is MemberState.GATED:
            bump(self.gated, request, sign)
        elif kind in PLACED_KINDS:
            bump(self.held, request, sign)
            self.arrivals.count(member, sign)
        elif member.lingers:
            bump(self.lingering, request, sign)

    def begin_anew(self) -> None:
        """It asks for something else than what did not come together."""
        self.cool_down_until, self.failures, self.given_up = 0.0, 0, False
        self.collecting_since = 0.0

    # --- facts -----------------------------------------------------------------------------------

    @property
    def lost(self) -> int:
        """Members that are as good as gone, of all roles."""
        return sum(self.lost_of.values())

    @property
    def namespace(self) -> str:
        """Where its PodGroup and its pods are."""
        return self.key.partition("/")[0]

    @property
    def empty(self) -> bool:
        """Whether nothing is left of it."""
        return self.pod_group is None and not self.members and not self.slots

    @property
    def known(self) -> bool:
        """Whether it can be planned at all: its PodGroup exists, or it needs none.

        Who needs none may still be in the queue of a namespace that the watch is about to show.
        """
        if self.pod_group is not None:
            return True
        return self.solo and not self.awaits and not self.lacks_namespace

    @property
    def lacks_namespace(self) -> bool:
        """Whether only its namespace, which is not known, can tell its queue."""
        return self.namespace_queue is None and self._named_queue in _NONE_NAMED

    @property
    def deleting(self) -> bool:
        """Whether its PodGroup is going away."""
        return self.pod_group is not None and self.pod_group.deleting

    @property
    def min_member(self) -> int:
        """How many members must be placed together; a pod alone is its own minimum."""
        return 1 if self.solo else (self.pod_group.min_member if self.pod_group else 0)

    @property
    def role_minimum(self) -> Mapping[str, int]:
        """minTaskMember, left out when it exceeds minMember (volcano.md §3.1)."""
        if self.pod_group is None:
            return {}
        minimum = self.pod_group.role_minimum
        return {} if self.pod_group.min_member < sum(minimum.values()) else minimum

    @property
    def sub_groups(self) -> Policies:
        """What parts its members further (:mod:`app.model.parts`)."""
        return self.pod_group.sub_groups if self.pod_group is not None else ()

    @property
    def is_gang(self) -> bool:
        """Whether its minimum may take more than one member."""
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
        former = self.former_queue if self._is_leaving else NO_QUEUE
        named = former or self._named_queue
        if named in _NONE_NAMED:
            named = self.namespace_queue or named
        return QueueName(named) if named else self.default_queue

    @property
    def _is_leaving(self) -> bool:
        """Whether some member terminates. Pods that stay count where a new process counts them."""
        return bool(self.kinds[MemberState.RELEASING] or self.kinds[MemberState.RELEASING_PLACED])

    @property
    def _named_queue(self) -> str:
        """What its pods name, if it has no PodGroup: those of a vcjob name the queue of that."""
        said = next((member.pod.annotations for member in self.members.values()), {})
        return said.get(QUEUE_ANNOTATION) or ("" if self.solo else said.get(QUEUE_NAME, ""))

    def asks_like(self, view: Gang) -> bool:
        """Whether it is the group of an earlier view, of the same queue and the same minimum."""
        return (
            (self.pod_group is None or self.pod_group.uid == view.uid)
            and self.queue == view.queue
            and self.min_member == view.min_member
            and self.role_minimum == view.role_minimum
            and self.sub_groups == view.sub_groups
        )

    @property
    def on_nodes(self) -> int:
        """Members that reached a node or finished there: they count for the barrier."""
        of = self.kinds
        return of[MemberState.BOUND] + of[MemberState.RUNNING] + of[MemberState.SUCCEEDED]

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
        come = self.arrivals.at_bind + coming
        return self._makes_minimum(come) or self._makes_up_for_losses(come)

    def complete_without(self, leaving: Counter[Part]) -> bool:
        """Whether it holds without so many per part of those on nodes or at Bind."""
        return self._makes_minimum(self.arrivals.at_bind, leaving=leaving)

    @property
    def reached_minimum(self) -> bool:
        """Whether enough members are on nodes for the others to stand alone."""
        return self._makes_minimum(_NOBODY)

    @property
    def begun(self) -> bool:
        """Whether some of its minimum is bound, and some is not, as the answers to Bindings say."""
        return self.on_nodes + self.arrivals.accepted.total() > 0 and self.lacks_bound

    @property
    def lacks_bound(self) -> bool:
        """Whether some of its minimum is not bound, as these say."""
        return not self._makes_minimum(self.arrivals.accepted)

    def _makes_minimum(self, come: Counter[Part], *, leaving: Counter[Part] = _NOBODY) -> bool:
        """Whether its minimum is on nodes or among so many per part that came.

        So many ``leaving`` do not count any more, wherever they are.
        """
        if self.on_nodes + come.total() - leaving.total() < self.min_member:
            return False
        if not (self.role_minimum or self.sub_groups):
            return True
        return self._is_made_up_of(self.parts(ON_NODE_KINDS) + come - leaving)

    def _is_made_up_of(self, have: Counter[Part]) -> bool:
        """Whether these are enough for its roles and sub-groups."""
        return make_up(have, role_minimum=self.role_minimum, policies=self.sub_groups)

    # --- what it has had -------------------------------------------------------------------------

    @property
    def asks(self) -> Numbers:
        """Its minimum as numbers."""
        return asked(self.min_member, self.role_minimum, self.sub_groups)

    def note_reached(self) -> None:
        """Remember its minimum as one that it has had, if it has it on nodes."""
        if self.on_nodes and self.reached_minimum:
            self.reached = self.asks

    def ask_otherwise(self, before: Numbers) -> None:
        """Its minimum was ``before`` and is another one now.

        What it has by then is not what it asks for newly, members beyond the minimum included.
        """
        if self.asks != before:
            come = self.arrivals.accepted
            on_the_way = Counter({MEMBERS: self.arrivals.unanswered})
            has = self._numbers(come) + on_the_way
            self.reached = (self.reached | has) & self.asks

    @property
    def owed(self) -> Numbers:
        """The minimum that it must be brought back to before all others; none: it is not torn.

        That is the one that it had and has lost a part of. If it is bound in part beyond that, as a
        crash in the middle of binding leaves it, it is the whole minimum.
        """
        if self.on_nodes == self.kinds[MemberState.SUCCEEDED] or self.reached_minimum:
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
        """What it has on nodes, and so many per part that came."""
        parts: Counter[Part] = Counter()
        if self.role_minimum or self.sub_groups:
            parts = self.parts(ON_NODE_KINDS) + come
        return counted(self.on_nodes + come.total(), parts, self.sub_groups)

    def parts(self, kinds: Collection[MemberState]) -> Counter[Part]:
        """How many members of these kinds count for what."""
        found: Counter[Part] = Counter()
        for (part, kind), count in self.part_kinds.items():
            if kind in kinds:
                found[part] += count
        return found

    def lacks(self, role: str) -> bool:
        """Whether its minimum takes one more member of ``role`` than have places, kept or taken."""
        there = self.on_nodes + self.kinds[MemberState.PLACED] + len(self.slots)
        if there < self.min_member or self.sub_groups:
            return not self.placed_minimum
        kept = self.open_slots.counts().get(role, 0)
        least = self.role_minimum.get(role, 0)
        return least > 0 and least > by_role(self.parts(READY_KINDS))[role] + kept

    @property
    def placed_minimum(self) -> bool:
        """Whether its minimum has places, kept or taken, and that of each part."""
        if self.on_nodes + self.kinds[MemberState.PLACED] + len(self.slots) < self.min_member:
            return False
        if not (self.role_minimum or self.sub_groups):
            return True
        have = self.parts(READY_KINDS)
        have.update({Part(role): kept for role, kept in self.open_slots.counts().items()})
        return self._is_made_up_of(have)

    @property
    def has_reservations(self) -> bool:
        """Whether room is kept for members that are not on a node yet."""
        return bool(self.slots) or self.kinds[MemberState.PLACED] > 0

    @property
    def is_of_a_job(self) -> bool:
        """Whether it is of a vcjob, which says what its pods will be."""
        return self._owner_kind == "Job"

    @property
    def awaits_nobody(self) -> bool:
        """Whether no room is to be kept for a member that is not there, before one comes.

        It was kept for some that nobody created; other schedulers have bound those that it lacks;
        or the group is without the pod that owns it.
        """
        return self.given_up or self._is_of_foreign_members or self.without_its_pod

    @property
    def _is_of_foreign_members(self) -> bool:
        there = len(self.members) - self.lost
        return bool(self.foreign) and there + self.foreign >= self.min_member

    @property
    def waits_for_nodes(self) -> bool:
        """Whether members that wait, or are to come, are to be seen by an autoscaler."""
        return bool(self.queue_first) or any(t.queue_first for t in self.templates.values())

    @property
    def without_its_pod(self) -> bool:
        """Whether it is of one pod, which has not been told its group yet, or has gone.

        In the latter case the group follows.
        """
        return self._owner_kind == "Pod" and self.min_member <= 1 and not self.members

    @property
    def _owner_kind(self) -> str:
        return self.pod_group.owner_kind if self.pod_group is not None else ""

    @property
    def wants_planning(self) -> bool:
        """Whether the planner has a decision to make about it."""
        if not self.known or self.deleting:
            return False
        if self.waiting:
            return True
        if self.solo or self.phase is GroupPhase.COMPLETED:
            return False
        if self.phase in (GroupPhase.NEW, GroupPhase.PENDING):
            # An empty one claims nothing: all there are would be let in, whatever room there is.
            return not self.without_its_pod
        return not self.placed_minimum

    def counts(self) -> Counts:
        """Counts in the planner's terms."""
        of = self.kinds
        return Counts(
            pending=of[MemberState.WAITING] + of[MemberState.GATED],
            placed=of[MemberState.PLACED],
            bound=of[MemberState.BOUND],
            running=of[MemberState.RUNNING],
            releasing=of[MemberState.RELEASING] + of[MemberState.RELEASING_PLACED],
            releasing_placed=of[MemberState.RELEASING_PLACED],
            succeeded=of[MemberState.SUCCEEDED],
            failed=of[MemberState.FAILED],
            unknown=of[MemberState.UNKNOWN],
            pending_best_effort=self.best_effort_waiting,
            gated=of[MemberState.GATED],
            slots=len(self.slots),
            lost=self.lost,
            foreign=self.foreign,
        )
