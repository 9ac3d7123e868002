"""Refusals in the numbers of a gang.

A member that does not fit tells about itself and single nodes. What people want to know of a gang
is what its minimum asks for, what is free in the cluster, and who holds the rest; the verdicts on
the nodes stay with it. When there is room enough in sum but not where it is needed, the member's
own numbers say more.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.core.actions.cycle import Cycle
from app.core.actions.futility import Failure
from app.core.plugins.gang import validity
from app.model.gang import Gang, Task
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import PODS

_OF_NODES = frozenset({Cause.NOT_ENOUGH_RESOURCES, Cause.NO_NODE_FITS, Cause.VETOED})


def of_minimum(cycle: Cycle, gang: Gang, failure: Failure, *, wanted: Sequence[Task]) -> Refusal:
    """Why ``gang`` does not get its minimum: the ``wanted`` members, of which some fit."""
    refusal = replace(of_member(gang, failure.refusal), lacking=len(wanted) - failure.placed)
    if refusal.cause is not Cause.NOT_ENOUGH_RESOURCES:
        return refusal
    axis, free = cycle.snapshot.axis, cycle.free()
    asked = sum((task.request for task in wanted), np.zeros_like(free))
    short = [i for i in np.flatnonzero(asked > free).tolist() if axis.names[i] != PODS]
    if not short:
        return refusal
    total = cycle.snapshot.table.total
    lacks = tuple(
        Shortfall(axis.names[i], int(asked[i]), int(free[i]), int(total[i])) for i in short
    )
    holders = cycle.holders.most(None, lacks[0].resource) if cycle.holders is not None else ()
    return replace(refusal, shortfalls=lacks, holders=holders)


def of_member(gang: Gang, refusal: Refusal) -> Refusal:
    """``refusal`` of a member, said of its gang."""
    if refusal.cause is Cause.NOT_ENOUGH_RESOURCES:
        return replace(refusal, where=gang.key)
    return refusal


def too_few(gang: Gang) -> Refusal:
    """The refusal of a gang that has too few members that could be placed."""
    refusal = validity(gang)
    if refusal is not None:
        return refusal
    able = gang.counts.ready + len(gang.waiting)
    numbers = Shortfall(PODS, asked=gang.min_member, free=able)
    cause = Cause.GATED if gang.counts.gated else Cause.NOT_ENOUGH_TASKS
    return Refusal(cause, where=gang.key, shortfalls=(numbers,))


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
