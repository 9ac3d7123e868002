"""PodGroup life: which phase, counts and conditions a group has (volcano.md §4.1).

Pure: the group as the cache sees it, the last plan's reason, and what is stored go in; the status
to write comes out. The phase is decided in the order of the table there:

1. some members run and the gang lacks its minimum -> Unknown
2. enough members reached a node, all of those are finished and no other waits -> Completed
3. enough members reached a node -> Running
4. it was Completed, and what is left of its members has finished or is terminating -> Completed
5. some members run, and the successors of those that are gone have places -> as it was
6. it is not in the queue -> Pending; else it stays Inqueue

A group without pods is none of 1 to 3, whatever its minimum. Room that is kept for members that do
not exist changes no phase. In Volcano a member that waits does not keep a group from 2. Without 4,
a group whose finished pods are deleted would be admitted again and claim room for members that will
not be created; in Volcano it is. Without 5, a job's group would be Pending for the moment in which
a pod that was made anew is bound.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from app.model.conditions import BORROWS, PLACED, RESERVED, SCHEDULED, UNSCHEDULABLE
from app.model.gang import Gang
from app.model.parts import least_missing
from app.model.reason import Cause, Refusal
from app.model.workload import Condition, GroupPhase, PodGroup

_READY = "tasks in gang are ready to be scheduled"
_OPPOSITE = {SCHEDULED: UNSCHEDULABLE, UNSCHEDULABLE: SCHEDULED}
_REASONS = {
    Cause.NOT_ENOUGH_TASKS: "NotEnoughTasks",
    Cause.NOT_ENOUGH_PODS_OF_TASK: "NotEnoughPodsOfTask",
}
_OF_PLACED = frozenset({Cause.NOT_ENOUGH_TASKS, Cause.SCHEDULER_REFUSES, Cause.IN_PREBIND})
"""Causes that also keep a gang waiting that has room for its minimum."""
_OF_SCHEDULER = frozenset({Cause.SCHEDULER_REFUSES, Cause.IN_PREBIND})
"""Causes of ``_OF_PLACED`` that are not about places.

The condition that tells of these gives the cause.
"""
_BEFORE_RUNNING = frozenset(
    {GroupPhase.NEW, GroupPhase.PENDING, GroupPhase.INQUEUE, GroupPhase.UNKNOWN}
)
RAN = frozenset({GroupPhase.RUNNING, GroupPhase.UNKNOWN})
"""Phases of a group that has had what it needs to run."""

Describe = Callable[[Refusal], str]


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The status a PodGroup should have."""

    phase: GroupPhase
    running: int
    succeeded: int
    failed: int
    conditions: tuple[Condition, ...]
    reached: Mapping[str, int] = field(default_factory=dict)
    """The largest minimum that the group has had (:mod:`app.model.reached`), an annotation."""
    domain: str = ""
    """The domain of the network that the group is in, an annotation; empty: none."""


def lacks_minimum(gang: Gang) -> bool:
    """Whether the gang has members and cannot reach its minimum with those that have a place."""
    counts = gang.counts
    if not counts.tasks or _is_ready(gang):
        return False
    if counts.pending or counts.scheduled < gang.min_member:
        return True
    if gang.lacking_of_roles(gang.role_scheduled):
        return True
    return bool(gang.lacking_of_policies(gang.sub_group_scheduled))


def _ends(gang: Gang) -> bool:
    """Whether all that is left of the gang terminates on nodes: nothing is to be placed."""
    return bool(gang.counts.releasing_placed) and not gang.counts.unfinished


def _is_ready(gang: Gang) -> bool:
    """Whether the members that have a place make its minimum, slots apart."""
    if gang.counts.ready_members < _least(gang):
        return False
    if gang.lacking_of_policies(gang.sub_group_ready):
        return False
    return not gang.lacking_of_roles(gang.role_ready_members)


def _least(gang: Gang) -> int:
    """How many members make the gang ready: one at least of those of a gang without a minimum."""
    return max(gang.min_member, 1 if gang.counts.tasks else 0)


def next_phase(gang: Gang) -> GroupPhase:
    """The phase after a cycle."""
    counts = gang.counts
    if counts.running and lacks_minimum(gang):
        return GroupPhase.UNKNOWN
    if counts.scheduled and counts.scheduled >= gang.min_member:
        done = counts.scheduled == counts.completed and not counts.unfinished
        return GroupPhase.COMPLETED if done else GroupPhase.RUNNING
    if gang.phase is GroupPhase.COMPLETED and not counts.unfinished:
        return gang.phase
    if counts.running and gang.phase in RAN:
        return gang.phase
    return GroupPhase.INQUEUE if gang.phase is GroupPhase.INQUEUE else GroupPhase.PENDING


def desired_status(
    gang: Gang,
    stored: PodGroup,
    refusal: Refusal | None,
    *,
    describe: Describe,
    loan: str = "",
    domain: str = "",
) -> GroupStatus:
    """The status ``gang`` should have; conditions keep their stamps where nothing changed.

    ``loan`` says what the gang holds beyond the share of its queue; empty: nothing. ``domain`` is
    where all its members are, of a gang that asks for one.
    """
    counts, phase = gang.counts, next_phase(gang)
    if phase is GroupPhase.COMPLETED:
        refusal = None  # of the time before the last of its members ended
    return GroupStatus(
        phase=phase,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        conditions=_conditions(gang, stored, refusal, describe=describe, loan=loan),
        reached=_reached(gang, stored),
        domain=stored.domain if gang.topology is None else domain,
    )


