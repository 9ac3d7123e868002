"""Victims among many units: level by level, and on each the cheapest set that was found.

Ending a gang costs more than any priority, and a higher priority more than any lost work. So at
first only units that end no gang are allowed, up to the lowest priority whose room may be enough;
each further level allows more.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from app.core.victims.nodewise import NodeWise
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import NoSolution, Places, Solution
from app.core.victims.sparing import settled, without_needless
from app.core.victims.stock import Stock
from app.core.victims.units import Unit
from app.model.ids import GroupKey
from app.model.resources import Mask

_STEPS = 2_000


def search(stock: Stock) -> Solution | NoSolution:
    """A set of units that none can be spared from, or nothing where none was found."""
    for allowed in _levels(stock):
        chosen = _cheapest(stock, allowed)
        places = None if chosen is None else _proven(stock, chosen)
        if chosen is None or places is None:
            chosen, places = _as_planned(stock, allowed)
        if chosen is not None and places is not None:
            return settled(stock, chosen, places)
    return NoSolution()


def _levels(stock: Stock) -> Iterator[Mask]:
    """What is allowed on each level, shape ``(U,)``, where the room of all may be enough."""
    ends = stock.costs[:, 0] > 0
    steps = [~ends & (stock.priorities <= upto) for upto in np.unique(stock.priorities[~ends])]
    first, last = 0, len(steps)
    while first < last:
        middle = (first + last) // 2
        if stock.has_places(stock.free_without(steps[middle])):
            last = middle
        else:
            first = middle + 1
    yield from steps[first:]
    if ends.any():
        yield np.ones(len(ends), dtype=np.bool_)


def _cheapest(stock: Stock, allowed: Mask) -> list[int] | None:
    """The cheapest compatible set with room that was found, None: none was."""
    best = _found(stock, allowed)
    while best is not None and (cost := stock.cost(best)).gangs:
        other = _found(stock, allowed & (stock.priorities < cost.priority))
        if other is None or stock.cost(other) >= cost:
            break
        best = other
    return best


def _found(stock: Stock, allowed: Mask) -> list[int] | None:
    alone = sum(each.count for each in stock.wanted) <= 1
    ways = (False,) if alone else (False, True)
    tried = [_one_way(stock, allowed, shared=shared) for shared in ways]
    found = [chosen for chosen in tried if chosen is not None]
    return min(found, key=lambda chosen: (stock.cost(chosen), chosen), default=None)


def _one_way(stock: Stock, allowed: Mask, *, shared: bool) -> list[int] | None:
    for careful in (False, True):
        chosen = NodeWise(stock, allowed, shared=shared, careful=careful).run()
        if chosen is None:
            return None
        chosen = without_needless(stock, chosen)
        if careful or stock.problem.compatible(stock.units(chosen)):
            return chosen
    return None


def _proven(stock: Stock, chosen: Sequence[int]) -> Places | None:
    free = stock.free_without(stock.flags(chosen))
    packed = pack(free, stock.wanted, Steps(_STEPS))
    hint = None if isinstance(packed, NotPacked) else packed
    return stock.problem.prove(stock.units(chosen), hint)


def _as_planned(stock: Stock, allowed: Mask) -> tuple[list[int] | None, Places | None]:
    """What is needed for the places that the planner gives when all that may go is gone.

    So it is where rules beside room decide which nodes will do. Where room is not all that victims
    free, more of them go, the cheapest first, until the planner agrees.
    """
    everything = _everything(stock, allowed)
    if not stock.has_places(stock.free_without(stock.flags(everything))):
        return None, None
    places = _proven(stock, everything)
    if places is None:
        return None, None
    chosen = NodeWise(stock, stock.flags(everything)).make_room_at(places)
    if chosen is None:
        return None, None
    more = sorted(set(everything).difference(chosen), key=lambda at: (stock.cost((at,)), at))
    first, last = 0, len(more)
    while first < last:
        middle = (first + last) // 2
        found = stock.problem.prove(stock.units([*chosen, *more[:middle]]), places)
        if found is None:
            first = middle + 1
        else:
            last, places = middle, found
    return sorted([*chosen, *more[:last]]), places


def all_together(stock: Stock) -> list[Unit]:
    """As many units as may go together, in their order."""
    return stock.units(_everything(stock, np.ones(len(stock.problem.units), dtype=np.bool_)))


def _everything(stock: Stock, allowed: Mask) -> list[int]:
    """As many of the allowed units as may go together: whole gangs first, else by their order."""
    units = stock.problem.units
    may_go = np.flatnonzero(allowed).tolist()
    chosen = _grown(stock, [], [at for at in may_go if units[at].whole])
    whole = {units[at].gang for at in chosen}
    left: dict[GroupKey, int] = {}
    rest: list[int] = []
    for at in may_go:
        unit = units[at]
        spare = left.setdefault(unit.gang, unit.spare)
        if unit.whole or unit.gang in whole or spare <= 0:
            continue
        left[unit.gang] = spare - 1
        rest.append(at)
    return sorted(_grown(stock, chosen, rest))


def _grown(stock: Stock, chosen: list[int], more: list[int]) -> list[int]:
    """``chosen`` units and as many ``more`` as may go with them."""
    both = [*chosen, *more]
    if not more or stock.problem.compatible(stock.units(both)):
        return both
    if len(more) == 1:
        return chosen
    half = len(more) // 2
    return _grown(stock, _grown(stock, chosen, more[:half]), more[half:])
