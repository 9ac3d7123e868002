"""A group and its members, as one immutable view that the planner works on.

The cache makes a new :class:`Gang` whenever the PodGroup or one of its pods changed and keeps the
old one otherwise, so a snapshot of ten thousand groups copies references only. Vectors are on the
snapshot's axis.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from app.model.amounts import Amounts
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.ids import NO_NODE, GroupKey, NodeName, PodUid, QueueName
from app.model.parts import Policies, SubGroup, lacking_sub_groups, least_missing
from app.model.reached import MEMBERS, Numbers, asked, of_policy, of_role
from app.model.resources import PODS_COLUMN, Vector
from app.model.shape import PodShape
from app.model.topology import NetworkTopology, TopologyAffinity
from app.model.workload import GroupPhase

_CLAIMING = (GroupPhase.INQUEUE, GroupPhase.RUNNING)


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A member that wants a node. ``request`` is ``shape.requests`` on the axis, shape ``(R,)``.

    ``uid`` empty: a *slot*, room for a member that no owner has created yet.
    ``pinned`` is the only node it may go to; ``nominated`` the one to try first. ``exchange``,
    ``queue_first`` and ``after`` are as of its pod: no place of the task is of a wider class.
    ``shown`` when a pod that is ``queue_first`` has no gate any more: its queue keeps room for it.
    """

    uid: PodUid
    name: str
    role: str
    shape: PodShape
    request: Vector
    priority: int
    created: float
    best_effort: bool
    pinned: NodeName = NO_NODE
    nominated: NodeName = NO_NODE
    exchange: Exchange = ANY_EQUAL
    queue_first: bool = False
    shown: bool = False
    after: tuple[PodUid, ...] = ()

    @property
    def is_slot(self) -> bool:
        """Whether the task stands for a pod that does not exist yet."""
        return not self.uid


@dataclass(frozen=True, slots=True)
class Counts:
    """How many members are in which state (volcano.md §3.1, §4.1)."""

    pending: int = 0
    """Without a place: planned and un-planned alike are not counted here once they have one."""
    placed: int = 0
    """Planned, assumed or binding: they have a reservation, not yet a node in the API."""
    bound: int = 0
    running: int = 0
    releasing: int = 0
    releasing_placed: int = 0
    """Of ``releasing``: those that have a node."""
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    pending_best_effort: int = 0
    gated: int = 0
    """Of ``pending``: held by a foreign scheduling gate."""
    lost: int = 0
    """Of ``releasing`` and ``failed``: those in whose stead another member is awaited."""
    foreign: int = 0
    """Pods of the group that other schedulers have bound: no members, nor to be awaited."""
    slots: int = 0
    """Places reserved for members that do not exist yet."""

    @property
    def ready_members(self) -> int:
        """Volcano's ReadyTaskNum: members that exist and have a place."""
        return self.placed + self.bound + self.running + self.succeeded

    @property
    def ready(self) -> int:
        """The members that count as ready where a slot counts as its future member.

        Planning goes by this number.
        """
        return self.ready_members + self.slots

    @property
    def holding(self) -> int:
        """The members that hold room: the ready ones without those that have finished."""
        return self.ready - self.succeeded

    @property
    def scheduled(self) -> int:
        """Members that reached a node, terminating ones included (volcano.md §4.1)."""
        return self.bound + self.running + self.succeeded + self.failed + self.releasing_placed

    @property
    def completed(self) -> int:
        """Finished members; failed counts as finished."""
        return self.succeeded + self.failed

    @property
    def unfinished(self) -> int:
        """Members that have not finished and are not terminating."""
        return self.tasks - self.completed - self.releasing

    @property
    def there(self) -> int:
        """All members that exist but those in whose stead another one is awaited, and slots.

        Foreign members are among them: no other ones are awaited in their stead.
        """
        return self.tasks - self.lost + self.foreign + self.slots

    @property
    def tasks(self) -> int:
        """All members that exist."""
        return (
            self.pending
            + self.placed
            + self.bound
            + self.running
            + self.releasing
            + self.succeeded
            + self.failed
            + self.unknown
        )