def _reached(gang: Gang, stored: PodGroup) -> Mapping[str, int]:
    """What must be stored of that: of a gang of one it would say nothing."""
    return stored.reached if gang.is_of_one else dict(gang.reached)


def differs(wanted: GroupStatus, stored: PodGroup) -> bool:
    """Whether more than time stamps and transition ids would change."""
    return summary(wanted, stored) != "" or any(
        _content(condition) != _content(_find(stored, condition.type))
        for condition in wanted.conditions
    )


def summary(wanted: GroupStatus, stored: PodGroup) -> str:
    """What changes beside the texts: ``phase``, ``counts``, ``reached``, ``domain``, or nothing."""
    if wanted.phase is not stored.phase:
        return "phase"
    if wanted.reached != stored.reached:
        return "reached"
    if wanted.domain != stored.domain:
        return "domain"
    now = (wanted.running, wanted.succeeded, wanted.failed)
    return "" if now == (stored.running, stored.succeeded, stored.failed) else "counts"


def unschedulable_text(gang: Gang, refusal: Refusal, *, describe: Describe) -> str:
    """Volcano's sentence: how many members of how many, and why."""
    if refusal.cause in _REASONS and refusal.detail:
        return refusal.detail
    unready = _unready(gang) or refusal.lacking
    return f"{unready}/{gang.counts.tasks} tasks in gang unschedulable: {describe(refusal)}"


def _unready(gang: Gang) -> int:
    """How many places the minimum lacks, in all or for parts."""
    lacking = gang.lacking_of_roles(gang.role_ready)
    of_sub_groups = least_missing(gang.sub_groups, gang.sub_group_ready)
    return max(_least(gang) - gang.counts.ready, sum(lacking.values()), of_sub_groups, 0)


def waits(phase: GroupPhase) -> bool:
    """Whether a group in ``phase`` is still to run (so its user is told why it does not)."""
    return phase in _BEFORE_RUNNING


def stamped(
    conditions: tuple[Condition, ...], stored: PodGroup, *, at: str, transition: str
) -> tuple[Condition, ...]:
    """``conditions`` with time and transition id on those that are new or say something new."""
    return tuple(
        condition
        if _content(condition) == _content(_find(stored, condition.type))
        else replace(condition, changed=at, transition_id=transition)
        for condition in conditions
    )


def _conditions(
    gang: Gang, stored: PodGroup, refusal: Refusal | None, *, describe: Describe, loan: str
) -> tuple[Condition, ...]:
    found = _verdict(gang, refusal, describe)
    opposite = UNSCHEDULABLE if any(c.type == SCHEDULED for c in found) else SCHEDULED
    if _find(stored, opposite) is not None:
        found.append(Condition(opposite, "False", _OPPOSITE[opposite]))
    if _ends(gang):
        earmarked = _find(stored, RESERVED)
    else:
        earmarked = _earmarked(gang, refusal, describe, _as_told(stored, loan))
    if earmarked is not None:
        found.append(earmarked)
    return tuple(_kept(stored, condition) for condition in found)


def _verdict(gang: Gang, refusal: Refusal | None, describe: Describe) -> list[Condition]:
    """Unschedulable or Scheduled; neither while members may be on their way."""
    if refusal is not None and _is_kept_waiting(gang, refusal):
        reason = _REASONS.get(refusal.cause, "NotEnoughResources")
        text = unschedulable_text(gang, refusal, describe=describe)
        return [Condition(UNSCHEDULABLE, "True", reason, text)]
    if gang.counts.tasks and not lacks_minimum(gang):
        return [Condition(SCHEDULED, "True", _READY)]
    return []


def _is_kept_waiting(gang: Gang, refusal: Refusal) -> bool:
    if _ends(gang):
        return False
    return lacks_minimum(gang) or bool(gang.counts.tasks and refusal.cause in _OF_PLACED)


def _as_told(stored: PodGroup, loan: str) -> str:
    """``loan``, or the text of before while the gang borrows: the amounts borrowed change often."""
    before = _find(stored, RESERVED)
    if loan and before is not None and before.message.startswith(BORROWS):
        return before.message
    return loan


def _earmarked(
    gang: Gang, refusal: Refusal | None, describe: Describe, loan: str
) -> Condition | None:
    """Design §4: room for the minimum is kept (or taken), or why it is not."""
    counts = gang.counts
    enough = not _unready(gang)
    if enough and (counts.tasks or counts.slots):
        if refusal is not None and refusal.cause in _OF_SCHEDULER:
            return Condition(RESERVED, "True", refusal.cause.value, describe(refusal))
        kept = kept_text(counts.slots) if counts.slots and counts.tasks else ""
        return Condition(RESERVED, "True", PLACED, kept or loan)
    if refusal is None:
        return None
    return Condition(RESERVED, "False", refusal.cause.value, describe(refusal))


def kept_text(slots: int) -> str:
    """What is told of room for so many members, one at least, that no owner has created."""
    who = "a member that does" if slots == 1 else f"{slots} members that do"
    return f"room is kept for {who} not exist yet"


def _find(stored: PodGroup, kind: str) -> Condition | None:
    return next((c for c in stored.conditions if c.type == kind), None)


def _content(condition: Condition | None) -> tuple[str, str, str] | None:
    if condition is None:
        return None
    return condition.status, condition.reason, condition.message


def _kept(stored: PodGroup, condition: Condition) -> Condition:
    """The stored one when it says the same, so that its stamps stay."""
    before = _find(stored, condition.type)
    return before if before and _content(before) == _content(condition) else condition
