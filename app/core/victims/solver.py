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

from app.core.victims.bounds import first_bound, have_places
from app.core.victims.exhaustive import MOST_UNITS, solve_exactly
from app.core.victims.freed import Freed
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import Bound, NoSolution, Problem, Solution, Wanted
from app.core.victims.sparing import settled, without_needless
from app.core.victims.units import Unit
from app.model.resources import Mask, Matrix
from app.model.running import Running

_STEPS = 2_000


def bound_on(
    running: Running, room: Matrix, wanted: Sequence[Wanted], *, may_go: Mask
) -> Bound | None:
    """Why ``wanted`` has no room even when all pods that ``may_go`` (shape ``(P,)``) are gone.

    None: it may have. ``room`` is the future idle room before, shape ``(N, R)``.
    """
    goes = may_go & ~running.releasing & (running.nodes < len(room))
    free = room.copy()
    np.add.at(free, running.nodes[goes], running.requests[goes])
    return first_bound(free, wanted)


def solve(problem: Problem) -> Solution | NoSolution:
    """The units to evict, or why there are none."""
    gone = np.zeros(len(problem.running), dtype=np.bool_)
    for unit in problem.units:
        gone[list(unit.pods)] = True
    bound = bound_on(problem.running, problem.room, problem.wanted, may_go=gone)
    if bound is not None:
        return NoSolution(bound)
    freed = Freed.of(problem.units, problem.running, nodes=len(problem.room))
    if len(problem.units) <= MOST_UNITS:
        return solve_exactly(problem, freed)
    return _first_that_fit(problem, freed)


def _first_that_fit(problem: Problem, freed: Freed) -> Solution | NoSolution:
    """Units in their order until all members have room, without those that are not needed."""
    chosen: list[int] = []
    for at, unit in enumerate(problem.units):
        those = _with(problem.units, chosen, at)
        if unit.spare and sum(problem.units[one].gang == unit.gang for one in chosen) >= unit.spare:
            continue
        if not problem.compatible([problem.units[one] for one in those]):
            continue
        chosen = those
        flags = np.zeros(len(problem.units), dtype=np.bool_)
        flags[chosen] = True
        free = problem.room + freed.by(flags, nodes=len(problem.room))
        if not have_places(free, problem.wanted):
            continue
        needed = without_needless(problem, freed, chosen)
        flags[:] = False
        flags[needed] = True
        free = problem.room + freed.by(flags, nodes=len(problem.room))
        packed = pack(free, problem.wanted, Steps(_STEPS))
        hint = None if isinstance(packed, NotPacked) else packed
        places = problem.prove([problem.units[one] for one in needed], hint)
        if places is not None:
            return settled(problem, freed, needed, places)
    return NoSolution()


def _with(units: Sequence[Unit], chosen: Sequence[int], at: int) -> list[int]:
    """``chosen`` and one more unit; a whole gang takes the place of its members."""
    if not units[at].whole:
        return [*chosen, at]
    return [*(one for one in chosen if units[one].gang != units[at].gang), at]
