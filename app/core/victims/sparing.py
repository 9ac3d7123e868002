"""Which units of a set can be spared, and why the others cannot.

Units go back one by one, those that cost the most first. As what has no room with some units gone
has none with fewer gone, each is asked about once.
"""

from collections.abc import Collection, Sequence

import numpy as np

from app.core.victims.bounds import Counts, places_on
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import Bound, BoundKind, Places, Solution, Witness, WitnessKind
from app.core.victims.stock import Stock
from app.core.victims.units import cost_of
from app.model.resources import Matrix

_STEPS = 200
"""Of the search for a packing without one unit."""


class Tally:
    """What is free, and how many places nodes have, while some of the ``chosen`` units stay."""

    def __init__(self, stock: Stock, chosen: Collection[int]) -> None:
        self.left = set(chosen)
        self._stock = stock
        self._wanted = stock.wanted
        self._free: Matrix = stock.free_without(stock.flags(chosen))
        self._places = [places_on(self._free, each) for each in self._wanted]

    def bounds(self) -> dict[int, Bound]:
        """For each unit the bound that is exceeded when it alone stays, if one is."""
        entries = self._stock.by_unit
        those = np.flatnonzero(self._stock.flags(self.left)[entries.units])
        units, nodes = entries.units[those], entries.nodes[those]
        free = self._free[nodes] - entries.amounts[those]
        found: dict[int, Bound] = {}
        for at, each in enumerate(self._wanted):
            fewer = self._places[at][nodes] - places_on(free, each.on(nodes))
            lost: Counts = np.zeros(len(self._stock.problem.units), dtype=np.int64)
            np.add.at(lost, units, fewer)
            there = int(self._places[at].sum()) - lost
            for unit in np.flatnonzero((there < each.count) & (lost > 0)).tolist():
                bound = Bound(BoundKind.PLACES, at, -1, each.count, int(there[unit]))
                found.setdefault(unit, bound)
        for entry in np.flatnonzero((nodes >= self._stock.limits.start) & (free < 0).any(axis=1)):
            exceeded = self._stock.exceeded_limit(self.free_without(int(units[entry])))
            if exceeded is not None:
                found.setdefault(int(units[entry]), exceeded)
        return found

    def is_bound(self, unit: int) -> bool:
        """Whether a bound is exceeded when ``unit`` stays."""
        entries = self._stock.by_unit.of(unit)
        nodes = self._stock.by_unit.nodes[entries]
        free = self._free[nodes] - self._stock.by_unit.amounts[entries]
        for places, each in zip(self._places, self._wanted, strict=True):
            there = int(places.sum()) - int(places[nodes].sum())
            if there + int(places_on(free, each.on(nodes)).sum()) < each.count:
                return True
        return bool((free[nodes >= self._stock.limits.start] < 0).any())

    def free_without(self, unit: int) -> Matrix:
        """What is free of all nodes when ``unit`` stays, shape ``(N, R)``."""
        entries = self._stock.by_unit.of(unit)
        free = self._free.copy()
        free[self._stock.by_unit.nodes[entries]] -= self._stock.by_unit.amounts[entries]
        return free

    def give_back(self, unit: int) -> None:
        """Let ``unit`` stay."""
        self.left.remove(unit)
        nodes = self._stock.by_unit.nodes[self._stock.by_unit.of(unit)]
        self._free = self.free_without(unit)
        for places, each in zip(self._places, self._wanted, strict=True):
            places[nodes] = places_on(self._free[nodes], each.on(nodes))

    def doubtful(self) -> list[int]:
        """The units that no bound needs, the one that is spared most gladly first.

        A unit that a bound needs is needed all the more when others come back.
        """
        units, needed = self._stock.problem.units, self.bounds()
        return sorted(
            (unit for unit in self.left if unit not in needed),
            key=lambda at: (cost_of((units[at],)), at),
            reverse=True,
        )


def without_needless(stock: Stock, chosen: Sequence[int]) -> list[int]:
    """``chosen`` units without those that all members have room without, as far as it shows."""
    tally = Tally(stock, chosen)
    for unit in tally.doubtful():
        if not tally.is_bound(unit) and _is_packed(stock, tally.free_without(unit)):
            tally.give_back(unit)
    return [unit for unit in chosen if unit in tally.left]


def _is_packed(stock: Stock, free: Matrix) -> bool:
    wanted = stock.wanted
    return len(wanted) == 1 or not isinstance(pack(free, wanted, Steps(_STEPS)), NotPacked)


def settled(stock: Stock, chosen: Sequence[int], places: Places) -> Solution:
    """The solution of ``chosen`` units, which have been proven, without those that can be spared.

    Where no bound needs a unit the planner is asked whether it finds places without it.
    """
    problem, tally = stock.problem, Tally(stock, chosen)
    for unit in tally.doubtful():
        if tally.is_bound(unit):
            continue
        packed = pack(tally.free_without(unit), stock.wanted, Steps(_STEPS))
        if packed is NotPacked.IMPOSSIBLE:
            continue
        hint = packed if isinstance(packed, tuple) else None
        rest = [other for other in chosen if other in tally.left and other != unit]
        found = problem.prove(stock.units(rest), hint)
        if found is not None:
            places = found
            tally.give_back(unit)
    order, bounds = [unit for unit in chosen if unit in tally.left], tally.bounds()
    return Solution(
        units=tuple(stock.units(order)),
        places=places,
        witnesses=tuple(
            Witness(WitnessKind.BOUND, bounds[unit])
            if unit in bounds
            else Witness(WitnessKind.PLANNER)
            for unit in order
        ),
        exact=False,
    )
