"""Which units of a set can be spared, and why the others cannot.

Units go back one by one, those that cost the most first. As what has no room with some units gone
has none with fewer gone, each is asked about once. A set of units that has been found is good
enough when the trials for that end: a gang whose members are all different has them for few units.
"""

from collections.abc import Collection, Sequence

import numpy as np

from app.core.victims.bounds import Counts, places_on
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import Bound, BoundKind, Places, Solution, Witness, WitnessKind
from app.core.victims.stock import Stock
from app.core.victims.units import cost_of
from app.model.resources import Matrix, Rows

_STEPS = 200
"""Of the search for a packing without one unit."""
_MOST_LOOKS = 4_000_000
"""Shapes of members times nodes that are looked at to spare units of one set, a second or two."""
_LEAST_NODES = 1_000
"""A trial takes as long on fewer nodes, as packings are searched for there."""


class Trials:
    """How many more units are tried to be spared where members have several shapes."""

    def __init__(self, stock: Stock) -> None:
        looks = max(len(stock.wanted), 1) * max(len(stock.room), _LEAST_NODES)
        self._left = max(_MOST_LOOKS // looks, 1)

    def take(self) -> bool:
        """Take one, if any is left."""
        self._left -= 1
        return self._left >= 0


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
        nodes, free = self._with(unit)
        for places, each in zip(self._places, self._wanted, strict=True):
            there = int(places.sum()) - int(places[nodes].sum())
            if there + int(places_on(free, each.on(nodes)).sum()) < each.count:
                return True
        return bool((free[nodes >= self._stock.limits.start] < 0).any())

    def free_without(self, unit: int) -> Matrix:
        """What is free of all nodes when ``unit`` stays, shape ``(N, R)``."""
        free = self._free.copy()
        nodes, there = self._with(unit)
        free[nodes] = there
        return free

    def _with(self, unit: int) -> tuple[Rows, Matrix]:
        """The nodes that ``unit`` has pods on, and what is free of each when it stays."""
        entries = self._stock.by_unit.of(unit)
        nodes = self._stock.by_unit.nodes[entries]
        return nodes, self._free[nodes] - self._stock.by_unit.amounts[entries]

    def spares(self, unit: int, places: Places) -> bool:
        """Whether there is room for members at ``places`` also when ``unit`` stays."""
        nodes, free = self._with(unit)
        taken = np.zeros_like(free)
        for rows, each in zip(places, self._wanted, strict=True):
            there = np.bincount(np.asarray(rows, dtype=np.intp), minlength=len(self._free))
            taken += there[nodes, None] * each.request
        return bool(((free >= taken) | (taken == 0)).all())

    def give_back(self, unit: int) -> None:
        """Let ``unit`` stay."""
        self.left.remove(unit)
        nodes, free = self._with(unit)
        self._free[nodes] = free
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


def without_needless(stock: Stock, chosen: Sequence[int], trials: Trials) -> list[int]:
    """``chosen`` units without those that all members have room without, as far as it shows."""
    tally = Tally(stock, chosen)
    places: Places | NotPacked = NotPacked.UNKNOWN
    for unit in tally.doubtful():
        if tally.is_bound(unit):
            continue
        if len(stock.wanted) > 1 and (
            isinstance(places, NotPacked) or not tally.spares(unit, places)
        ):
            if not trials.take():
                break
            found = pack(tally.free_without(unit), stock.wanted, Steps(_STEPS))
            if isinstance(found, NotPacked):
                continue
            places = found
        tally.give_back(unit)
    return [unit for unit in chosen if unit in tally.left]


def settled(stock: Stock, chosen: Sequence[int], places: Places) -> Solution:
    """The solution of ``chosen`` units, which have been proven, without those that can be spared.

    Where no bound needs a unit the planner is asked whether it finds places without it.
    """
    problem, tally, trials = stock.problem, Tally(stock, chosen), Trials(stock)
    untried: set[int] = set()
    doubtful = tally.doubtful()
    for number, unit in enumerate(doubtful):
        if tally.is_bound(unit):
            continue
        if not trials.take():
            untried.update(doubtful[number:])
            break
        packed: Places | NotPacked = places
        if not tally.spares(unit, places):
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
        witnesses=tuple(_witness(bounds.get(unit), tried=unit not in untried) for unit in order),
        exact=False,
    )


def _witness(bound: Bound | None, *, tried: bool) -> Witness:
    if bound is not None:
        return Witness(WitnessKind.BOUND, bound)
    return Witness(WitnessKind.PLANNER if tried else WitnessKind.UNTRIED)