@dataclass(frozen=True, slots=True, eq=False)
class Gang:
    """A PodGroup (or a single pod) with its members.

    ``waiting`` are the members without a place that may be planned now (no foreign gates), in no
    particular order. ``allocated`` sums the requests of members with a place, slots included
    (``kept``: of slots only); ``request`` adds the waiting ones. ``min_request`` is
    ``minResources`` (None: unset), ``min_limits`` the lines of these that quotas have for limits,
    ``gated_request`` sums members held by foreign gates, ``releasing`` those that terminate on
    nodes that are up, which are in none of the other sums. ``role_shapes`` has a sibling's shape
    per role for slots; ``role_ready`` counts members and slots with a place per role,
    ``role_valid`` those plus waiting ones, foreign gates or not. ``partial`` is set when the gang
    has lost members of its minimum that it had on nodes, or is bound in part, as a crash in the
    middle of binding leaves it: the rest goes first. ``owed`` is the minimum that it must be
    brought back to first, ``reached`` the largest one that it has had (:mod:`app.model.reached`).
    """

    key: GroupKey
    uid: str
    namespace: str
    name: str
    queue: QueueName
    priority: int
    created: float
    min_member: int
    phase: GroupPhase
    counts: Counts
    allocated: Vector
    kept: Vector
    request: Vector
    min_request: Vector | None
    gated_request: Vector
    releasing: Vector
    waiting: tuple[Task, ...] = ()
    queue_first: tuple[Task, ...] = ()
    """Of ``waiting``: those whose gates go as soon as their queue has room."""
    min_limits: Amounts = ()
    role_minimum: Mapping[str, int] = field(default_factory=dict)
    role_ready: Mapping[str, int] = field(default_factory=dict)
    role_valid: Mapping[str, int] = field(default_factory=dict)
    role_slots: Mapping[str, int] = field(default_factory=dict)
    """Of both: the slots."""
    role_hidden: Mapping[str, int] = field(default_factory=dict)
    """Members that exist and cannot be placed, but those in whose stead another one is awaited."""
    role_scheduled: Mapping[str, int] = field(default_factory=dict)
    """Like :attr:`Counts.scheduled`, per role."""
    role_shapes: Mapping[str, PodShape] = field(default_factory=dict)
    role_replicas: Mapping[str, int] = field(default_factory=dict)
    """How many members of each role there will be, where the owner says so, in its order."""
    sub_groups: Policies = ()
    """The policies that part the gang's members further (:mod:`app.model.parts`)."""
    topology: NetworkTopology | None = None
    affinity: TopologyAffinity | None = None
    sub_group_of: Mapping[PodUid, SubGroup] = field(default_factory=dict)
    """The sub-group of each of ``waiting``, if it has one."""
    sub_group_ready: Mapping[SubGroup, int] = field(default_factory=dict)
    """Members with a place per sub-group."""
    sub_group_valid: Mapping[SubGroup, int] = field(default_factory=dict)
    """Members with a place and waiting ones per sub-group, gated ones too."""
    sub_group_scheduled: Mapping[SubGroup, int] = field(default_factory=dict)
    """Like :attr:`Counts.scheduled`, per sub-group."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    solo: bool = False
    partial: bool = False
    owed: Numbers = field(default_factory=Counter)
    reached: Numbers = field(default_factory=Counter)
    cool_down_until: float = 0.0
    """Not to be planned before this time: its last reservation was never used."""
    collecting_since: float = 0.0
    """When room was first kept for it while it waited (seconds since the epoch); 0: never."""
    refused_since: float = 0.0
    """Since when no eviction gave it room (seconds of the epoch); 0: no eviction was looked for."""
    given_up: bool = False
    """Whether no member is awaited until one comes: room was kept for members that were not made,
    other schedulers bound those that it lacks, or the one pod that owns it is not told or gone."""
    set_aside: bool = False
    """No node, or no limit, could take it when it was planned last, whatever else ends: it claims
    nothing, and what its waiting members ask for does not count for its queue."""
    unplaced_claim: bool = False
    """The claim counts for others although no places can be kept for the gang's members."""
    doubtful: bool = False
    """The gang was set aside until something changed: some node has to be able to take it."""
    waits_for_nodes: bool = False
    """Some members are to be seen by an autoscaler (:attr:`~app.model.pod.Pod.queue_first`)."""
    version: int = 0
    """Changes whenever the group changes in anything that planning looks at but its phase."""
    unused: frozenset[PodUid] = frozenset()
    """Members that did not use their place while they had one: beyond the minimum they go last."""
    yields_until: float = 0.0
    """Until when all its members beyond the minimum go last, as one has just lost its place."""
    preempts: bool = True
    """Whether pods may be evicted for the gang: no class, pod or template of it says ``Never``."""
    ends_whole: bool = False
    """Whether the gang's owner ends all members when one of them is evicted."""
    preemptable: bool | None = None
    """Whether members that say nothing of it themselves may be evicted; None: it does not say."""

    @property
    def called(self) -> str:
        """``namespace/name``: its key but for a single pod, whose key has its UID."""
        return f"{self.namespace}/{self.name}"

    @property
    def as_it_was(self) -> "Gang":
        """The gang with the minimum that it must be brought back to first.

        What it asks for beyond that takes its queue's turn.
        """
        if not self.owed or self.owed == asked(self.min_member, self.role_minimum, self.sub_groups):
            return self
        return replace(
            self,
            min_member=self.owed[MEMBERS],
            role_minimum={role: of_role(self.owed, role) for role in self.role_minimum},
            sub_groups=tuple(
                replace(policy, least=of_policy(self.owed, policy.name))
                for policy in self.sub_groups
            ),
        )

    @property
    def is_of_one(self) -> bool:
        """Whether the gang's minimum takes no more than one member."""
        return self.min_member <= 1 and not self.sub_groups

    @property
    def age(self) -> tuple[float, str]:
        """The older first; those of the same second by namespace and name (volcano.md §3.3)."""
        return self.created, self.key

    @property
    def inqueue(self) -> bool:
        """Whether the enqueue action has admitted the gang, or it runs already.

        A gang that has run to its end, and whose pods are gone, is to be admitted anew for new
        ones.
        """
        if self.phase is GroupPhase.COMPLETED:
            return self.counts.scheduled >= self.min_member
        return self.phase not in (GroupPhase.NEW, GroupPhase.PENDING)

    @property
    def uncreated(self) -> Vector | None:
        """What is left of ``minResources`` for members that do not exist yet, and their number.

        The number is that of ``pods``, whatever ``minResources`` say of them. None: they are unset.
        """
        if self.min_request is None:
            return None
        counts = self.counts
        lacking = max(self.min_member - counts.there + counts.slots, 0)
        if self.counts.tasks and not lacking:
            return np.zeros_like(self.min_request)
        rest: Vector = np.maximum(self.min_request - (self.request - self.kept), 0)
        rest[PODS_COLUMN] = lacking
        return rest

    @property
    def unplaced(self) -> Vector:
        """What the gang's members and its ``minResources`` ask for beyond what it holds."""
        least = 0 if self.min_request is None else self.min_request
        rest: Vector = np.maximum(self.request, least) - self.allocated
        return rest

    @property
    def role_minimums(self) -> Mapping[str, int]:
        """The minimums per role that count: not when ``min_member`` is less than their sum."""
        minimums = self.role_minimum
        return minimums if minimums and self.min_member >= sum(minimums.values()) else {}

    def lacking_of_roles(self, have: Mapping[str, int]) -> dict[str, int]:
        """How many members roles that ``have`` so many lack of their minimums; those that do."""
        return {
            role: least - have.get(role, 0)
            for role, least in self.role_minimums.items()
            if least > have.get(role, 0)
        }

    def lacking_of_policies(self, have: Mapping[SubGroup, int]) -> dict[str, int]:
        """How many whole sub-groups policies lack when they have so many members; those that do."""
        return lacking_sub_groups(self.sub_groups, have) if self.sub_groups else {}

    @property
    def sub_group_able(self) -> Mapping[SubGroup, int]:
        """Members per sub-group that have a place or may be given one."""
        there = Counter(self.sub_group_ready)
        there.update(self.sub_group_of[t.uid] for t in self.waiting if t.uid in self.sub_group_of)
        return there

    @property
    def role_ready_members(self) -> Mapping[str, int]:
        """Members with a place per role, slots apart."""
        slots = self.role_slots
        return {role: ready - slots.get(role, 0) for role, ready in self.role_ready.items()}

    @property
    def able(self) -> int:
        """Members and slots that have a place or may be given one: not those that failed, say."""
        return self._able(self.counts.ready, self.role_ready)

    @property
    def able_members(self) -> int:
        """Members that have a place or may be given one, slots apart."""
        return self._able(self.counts.ready_members, self.role_ready_members)

    def _able(self, ready: int, of_roles: Mapping[str, int]) -> int:
        """How many members of ``ready`` are of use.

        While a foreign gate holds a member that a part needs, more members of other parts do not
        help.
        """
        able = ready + len(self.waiting)
        if not self.counts.gated:
            return able
        there = Counter(task.role for task in self.waiting)
        there.update(of_roles)
        lacking = sum(self.lacking_of_roles(there).values())
        if self.sub_groups:
            lacking = max(lacking, least_missing(self.sub_groups, self.sub_group_able))
        return min(able, max(self.min_member - lacking, 0))

    @property
    def lacks_members(self) -> bool:
        """Whether the gang's minimum takes members that do not exist, without places kept for them.

        Of a role too, or of sub-groups, where those that exist and cannot be placed may be of it.
        """
        if self.counts.there < self.min_member:
            return True
        if self.lacking_of_roles(self.role_valid):
            return True
        return bool(self.lacking_of_policies(self.sub_group_valid))

    @property
    def awaits_members(self) -> bool:
        """Whether members that the gang lacks may still be created, as far as is known."""
        return self.lacks_members and not self.given_up

    @property
    def is_awaited(self) -> bool:
        """Whether the gang was admitted, so that members that it lacks are about to be created.

        It may run by now and have lost some: its owner makes them anew.
        """
        return self.inqueue and self.awaits_members

    @property
    def claims(self) -> bool:
        """Whether the gang may still take what it lacks of ``minResources`` (volcano.md §3.6).

        Not if so many members have finished that the others are less than its minimum.
        """
        if self.phase is GroupPhase.RUNNING and self.counts.holding < self.min_member:
            return False
        return self.phase in _CLAIMING and not (self.given_up or self.set_aside)

    @property
    def keeps_claim(self) -> bool:
        """Whether the gang was admitted and what it has not got yet is kept for it."""
        return self.phase is GroupPhase.INQUEUE and not (self.given_up or self.set_aside)
