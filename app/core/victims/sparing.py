"""Which units of a set can be spared, and why the others cannot.

Units go back one by one, those that cost the most first. As what has no room with some units gone
has none with fewer gone, each is asked about once.
"""

from collections.abc import Collection, Sequence

import numpy as np

from app.core.victims.bounds import places_on
from app.core.victims.freed import Freed
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import (
    Bound,
    BoundKind,
    Places,
    Problem,
    Solution,
    Wanted,
    Witness,
    WitnessKind,
)
from app.core.victims.units import Unit, cost_of
from app.model.resources import Matrix, Rows

_STEPS = 200
"""Of the search for a packing without one unit."""


class Tally:
    """What is free, and how many places nodes have, while units go and come back."""

    def __init__(self, problem: Problem, freed: Freed, chosen: Collection[int]) -> None:
        self._wanted = problem.wanted
        self._freed = freed
        flags = np.zeros(len(problem.units), dtype=np.bool_)
        flags[list(chosen)] = True
        self.free: Matrix = problem.room + freed.by(flags, nodes=len(problem.room))
        places = [places_on(self.free, each) for each in problem.wanted]
        self._totals = [int(each.sum()) for each in places]
        self._places = places

    def bound_without(self, unit: int) -> Bound | None:
        """The bound that is exceeded when ``unit`` stays; None: there are places enough."""
        nodes, free = self._without(unit)
        for at, each in enumerate(self._wanted):
            there = self._totals[at] - int(self._places[at][nodes].sum())
            there += int(places_on(free, _on(each, nodes)).sum())
            if there < each.count:
                return Bound(BoundKind.PLACES, at, -1, each.count, there)
        return None

    def free_without(self, unit: int) -> Matrix:
        """What is free of all nodes when ``unit`` stays, shape ``(N, R)``."""
        nodes, there = self._without(unit)
        free = self.free.copy()
        free[nodes] = there
        return free

    def give_back(self, unit: int) -> None:
        """Let ``unit`` stay."""
        nodes, free = self._without(unit)
        self.free[nodes] = free
        for at, each in enumerate(self._wanted):
            places = self._places[at]
            self._totals[at] -= int(places[nodes].sum())
            places[nodes] = places_on(free, _on(each, nodes))
            self._totals[at] += int(places[nodes].sum())

    def _without(self, unit: int) -> tuple[Rows, Matrix]:
        """The nodes of ``unit``, and what is free there when it stays."""
        first, last = self._freed.starts[unit], self._freed.starts[unit + 1]
        nodes = self._freed.nodes[first:last]
        return nodes, self.free[nodes] - self._freed.amounts[first:last]


def _on(wanted: Wanted, nodes: Rows) -> Wanted:
    return Wanted(wanted.mask[nodes], wanted.request, wanted.count, wanted.per_node)


def costliest_first(units: Sequence[Unit], chosen: Collection[int]) -> list[int]:
    """``chosen`` positions in ``units``, the one that is spared most gladly in front."""
    return sorted(chosen, key=lambda at: (cost_of((units[at],)), at), reverse=True)


def without_needless(problem: Problem, freed: Freed, chosen: Collection[int]) -> list[int]:
    """``chosen`` units without those that all members have room without, as far as it shows."""
    tally = Tally(problem, freed, chosen)
    kept: list[int] = []
    for unit in costliest_first(problem.units, chosen):
        if tally.bound_without(unit) is None and _is_packed(problem, tally.free_without(unit)):
            tally.give_back(unit)
        else:
            kept.append(unit)
    return sorted(kept)


def _is_packed(problem: Problem, free: Matrix) -> bool:
    if len(problem.wanted) == 1:
        return True
    return not isinstance(pack(free, problem.wanted, Steps(_STEPS)), NotPacked)


def settled(problem: Problem, freed: Freed, chosen: Collection[int], places: Places) -> Solution:
    """The solution of ``chosen`` units, which have been proven, without those that can be spared.

    Where no bound needs a unit the planner is asked whether it finds places without it.
    """
    tally = Tally(problem, freed, chosen)
    left = set(chosen)
    for unit in costliest_first(problem.units, chosen):
        if tally.bound_without(unit) is not None:
            continue
        packed = pack(tally.free_without(unit), problem.wanted, Steps(_STEPS))
        if packed is NotPacked.IMPOSSIBLE:
            continue
        hint = packed if isinstance(packed, tuple) else None
        rest = [problem.units[at] for at in sorted(left - {unit})]
        found = problem.prove(rest, hint)
        if found is not None:
            places = found
            left.remove(unit)
            tally.give_back(unit)
    order = sorted(left)
    bounds = [tally.bound_without(unit) for unit in order]
    return Solution(
        units=tuple(problem.units[at] for at in order),
        places=places,
        witnesses=tuple(
            Witness(WitnessKind.PLANNER) if bound is None else Witness(WitnessKind.BOUND, bound)
            for bound in bounds
        ),
        exact=False,
    )
