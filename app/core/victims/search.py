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
from app.core.victims.sparing import Trials, settled, without_needless
from app.core.victims.stock import Stock
from app.core.victims.units import Unit
from app.model.resources import Mask

_STEPS = 2_000
_MOST_TRIES = 16
"""So many units that others keep out are given the first turn, one after another."""
_MOST_UNITS_TRIED = 20_000


def search(stock: Stock) -> Solution | NoSolution:
    """A set of units that none can be spared from as far as was tried, or nothing."""
    others: list[int] = []
    trials = Trials(stock)
    for allowed in _levels(stock):
        chosen = _cheapest(stock, allowed, trials)
        places = None if chosen is None else _proven(stock, chosen)
        if chosen is not None and places is not None:
            return settled(stock, chosen, places)
        everything, others = _everything(stock, allowed)
        found = _as_planned(stock, everything)
        if found is not None:
            return settled(stock, *found)
    tries = min(_MOST_TRIES, _MOST_UNITS_TRIED // max(len(stock.costs), 1))
    for unit in sorted(others, key=lambda at: -len(stock.problem.units[at].pods))[:tries]:
        everything, _ = _everything(stock, np.ones(len(stock.costs), dtype=np.bool_), first=unit)
        found = _as_planned(stock, everything)
        if found is not None:
            return settled(stock, *found)
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


def _cheapest(stock: Stock, allowed: Mask, trials: Trials) -> list[int] | None:
    """The cheapest compatible set with room that was found, None: none was."""
    best = _found(stock, allowed, trials)
    while best is not None and (cost := stock.cost(best)).gangs:
        other = _found(stock, allowed & (stock.priorities < cost.priority), trials)
        if other is None or stock.cost(other) >= cost:
            break
        best = other
    return best


def _found(stock: Stock, allowed: Mask, trials: Trials) -> list[int] | None:
    alone = sum(each.count for each in stock.wanted) <= 1
    ways = (False,) if alone else (False, True)
    free = {shared: NodeWise(stock, allowed, shared=shared).run() for shared in ways}
    sets = [sorted(chosen) for chosen in free.values() if chosen is not None]
    found = _cheapest_of(stock, sets, trials)
    if found is not None:
        return found
    careful: list[list[int]] = []
    for shared in (way for way, chosen in free.items() if chosen is not None):
        with stock.problem.together() as going:
            chosen = NodeWise(stock, allowed, shared=shared, going=going).run()
        careful += [] if chosen is None else [chosen]
    return _cheapest_of(stock, careful, trials)


def _cheapest_of(stock: Stock, sets: Sequence[Sequence[int]], trials: Trials) -> list[int] | None:
    """The cheapest of these sets that may go together, without what they have room without."""
    lean = [without_needless(stock, chosen, trials) for chosen in sets]
    lean.sort(key=lambda chosen: (stock.cost(chosen), chosen))
    may_go = (chosen for chosen in lean if stock.problem.compatible(stock.units(chosen)))
    return next(may_go, None)


def _proven(stock: Stock, chosen: Sequence[int]) -> Places | None:
    free = stock.free_without(stock.flags(chosen))
    packed = pack(free, stock.wanted, Steps(_STEPS))
    hint = None if isinstance(packed, NotPacked) else packed
    return stock.problem.prove(stock.units(chosen), hint)


def _as_planned(stock: Stock, everything: list[int]) -> tuple[list[int], Places] | None:
    """What is needed for the places that the planner gives when ``everything`` is gone.

    So it is where rules beside room decide which nodes will do. Where room is not all that victims
    free, more of them go, the cheapest first, until the planner agrees. None: it gives no places.
    """
    if not stock.has_places(stock.free_without(stock.flags(everything))):
        return None
    places = _proven(stock, everything)
    if places is None:
        return None
    chosen = NodeWise(stock, stock.flags(everything)).make_room_at(places)
    if chosen is None:
        return None
    more = sorted(set(everything).difference(chosen), key=lambda at: (stock.cost((at,)), at))
    first, last = 0, len(more)
    while first < last:
        middle = (first + last) // 2
        found = stock.problem.prove(stock.units([*chosen, *more[:middle]]), places)
        if found is None:
            first = middle + 1
        else:
            last, places = middle, found
    both = {*chosen, *more[:last]}
    return [at for at in everything if at in both], places


def all_together(stock: Stock) -> list[Unit]:
    """As many units as may go together, in an order in which they may."""
    return stock.units(_everything(stock, np.ones(len(stock.problem.units), dtype=np.bool_))[0])


def _everything(
    stock: Stock, allowed: Mask, *, first: int | None = None
) -> tuple[list[int], list[int]]:
    """As many of the allowed units as may go together, and those that might go in their stead.

    ``first`` is the first to go, then whole gangs go.
    """
    units = stock.problem.units
    alive = allowed.copy()
    if first is not None:
        mine = stock.of_gang[units[first].gang]
        alive[[at for at in mine if units[at].whole and at != first]] = False
    may_go = np.flatnonzero(alive).tolist()
    may_go.sort(key=lambda at: (at != first, not units[at].whole))
    refused: list[int] = []
    instead: list[int] = []
    left = dict(stock.spare)
    chosen: list[int] = []
    with stock.problem.together() as going:
        for at in may_go:
            unit = units[at]
            if alive[at] and not (unit.whole or left[unit.gang] > 0):
                instead.append(at)
                continue
            if alive[at] and going.take((unit,)) is None:
                chosen.append(at)
                left[unit.gang] = 0 if unit.whole else left[unit.gang] - 1
                continue
            if alive[at]:
                alive &= going.still_may()
            refused.append(at)
    return chosen, [*refused, *instead] if refused else []
