"""A cheap set of many units, found node by node.

Members get places one after another: each on the node where the units that make room for it cost
the least, or for so many of them that each costs the least. What nodes cost is estimated for all
at once, by the cheapest units of each in turn; for the node that is taken the cheapest cover is
looked for. A gang that goes whole frees room on other nodes as well, which the next members take
first.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.core.victims.bounds import places_on
from app.core.victims.covers import cheap_cover
from app.core.victims.packing import largest_first, tightest_first
from app.core.victims.problem import Places, Together, Wanted
from app.core.victims.stock import Stock
from app.model.ids import GroupKey
from app.model.resources import Mask, Matrix, Rows, Vector

_NEVER = np.inf


class NodeWise:
    """One search: ``allowed`` units, shape ``(U,)``, may be chosen.

    ``shared``: the cost of a node is that of each place it is made to have, else that of the first
    one. ``going``: the rules about several victims are asked about each choice, as units go; None:
    the caller asks about the result.
    """

    def __init__(
        self, stock: Stock, allowed: Mask, *, shared: bool = False, going: Together | None = None
    ) -> None:
        self.chosen: dict[int, None] = {}
        self._stock = stock
        self._entries = stock.by_node
        self._costs = stock.costs[stock.by_node.units]
        self._shared = shared
        self._going = going
        self._alive = allowed.copy()
        self._free = stock.room.copy()
        self._spare = dict(stock.spare)

    def run(self) -> list[int] | None:
        """The units to evict, as they were chosen; None: it found no room for all members."""
        wanted = self._stock.wanted
        for at in largest_first(self._free, wanted):
            if not self._place(wanted[at]):
                return None
        return list(self.chosen) if self._keep_limits() else None

    def make_room_at(self, places: Places) -> list[int] | None:
        """The units to evict, as they were chosen, for just these places; None: they have none."""
        demand: dict[int, Vector] = {}
        for each, rows in zip(self._stock.wanted, places, strict=True):
            for row in rows:
                demand[row] = demand.get(row, 0) + each.request
        for row in sorted(demand):
            if not self._make_free(row, demand[row]):
                return None
            self._free[row] -= demand[row]
        return list(self.chosen) if self._keep_limits() else None

    def _keep_limits(self) -> bool:
        """Evict what limits lack besides."""
        rows = self._stock.limits
        nothing = np.zeros(self._free.shape[1], dtype=np.int64)
        return all(self._make_free(row, nothing) for row in range(rows.start, rows.stop))

    def _make_free(self, row: int, demand: Vector) -> bool:
        """Evict until so much is free there, as far as it is asked for."""
        while (short := self._short(row, demand)).any():
            cover = self._cover(row, short)
            if cover is None:
                return False
            self._evict_all(cover)
        return True

    def _short(self, row: int, demand: Vector) -> Vector:
        """What a node lacks of ``demand``, or a limit, shape ``(R,)``."""
        short: Vector = np.maximum(demand - self._free[row], 0)
        if row < self._stock.limits.start:
            short[demand <= 0] = 0
        return short

    def _place(self, wanted: Wanted) -> bool:
        """Make room for all members of one shape."""
        estimates = _Estimates(self._stock, wanted, shared=self._shared)
        left = wanted.count - self._take_all(wanted, estimates, wanted.count)
        estimates.of_all(self._free, self._alive, left)
        while left > 0:
            node = estimates.cheapest()
            if node is None:
                return False
            target = int(estimates.targets[node])
            cover = self._cover(node, self._short(node, wanted.request * target))
            if cover is None:
                estimates.forget(node)
                continue
            touched = self._evict_all(cover)
            if touched is None:
                estimates.of_all(self._free, self._alive, left)
                continue
            if len(touched) > 1:
                left -= self._take_all(wanted, estimates, left)
            else:
                left -= self._take_on(node, wanted, estimates, left)
            for row in touched:
                estimates.of_node(row, self._free[row], self._alive, left)
        return True

    def _take_all(self, wanted: Wanted, estimates: "_Estimates", count: int) -> int:
        """Give members the places that there are; how many got one."""
        places = np.minimum(places_on(self._free, wanted), estimates.most - estimates.taken)
        taken = tightest_first(places, count)
        self._free -= taken[:, None] * wanted.request
        estimates.taken += taken
        return int(taken.sum())

    def _take_on(self, node: int, wanted: Wanted, estimates: "_Estimates", count: int) -> int:
        """The same on one node, which the shape may go to."""
        free = self._free[node, estimates.asked] // estimates.request
        places = min(int(free.min(initial=count)), estimates.most - int(estimates.taken[node]))
        taken = max(min(places, count), 0)
        self._free[node] -= taken * wanted.request
        estimates.taken[node] += taken
        return taken

    # --- units -----------------------------------------------------------------------------------

    def _cover(self, node: int, short: Vector) -> list[int] | None:
        """The cheapest units found that free what ``node`` is ``short`` of; None: none do."""
        of = np.flatnonzero(short)
        short = short[of]
        entries = self._entries.of(node)
        amounts = self._entries.amounts[entries][:, of]
        helpful = self._alive[self._entries.units[entries]] & (amounts > 0).any(axis=1)
        at = self._within_spare(np.flatnonzero(helpful).tolist(), first=entries.start)
        amounts = amounts[at]
        if (amounts.sum(axis=0) < short).any():
            return None
        rows = cheap_cover(amounts, self._costs[entries][at], short)
        return [int(self._entries.units[entries.start + at[row]]) for row in rows]

    def _within_spare(self, at: Sequence[int], *, first: int) -> list[int]:
        """Of the entries ``first + at`` those that their gangs can spare together."""
        left: dict[GroupKey, int] = {}
        kept: list[int] = []
        for each in at:
            unit = self._stock.problem.units[self._entries.units[first + each]]
            if not unit.whole:
                spare = left.get(unit.gang, self._spare[unit.gang])
                if spare <= 0:
                    continue
                left[unit.gang] = spare - 1
            kept.append(each)
        return kept

    def _evict_all(self, cover: Sequence[int]) -> set[int] | None:
        """Choose these units, and tell the nodes that they are on.

        None: one of them may not go with the others. Neither it nor what may not go for the same
        reason is looked at again, as these may not go with more units either.
        """
        if self._going is not None:
            refused = self._going.take([self._stock.problem.units[unit] for unit in cover])
            if refused is not None:
                self._alive[cover[refused]] = False
                self._alive &= self._going.still_may()
                return None
        touched: set[int] = set()
        for unit in cover:
            if self._alive[unit]:
                touched |= self._evict(unit)
        return touched

    def _evict(self, unit: int) -> set[int]:
        """Choose one unit; a whole gang takes the place of its members."""
        one = self._stock.problem.units[unit]
        if one.whole:
            mine = self._stock.of_gang[one.gang]
            for part in self.chosen.keys() & set(mine):
                self._free_of(part, -1)
                del self.chosen[part]
            self._alive[mine] = False
        else:
            self._alive[unit] = False
            self._spare[one.gang] -= 1
            if self._spare[one.gang] <= 0:
                units = self._stock.problem.units
                mine = [at for at in self._stock.of_gang[one.gang] if not units[at].whole]
                self._alive[mine] = False
        self.chosen[unit] = None
        return set(self._free_of(unit, 1).tolist())

    def _free_of(self, unit: int, sign: int) -> Rows:
        entries = self._stock.by_unit.of(unit)
        nodes = self._stock.by_unit.nodes[entries]
        self._free[nodes] += sign * self._stock.by_unit.amounts[entries]
        return nodes


class _Estimates:
    """What it costs on each node to make room for members of one shape.

    A node is made to have ``targets`` places, shape ``(N,)``. Members that have got places so far
    are ``taken``, shape ``(N,)``; no node takes more than ``most``.
    """

    def __init__(self, stock: Stock, wanted: Wanted, *, shared: bool) -> None:
        count = len(stock.room)
        self.asked: Rows = np.flatnonzero(wanted.request > 0)
        self.request: Vector = wanted.request[self.asked]
        self.most = wanted.count if wanted.per_node is None else wanted.per_node
        self.taken: Vector = np.zeros(count, dtype=np.int64)
        self.targets: Vector = np.ones(count, dtype=np.int64)
        self._mask = wanted.mask
        self._entries = stock.by_node
        self._amounts = stock.by_node.amounts[:, self.asked]
        self._costs = stock.costs[stock.by_node.units]
        self._shared = shared
        self._known: NDArray[np.float64] = np.full((count, 3), _NEVER, order="F")

    def cheapest(self) -> int | None:
        """The node that costs the least; None: no node can be made to have room."""
        rows = np.arange(len(self._known))
        for column in range(3):
            values = self._known[rows, column]
            rows = rows[values == values.min(initial=_NEVER)]
        found = rows[:1].tolist()
        return found[0] if found and self._known[found[0], 0] < _NEVER else None

    def forget(self, node: int) -> None:
        """The node cannot be made to have room."""
        self._known[node] = _NEVER

    def of_all(self, free: Matrix, alive: Mask, left: int) -> None:
        """Estimate anew for all nodes, for up to ``left`` members."""
        self._known[:] = _NEVER
        open_to = self._mask & (self.taken < self.most)
        entries = np.flatnonzero(alive[self._entries.units] & open_to[self._entries.nodes])
        nodes = self._entries.nodes[entries]
        if not len(entries):
            return
        heads = np.flatnonzero(np.concatenate(([True], nodes[1:] != nodes[:-1])))
        sizes = np.diff(np.append(heads, len(nodes)))
        amounts, costs = self._amounts[entries], self._costs[entries]
        there = free[:, self.asked][nodes]
        for more, sums in (
            (_running_sums(amounts, heads, sizes), _running_sums(costs, heads, sizes)),
            (amounts, costs),
        ):
            each, gained = self._each(there + more, sums, left)
            best = _first_least(each, heads, sizes)
            best = best[_is_less(each[best], self._known[nodes[best]])]
            self._known[nodes[best]] = each[best]
            self.targets[nodes[best]] = gained[best]

    def of_node(self, node: int, free: Vector, alive: Mask, left: int) -> None:
        """Estimate anew for one node."""
        self._known[node] = _NEVER
        if not self._mask[node] or self.taken[node] >= self.most:
            return
        entries = self._entries.of(node)
        there = alive[self._entries.units[entries]]
        amounts, costs = self._amounts[entries][there], self._costs[entries][there]
        more = np.concatenate((amounts.cumsum(axis=0), amounts))
        sums = np.concatenate((costs.cumsum(axis=0), costs))
        each, gained = self._each(free[self.asked] + more, sums, left)
        offers = each.tolist()
        if offers:
            best = min(range(len(offers)), key=offers.__getitem__)
            self._known[node] = offers[best]
            self.targets[node] = gained[best]

    def _each(self, free: Matrix, costs: Matrix, left: int) -> tuple[NDArray[np.float64], Vector]:
        """What each place costs where so much is ``free`` for these ``costs``, and their number."""
        most = max(min(left, self.most), 1) if self._shared else 1
        gained = np.clip((free // self.request).min(axis=1, initial=most), 0, most)
        each = np.where(gained[:, None] > 0, costs / np.maximum(gained, 1)[:, None], _NEVER)
        return each, gained


def _running_sums(values: Matrix, heads: Rows, sizes: Rows) -> Matrix:
    """The sums of ``values`` up to each row, from the head of its node on."""
    sums = np.cumsum(values, axis=0)
    total: Matrix = sums - np.repeat(sums[heads] - values[heads], sizes, axis=0)
    return total


def _first_least(values: NDArray[np.float64], heads: Rows, sizes: Rows) -> Rows:
    """The first of the least rows of each node, the first column first."""
    least = np.ones(len(values), dtype=np.bool_)
    for column in range(values.shape[1]):
        rest = np.where(least, values[:, column], _NEVER)
        least &= rest == np.repeat(np.minimum.reduceat(rest, heads), sizes)
    numbers = np.where(least, np.arange(len(least)), len(least))
    first: Rows = np.minimum.reduceat(numbers, heads)
    return first


def _is_less(left: NDArray[np.float64], right: NDArray[np.float64]) -> Mask:
    """Row by row, the first column first."""
    less = np.zeros(len(left), dtype=np.bool_)
    same = np.ones(len(left), dtype=np.bool_)
    for column in range(left.shape[1]):
        less |= same & (left[:, column] < right[:, column])
        same &= left[:, column] == right[:, column]
    return less
