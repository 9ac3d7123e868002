"""What queues and gangs hold in a cycle, and what a gang loses to its queue's sums by evictions."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from app.model.gang import Gang
from app.model.parts import SubGroup
from app.model.resources import Vector
from app.model.snapshot import QueueUsage
from app.model.workload import GroupPhase

_MOST_REQUESTED = 1 << 48
_ADMITTED = (GroupPhase.INQUEUE, GroupPhase.RUNNING)


class QueueChange(NamedTuple):
    """What a queue's sums change by; None: that sum stays."""

    allocated: Vector | None = None
    request: Vector | None = None
    elastic: Vector | None = None
    inqueue: Vector | None = None
    committed: Vector | None = None
    releasing: Vector | None = None
    groups: int = 0


@dataclass(slots=True, eq=False)
class QueueAccount:
    """Running sums of a queue, shape ``(R,)`` each; ``tree_*`` include all descendants.

    A sum that changes is replaced, never changed in place: accounts open with the snapshot's own
    vectors, and hundreds of queues cost no copies.
    """

    allocated: Vector
    request: Vector
    inqueue: Vector
    elastic: Vector
    tree_allocated: Vector
    tree_request: Vector
    tree_inqueue: Vector
    tree_elastic: Vector
    groups: int
    releasing: Vector | None = None
    """What terminating members have until they are gone; in no other sum. None: nothing."""
    tree_releasing: Vector | None = None
    committed: Vector | None = None
    """The part of ``inqueue`` that others may not take with their places; None: nothing."""
    tree_committed: Vector | None = None

    @classmethod
    def of(cls, own: QueueUsage) -> "QueueAccount":
        """The account of a queue without descendants."""
        return cls(
            allocated=own.allocated,
            request=own.request,
            inqueue=own.inqueue,
            elastic=own.elastic,
            tree_allocated=own.allocated,
            tree_request=own.request,
            tree_inqueue=own.inqueue,
            tree_elastic=own.elastic,
            groups=own.groups,
            releasing=own.releasing,
            tree_releasing=own.releasing,
            committed=own.committed,
            tree_committed=own.committed,
        )

    def add_below(self, own: QueueUsage) -> None:
        """A queue below has that much."""
        self.tree_allocated = self.tree_allocated + own.allocated
        self.tree_request = self.tree_request + own.request
        self.tree_inqueue = self.tree_inqueue + own.inqueue
        self.tree_elastic = self.tree_elastic + own.elastic
        self.tree_releasing = plus(self.tree_releasing, own.releasing)
        self.tree_committed = plus(self.tree_committed, own.committed)

    def change(self, by: QueueChange, sign: int) -> None:
        """Change the queue's own sums, or change them back (-1)."""
        self.groups += sign * by.groups
        if by.allocated is not None:
            self.allocated = self.allocated + sign * by.allocated
        if by.request is not None:
            self.request = self.request + sign * by.request
        if by.elastic is not None:
            self.elastic = self.elastic + sign * by.elastic
        if by.inqueue is not None:
            self.inqueue = self.inqueue + sign * by.inqueue
        if by.committed is not None:
            self.committed = _or_none(plus(self.committed, sign * by.committed))
        if by.releasing is not None:
            self.releasing = _or_none(plus(self.releasing, sign * by.releasing))

    def change_below(self, by: QueueChange, sign: int) -> None:
        """Change the sums that include all descendants, or change them back (-1)."""
        if by.allocated is not None:
            self.tree_allocated = self.tree_allocated + sign * by.allocated
        if by.request is not None:
            self.tree_request = self.tree_request + sign * by.request
        if by.elastic is not None:
            self.tree_elastic = self.tree_elastic + sign * by.elastic
        if by.inqueue is not None:
            self.tree_inqueue = self.tree_inqueue + sign * by.inqueue
        if by.committed is not None:
            self.tree_committed = _or_none(plus(self.tree_committed, sign * by.committed))
        if by.releasing is not None:
            self.tree_releasing = _or_none(plus(self.tree_releasing, sign * by.releasing))


class Losses(NamedTuple):
    """What a gang has lost by evictions.

    ``members`` are all of them, ``ready`` those that counted as ready; these held ``held``, shape
    ``(R,)``.
    """

    members: int
    ready: int
    held: Vector

    def with_one(self, held: Vector | None) -> "Losses":
        """And one more member, which held so much; None: it counted as ready no more."""
        if held is None:
            return Losses(self.members + 1, self.ready, self.held)
        return Losses(self.members + 1, self.ready + 1, self.held + held)


