"""The cheapest set of a few units: all sets in the order of their costs.

A set is a number whose bit ``u`` stands for unit ``u``. Of sets that cost the same the smallest
number is tried first: its units are those that are preferred as victims.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.core.victims.bounds import Counts, first_bound, places_on
from app.core.victims.covers import subset_sums
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import (
    NoSolution,
    Places,
    Solution,
    Wanted,
    Witness,
    WitnessKind,
)
from app.core.victims.stock import Stock
from app.core.victims.units import NO_PRIORITY, Unit
from app.model.resources import Matrix

MOST_UNITS = 12
_STEPS = 20_000
_MOST_PROOFS = 256
Sets = NDArray[np.int64]


def solve_exactly(stock: Stock) -> Solution | NoSolution | None:
    """The cheapest compatible set with a placement, of at most :data:`MOST_UNITS` units.

    As far as room is concerned that is exact. Sets that ``prove`` refuses are passed over; after
    too many of them the search ends with None.
    """
    problem, steps = stock.problem, Steps(_STEPS)
    refused: list[int] = []
    forbidden: list[int] = []
    for number in _in_order(stock, forbidden):
        chosen = _chosen(problem.units, number)
        free = stock.free_without(_flags(number, len(problem.units)))
        packed = pack(free, stock.wanted, steps)
        if packed is NotPacked.IMPOSSIBLE:
            continue
        hint = packed if isinstance(packed, tuple) else None
        places = problem.prove(chosen, hint)
        if places is not None:
            found = _solution(stock, number, places=places, refused=refused)
            return replace(found, forbidden=tuple(_positions(each) for each in forbidden))
        refused.append(number)
        if len(refused) >= _MOST_PROOFS:
            return None
    return NoSolution()


def _in_order(stock: Stock, forbidden: list[int]) -> Iterator[int]:
    """Compatible sets that exceed no bound on places, the cheapest first.

    Those that are not compatible are ``forbidden``.
    """
    problem, units = stock.problem, stock.problem.units
    sets = np.arange(1 << len(units), dtype=np.int64)
    sets = sets[_is_sensible(sets, units)]
    sets = sets[_have_places(sets, stock)]
    sets = sets[_order(sets, units)]
    while len(sets):
        number = int(sets[0])
        sets = sets[1:]
        if problem.compatible(_chosen(units, number)):
            yield number
        else:
            forbidden.append(number)
            sets = sets[(sets & number) != number]


def _is_sensible(sets: Sets, units: Sequence[Unit]) -> NDArray[np.bool_]:
    """Whether no unit is part of another one, and no gang loses more than it can spare."""
    sensible = np.ones(len(sets), dtype=np.bool_)
    singles: dict[object, list[int]] = {}
    for at, unit in enumerate(units):
        if not unit.whole:
            singles.setdefault(unit.gang, []).append(at)
    for mine in singles.values():
        together = np.sum([_bit(sets, at) for at in mine], axis=0)
        sensible &= together <= units[mine[0]].spare
    for at, unit in enumerate(units):
        if unit.whole and unit.gang in singles:
            parts = sum(1 << single for single in singles[unit.gang])
            sensible &= (_bit(sets, at) == 0) | ((sets & parts) == 0)
    return sensible


def _bit(sets: Sets, at: int) -> Sets:
    return (sets >> at) & 1


def _order(sets: Sets, units: Sequence[Unit]) -> NDArray[np.intp]:
    """The positions of ``sets`` by cost, and by number."""
    gangs, lost, pods = (np.zeros(len(sets), dtype=np.int64) for _ in range(3))
    priority = np.full(len(sets), NO_PRIORITY, dtype=np.int64)
    for at, unit in enumerate(units):
        there = _bit(sets, at)
        gangs += there * unit.whole
        lost += there * unit.lost
        pods += there * len(unit.pods)
        priority = np.where(there, np.maximum(priority, unit.priority), priority)
    return np.lexsort((sets, pods, lost, priority, gangs))


def _have_places(sets: Sets, stock: Stock) -> NDArray[np.bool_]:
    """Whether nodes have enough places for each shape by itself, node by node for all sets."""
    enough = np.ones(len(sets), dtype=np.bool_)
    by_node = stock.by_node
    touched = np.unique(by_node.nodes)
    others = np.ones(len(stock.room), dtype=np.bool_)
    others[touched] = False
    there = [
        np.full(len(sets), int(places_on(stock.room, each)[others].sum()), dtype=np.int64)
        for each in stock.wanted
    ]
    for node in touched.tolist():
        entries = by_node.of(node)
        part = _part_of(sets, by_node.units[entries].tolist())
        free = stock.room[node] + subset_sums(by_node.amounts[entries])
        if node >= stock.limits.start:
            enough &= (free >= 0).all(axis=1)[part]
        for places, each in zip(there, stock.wanted, strict=True):
            places += _places_on_one(free, each, node)[part]
    for places, each in zip(there, stock.wanted, strict=True):
        enough &= places >= each.count
    return enough


def _part_of(sets: Sets, units: Sequence[int]) -> Sets:
    """The part of each set that is in ``units``, as a number by their positions there."""
    parts = np.zeros(len(sets), dtype=np.int64)
    for at, unit in enumerate(units):
        parts |= _bit(sets, unit) << at
    return parts


def _places_on_one(free: Matrix, wanted: Wanted, node: int) -> Counts:
    """Places on one node for each row of ``free``."""
    mask = np.full(len(free), wanted.mask[node])
    return places_on(free, Wanted(mask, wanted.request, wanted.count, wanted.per_node))


def _chosen(units: Sequence[Unit], number: int) -> tuple[Unit, ...]:
    return tuple(unit for at, unit in enumerate(units) if number >> at & 1)


def _positions(number: int) -> tuple[int, ...]:
    return tuple(at for at in range(MOST_UNITS) if number >> at & 1)


def _flags(number: int, count: int) -> NDArray[np.bool_]:
    return np.array([number >> at & 1 for at in range(count)], dtype=np.bool_)


def _solution(stock: Stock, number: int, *, places: Places, refused: Sequence[int]) -> Solution:
    problem = stock.problem
    witnesses: list[Witness] = []
    for at in range(len(problem.units)):
        if not number >> at & 1:
            continue
        rest = _flags(number & ~(1 << at), len(problem.units))
        free = stock.free_without(rest)
        bound = first_bound(free, stock.wanted) or stock.exceeded_limit(free)
        if bound is not None:
            witnesses.append(Witness(WitnessKind.BOUND, bound))
        elif any(not other >> at & 1 for other in refused):
            witnesses.append(Witness(WitnessKind.PLANNER))
        else:
            witnesses.append(Witness(WitnessKind.EXHAUSTIVE))
    chosen = _chosen(problem.units, number)
    return Solution(chosen, places, tuple(witnesses), exact=not refused)
