"""Refusals in the numbers of a gang.

A member that does not fit tells about itself and single nodes. What people want to know of a gang
is what its minimum asks for, what is free in the cluster, and which holders have the rest; the
verdicts on the nodes stay with it. When there is room enough in sum but not where it is needed, the
member's own numbers say more. A limit on sums (a queue's, a namespace's) that the gang reached half
way is told the same way: what all of it asks for, and what was free before.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.core.actions.cycle import Cycle
from app.core.actions.futility import Failure
from app.core.plugins.gang import behind_gates, validity
from app.core.texts import instant_text
from app.kit.quantities import amount_text
from app.model.amounts import PODS
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import ResourceAxis, Vector

OF_LIMITS = frozenset(
    {Cause.QUEUE_QUOTA, Cause.QUEUE_ROOM, Cause.QUEUE_OVERUSED, Cause.NAMESPACE_QUOTA}
)
"""Limits on sums: other nodes do not help."""
OF_QUEUES = OF_LIMITS - {Cause.NAMESPACE_QUOTA}
"""Limits of queues."""


def of_minimum(cycle: Cycle, gang: Gang, failure: Failure, *, wanted: Sequence[Task]) -> Refusal:
    """Why ``gang`` does not get its minimum: the ``wanted`` members, of which some fit."""
    refusal = of_members(cycle, gang, failure, wanted=wanted)
    return replace(refusal, lacking=max(len(wanted) - failure.placed, 0))


def of_members(cycle: Cycle, gang: Gang, failure: Failure, *, wanted: Sequence[Task]) -> Refusal:
    """Why the ``wanted`` members do not get places together."""
    refusal = of_member(cycle, gang, failure.refusal)
    asked: Vector = sum((task.request for task in wanted), np.zeros_like(failure.taken))
    if refusal.cause in OF_LIMITS:
        return _of_limit(refusal, cycle.snapshot.axis, asked=asked, taken=failure.taken)
    if refusal.cause is not Cause.NOT_ENOUGH_RESOURCES or refusal.never is not None:
        return refusal
    return _with_sums(cycle, refusal, asked)


def of_sum(cycle: Cycle, gang: Gang, asked: Vector) -> Refusal:
    """Why ``gang`` gets no places: all that is free is less than the ``asked`` of its minimum."""
    refusal = Refusal(Cause.NOT_ENOUGH_RESOURCES, where=gang.key)
    lacking = max(gang.min_member - gang.counts.ready, 0)
    return replace(_with_sums(cycle, refusal, asked), lacking=lacking)


def _with_sums(cycle: Cycle, refusal: Refusal, asked: Vector) -> Refusal:
    axis, free = cycle.snapshot.axis, cycle.free()
    short = np.flatnonzero(asked > free).tolist()
    short = [i for i in short if axis.names[i] != PODS] or short  # else it says little
    if not short:
        return refusal
    total, going = cycle.snapshot.total, cycle.terminating()
    lacks = tuple(
        Shortfall(
            axis.names[i], int(asked[i]), int(free[i]), int(total[i]), terminating=int(going[i])
        )
        for i in short
    )
    holders = cycle.holders.most(None, lacks[0].resource) if cycle.holders is not None else ()
    return replace(refusal, shortfalls=lacks, holders=holders)


def _of_limit(refusal: Refusal, axis: ResourceAxis, *, asked: Vector, taken: Vector) -> Refusal:
    """``refusal`` by a limit on sums, as it was before the gang's first members went in."""

    def whole(lack: Shortfall) -> Shortfall:
        at = axis.index[lack.resource]
        return replace(lack, asked=int(asked[at]), free=lack.free + int(taken[at]))

    lacks = tuple(whole(lack) for lack in refusal.shortfalls)
    return replace(refusal, shortfalls=lacks) if all(s.asked > s.free for s in lacks) else refusal


def of_member(cycle: Cycle, gang: Gang, refusal: Refusal) -> Refusal:
    """``refusal`` of a member, said of its gang."""
    if refusal.cause is not Cause.NOT_ENOUGH_RESOURCES:
        return with_kept(cycle, gang, refusal)
    if refusal.never is not None:
        return replace(refusal, where=gang.key)
    index, going = cycle.snapshot.axis.index, cycle.terminating()
    lacks = tuple(
        replace(lack, terminating=int(going[index[lack.resource]])) for lack in refusal.shortfalls
    )
    return replace(refusal, where=gang.key, shortfalls=lacks)


def with_kept(cycle: Cycle, gang: Gang, refusal: Refusal) -> Refusal:
    """``refusal``, and the other gang that its queue keeps the rest of a limit for, until when."""
    if refusal.cause not in OF_QUEUES or refusal.note:
        return refusal
    index, short = cycle.snapshot.axis.index, [lack.resource for lack in refusal.shortfalls]
    for other, asked, until in cycle.kept_in(QueueName(refusal.where)):
        amounts = [(name, int(asked[index[name]])) for name in short if asked[index[name]]]
        if other.key != gang.key and (amounts or not short):
            told = "".join(f" ({name} {amount_text(name, n)})" for name, n in amounts[:1])
            then = instant_text(until)
            note = f"the rest is kept for {other.called}{told}, which has waited long, until {then}"
            return replace(refusal, note=note)
    return refusal


def too_few(gang: Gang) -> Refusal:
    """The refusal of a gang that has too few members that could be placed."""
    refusal = validity(gang)
    if refusal is not None:
        return refusal
    if gang.counts.gated:
        return behind_gates(gang, able=gang.able)
    numbers = Shortfall(PODS, asked=gang.min_member, free=gang.able)
    return Refusal(Cause.NOT_ENOUGH_TASKS, where=gang.key, shortfalls=(numbers,))


def kept_back(gang: Gang) -> Refusal:
    """The refusal of a gang that has its minimum and that a plugin does not let go."""
    return Refusal(
        Cause.NOT_ENOUGH_TASKS, where=gang.key, detail="a plugin does not call the group ready"
    )


def not_taken_up(gang: Gang, *, admitted: bool) -> Refusal:
    """The refusal of a gang that none of the configured actions looked at."""
    if not admitted:
        return Refusal(Cause.NOT_ADMITTED, where=gang.key)
    return Refusal(
        Cause.NOT_ADMITTED,
        where=gang.key,
        detail="no action of this cycle places these members (see `actions`)",
    )