@dataclass(slots=True, eq=False)
class GangAccount:
    """Running sums of a gang: members with a place, in all, per role and per sub-group.

    ``allocated`` is what they request, shape ``(R,)``.
    """

    ready: int
    role_ready: dict[str, int]
    allocated: Vector
    sub_group_ready: dict[SubGroup, int] = field(default_factory=dict)
    best_effort: dict[str, int] = field(default_factory=dict)
    """Best-effort members placed in this cycle, per role: they no longer count as waiting ones."""
    losses: Losses | None = None
    """What was evicted of the gang in this cycle; None: nothing."""

    @property
    def lost(self) -> Vector | int:
        """What evicted members held."""
        return 0 if self.losses is None else self.losses.held

    def existing(self, gang: Gang) -> tuple[int, Counter[str]]:
        """Members with a place without the slots of ``gang``, in all and by role.

        Only these keep the minimum of a gang that loses pods.
        """
        roles = Counter(self.role_ready)
        roles.subtract(gang.role_slots)
        return self.ready - gang.counts.slots, roles

    @classmethod
    def of(cls, gang: Gang) -> "GangAccount":
        """As the cycle finds it."""
        return cls(
            gang.counts.ready,
            dict(gang.role_ready),
            gang.allocated.copy(),
            dict(gang.sub_group_ready),
        )


def claimable(gang: Gang) -> Vector:
    """What an admitted gang may still claim of its ``minResources``, shape ``(R,)``.

    ``max(minResources - allocated, 0)``, members held by foreign gates left out (volcano.md §3.6,
    proportion); zero when ``minResources`` is not set, and for a gang that is given up: it takes
    nothing before its next member comes, and its group may have been left behind.
    """
    if gang.min_request is None or gang.given_up:
        return np.zeros_like(gang.allocated)
    rest: Vector = np.maximum(gang.min_request - gang.allocated - gang.gated_request, 0)
    return rest


def unadmitted_request(gang: Gang) -> Vector:
    """What members of a group that waits for admission ask for that do not exist, shape ``(R,)``.

    A queue deserves its part for these as well: else the groups that were admitted first would
    take the share of the others. Bounded, so that sums of many stay whole numbers.
    """
    rest = gang.uncreated if not gang.inqueue and gang.awaits_members else None
    return np.zeros_like(gang.allocated) if rest is None else np.minimum(rest, _MOST_REQUESTED)


def change_by_loss(
    gang: Gang, before: Losses, after: Losses, *, lingering: Vector | None
) -> QueueChange:
    """What the sums of the queue change by when ``gang`` loses a member.

    The pod requests nothing any more: one that an owner makes in its stead does when it comes. Nor
    does the gang claim more than before: what it has lost it does not get again first.
    ``lingering`` is what the pod had besides, as it terminates already.
    """
    left, held = gang.allocated - after.held, gang.allocated - before.held
    least = 0 if gang.min_request is None else gang.min_request
    is_gone = _is_gone(gang, after)
    elastic = np.maximum(left - least, 0) - np.maximum(held - least, 0)
    inqueue = committed = None
    if gang.claims and not (_claims_nothing(gang, before) or _is_gone(gang, before)):
        claimed = claimable(gang)
        stops = _claims_nothing(gang, after) or is_gone
        inqueue = -claimed if stops else None
        committed = -claimed if held.any() and (stops or not left.any()) else None
    allocated = None if before.ready == after.ready else before.held - after.held
    return QueueChange(
        allocated=allocated,
        request=plus(allocated, _unadmitted_change(gang, before, after)),
        elastic=elastic if elastic.any() else None,
        inqueue=inqueue,
        committed=committed,
        releasing=None if lingering is None else -lingering,
        groups=_is_gone(gang, before) - is_gone,
    )


def _unadmitted_change(gang: Gang, before: Losses, after: Losses) -> Vector | None:
    """What the gang requests more for members that do not exist, while it waits for admission."""
    if gang.phase in _ADMITTED or gang.min_request is None or gang.set_aside:
        return None
    return _unadmitted_without(gang, after) - _unadmitted_without(gang, before)


def _unadmitted_without(gang: Gang, losses: Losses) -> Vector:
    if _is_gone(gang, losses):
        return np.zeros_like(gang.allocated)
    counts = replace(gang.counts, running=gang.counts.running - losses.members)
    return unadmitted_request(replace(gang, counts=counts, request=gang.request - losses.held))


def _claims_nothing(gang: Gang, losses: Losses) -> bool:
    """As :attr:`Gang.claims` has it of one that runs without enough members."""
    left = gang.counts.holding - losses.ready
    return gang.phase is GroupPhase.RUNNING and left < gang.min_member


def _is_gone(gang: Gang, losses: Losses) -> bool:
    """Whether nothing would be left of the gang: no PodGroup, no member and no slot."""
    lasts = gang.uid and not gang.solo
    return not lasts and losses.members >= gang.counts.tasks + gang.counts.slots


def plus(left: Vector | None, right: Vector | None) -> Vector | None:
    """The sum of both, where None is nothing."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _or_none(amount: Vector | None) -> Vector | None:
    return amount if amount is not None and amount.any() else None
