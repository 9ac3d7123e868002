"""Which units of victims go for a preemptor: the least that makes room for its whole minimum.

The cost of a set is lexicographic (:class:`~app.core.victims.units.SetCost`). Bounds come first:
where even the room of all units is too little the answer is no, without a search. Of a few units
the cheapest set is found. Of more, a set that no unit can be spared from; its cost is near the
least where rules about other pods do not matter.

How to ask: :func:`~app.core.victims.units.units_of` makes units of the pods that may go,
:func:`bound_on` says before that whether it is worth it, and :func:`solve` does the rest.
"""

from collections.abc import Sequence

import numpy as np

from app.core.victims.bounds import first_bound
from app.core.victims.exhaustive import MOST_UNITS, solve_exactly
from app.core.victims.problem import (
    Bound,
    BoundKind,
    Limit,
    NoSolution,
    Problem,
    Solution,
    Wanted,
)
from app.core.victims.search import search
from app.core.victims.stock import Stock, room_without
from app.model.resources import Mask, Matrix
from app.model.running import Running


def bound_on(
    running: Running,
    room: Matrix,
    wanted: Sequence[Wanted],
    *,
    may_go: Mask,
    limits: Sequence[Limit] = (),
) -> Bound | None:
    """Why ``wanted`` has no room even when all pods that ``may_go`` (shape ``(P,)``) are gone.

    None: it may have. ``room`` is the future idle room before, shape ``(N, R)``; the pods free what
    ``limits`` lack besides.
    """
    bound = first_bound(room_without(running, room, may_go), wanted)
    if bound is not None:
        return bound
    for at, limit in enumerate(limits):
        freed = running.requests[may_go & limit.counts].sum(axis=0)
        for resource in np.flatnonzero(freed < limit.short).tolist():
            short, there = int(limit.short[resource]), int(freed[resource])
            return Bound(BoundKind.LIMIT, at, resource, short, there)
    return None


def solve(problem: Problem) -> Solution | NoSolution:
    """The units to evict, or why there are none."""
    stock = Stock.of(problem)
    bound = first_bound(stock.everything, stock.wanted)
    bound = bound or stock.exceeded_limit(stock.everything)
    if bound is not None:
        return NoSolution(bound)
    found = solve_exactly(stock) if len(problem.units) <= MOST_UNITS else None
    return search(stock) if found is None else found
