"""What a cycle decided: a value, enacted elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.model.eviction import EvictionPlan
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Task
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.parts import NO_SUB_GROUP, SubGroup
from app.model.reason import Refusal
from app.model.resources import Vector


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """``task`` (a pod or a slot) goes to ``node``, a place of that class of ``exchange``.

    ``sub_group`` is the one that a slot is kept for; that of none: a member of any may come.
    """

    task: Task
    node: NodeName
    exchange: Exchange = ANY_EQUAL
    sub_group: SubGroup = NO_SUB_GROUP


@dataclass(frozen=True, slots=True, eq=False)
class GangPlacement:
    """Placements of one gang that are published together or not at all.

    ``whole`` is set when they take the gang to its minimum; otherwise they are members beyond it,
    each of which stands alone.
    """

    gang: GroupKey
    placements: tuple[Placement, ...]
    whole: bool


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """Free room that is kept for a gang which waits for more: how much of which nodes.

    Amounts have the shape ``(R,)``.
    """

    gang: GroupKey
    nodes: tuple[tuple[NodeName, Vector], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loan:
    """What a gang holds beyond the share of its queue, shape ``(R,)``.

    ``borrowed_from`` is the queue that uses least of its share; empty: every queue uses all of its
    own.
    """

    borrowed_from: QueueName
    amount: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Revocable:
    """Places of one gang that can be taken back: all of them, or none.

    ``holders`` has them (UIDs of pods, names of slots), ``request`` is what they take together,
    shape ``(R,)``, and ``since`` when the first was reserved (seconds since the epoch). ``whole``:
    nothing of the gang has begun, and this is all it has; otherwise it does without.
    """

    gang: GroupKey
    holders: tuple[str, ...]
    request: Vector
    since: float
    whole: bool


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The outcome of one cycle on the snapshot of ``generation``.

    ``admitted`` groups turn Inqueue. ``refused`` has the reason of every pending group that got no
    place this time, or not all it asked for. ``shown`` are members that only lack nodes, and that
    ask to lose their gates then. ``set_aside`` are refused groups that no end of other pods helps,
    ``collected`` is free room that is kept for gangs that have waited long and do not fit yet,
    ``loans`` what gangs hold beyond the shares of their queues.
    """

    generation: int
    admitted: tuple[GroupKey, ...] = ()
    placed: tuple[GangPlacement, ...] = ()
    refused: Mapping[GroupKey, Refusal] = field(default_factory=dict)
    shown: frozenset[PodUid] = frozenset()
    set_aside: frozenset[GroupKey] = frozenset()
    unplaced_claims: frozenset[GroupKey] = frozenset()
    """Admitted groups without places whose claims count for others as if they had some."""
    collected: tuple[Collected, ...] = ()
    loans: Mapping[GroupKey, Loan] = field(default_factory=dict)
    evictions: tuple[EvictionPlan, ...] = ()
    """Decisions to evict, whose preemptors are in none of ``placed``."""

    def without(self, group: GroupKey) -> "Plan":
        """The plan in which that group is neither admitted nor placed."""
        admitted = tuple(key for key in self.admitted if key != group)
        placed = tuple(each for each in self.placed if each.gang != group)
        return replace(self, admitted=admitted, placed=placed)
