"""Whether members of several shapes have room side by side: places for all, or proof of none.

A greedy packing comes first. Where it fails, and there are two shapes, the best use of each node is
worked out. For more of them, where the nodes are few, a search that skips equal nodes finds a
packing or proves that there is none, as far as its steps go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from app.core.victims.bounds import Counts, places_on
from app.core.victims.problem import Places, Wanted
from app.model.resources import Matrix, Rows

_MOST_NODES = 64
_NONE = -(1 << 40)
_LOOKS = 32
"""Shapes times nodes that are looked at for one step."""
_MOST_WORK = 20_000
"""Of the table of two shapes: nodes times members on one of them times members."""


class NotPacked(Enum):
    """Why there are no places."""

    IMPOSSIBLE = auto()
    """No packing has room for all."""
    UNKNOWN = auto()
    """The steps ended first."""


@dataclass(slots=True)
class Steps:
    """How many steps searches may still take together."""

    left: int

    def take(self) -> bool:
        """Take one, if any is left."""
        self.left -= 1
        return self.left >= 0


def pack(free: Matrix, wanted: Sequence[Wanted], steps: Steps) -> Places | NotPacked:
    """Places for all of ``wanted`` where so much is ``free``, shape ``(N, R)``."""
    places = [places_on(free, each) for each in wanted]
    if any(int(there.sum()) < each.count for there, each in zip(places, wanted, strict=True)):
        return NotPacked.IMPOSSIBLE
    rows: Rows = np.flatnonzero(np.logical_or.reduce([there > 0 for there in places]))
    packed = _packed(free[rows], [each.on(rows) for each in wanted], steps)
    if isinstance(packed, NotPacked):
        return packed
    return tuple(tuple(rows[list(mine)].tolist()) for mine in packed)


def _packed(free: Matrix, wanted: Sequence[Wanted], steps: Steps) -> Places | NotPacked:
    order = largest_first(free, wanted)
    found = _greedily(free, wanted, order)
    if found is not None:
        return found
    if len(wanted) <= 1:
        return NotPacked.IMPOSSIBLE
    if len(wanted) == 2:
        pair = _Pair(free, wanted)
        if pair.work <= _MOST_WORK:
            return pair.run()
    return _Search(free, wanted, order, steps).run()


def largest_first(free: Matrix, wanted: Sequence[Wanted]) -> list[int]:
    """Positions in ``wanted``: those with the fewest places for their number first."""
    slack = [int(places_on(free, each).sum()) - each.count for each in wanted]
    total = np.maximum(free, 0).sum(axis=0) + 1
    sizes = [float((each.request / total).max(initial=0)) for each in wanted]
    return sorted(range(len(wanted)), key=lambda at: (-sizes[at], slack[at], at))


def tightest_first(places: Counts, count: int) -> Counts:
    """How many of ``count`` members each node takes that has so many ``places``, shape ``(N,)``.

    Nodes with the fewest places are filled first. Fewer than ``count`` if there are not enough.
    """
    order = np.argsort(places, kind="stable")
    before = np.cumsum(places[order]) - places[order]
    taken = np.zeros_like(places)
    taken[order] = np.clip(count - before, 0, places[order])
    return taken


def _greedily(free: Matrix, wanted: Sequence[Wanted], order: Sequence[int]) -> Places | None:
    """Each shape in turn on the nodes that have the fewest places for it."""
    left = free
    rows: list[tuple[int, ...]] = [()] * len(wanted)
    for at in order:
        each = wanted[at]
        taken = tightest_first(places_on(left, each), each.count)
        if int(taken.sum()) < each.count:
            return None
        if len(wanted) > 1:
            left = left - taken[:, None] * each.request
        rows[at] = tuple(np.repeat(np.arange(len(taken)), taken).tolist())
    return tuple(rows)


class _Pair:
    """Two shapes: how many of one nodes have room for beside any number of the other.

    The *first* shape is that with fewer places, ``K`` nodes have some for it. ``work`` tells how
    much there is to do.
    """

    def __init__(self, free: Matrix, wanted: Sequence[Wanted]) -> None:
        places = [places_on(free, each) for each in wanted]
        self._first = 0 if int(places[0].sum()) <= int(places[1].sum()) else 1
        self._free, self._wanted = free, wanted
        self._most = places[self._first]
        self._rest = places[1 - self._first]
        self._rows = np.flatnonzero(self._most)
        count = wanted[self._first].count
        self.work = len(self._rows) * int(self._most.max(initial=0)) * count

    def run(self) -> Places | NotPacked:
        first, second = self._wanted[self._first], self._wanted[1 - self._first]
        beside = self._beside(first, second)
        best = np.full(first.count + 1, _NONE, dtype=np.int64)
        best[0] = int(self._rest.sum()) - int(self._rest[self._rows].sum())
        taken = np.zeros((len(self._rows), len(best)), dtype=np.int64)
        for at, row in enumerate(self._rows.tolist()):
            after = best + beside[0, at]
            for number in range(1, int(self._most[row]) + 1):
                more = best[:-number] + beside[number, at]
                better = more > after[number:]
                after[number:][better] = more[better]
                taken[at, number:][better] = number
            best = after
        if best[-1] < second.count:
            return NotPacked.IMPOSSIBLE
        here, left = np.zeros_like(self._most), first.count
        for at in reversed(range(len(self._rows))):
            here[self._rows[at]] = taken[at, left]
            left -= int(taken[at, left])
        there = tightest_first(
            places_on(self._free - here[:, None] * first.request, second), second.count
        )
        rows = [tuple(np.repeat(np.arange(len(each)), each).tolist()) for each in (here, there)]
        return (rows[0], rows[1]) if self._first == 0 else (rows[1], rows[0])

    def _beside(self, first: Wanted, second: Wanted) -> Counts:
        """Places for the second shape beside 0, 1, 2, … of the first one, shape ``(…, K)``."""
        free, there = self._free[self._rows], second.on(self._rows)
        numbers = range(int(self._most.max(initial=0)) + 1)
        return np.array([places_on(free - first.request * number, there) for number in numbers])


@dataclass(slots=True)
class _Turn:
    """A node takes ``count`` of the ``left`` members of a shape, ``least`` of them or more."""

    depth: int
    node: int
    left: int
    most: list[int]
    count: int
    least: int


class _Search:
    """Goes through how many of each shape every node takes; equal nodes take no more in turn."""

    def __init__(
        self, free: Matrix, wanted: Sequence[Wanted], order: Sequence[int], steps: Steps
    ) -> None:
        self._wanted = wanted
        self._order = order
        self._steps = steps
        self._rows = np.flatnonzero(
            np.logical_or.reduce([places_on(free, each) > 0 for each in wanted])
        ).tolist()
        self._free: list[list[int]] = free[self._rows].tolist()
        self._asks = [
            [(r, int(q)) for r, q in enumerate(each.request.tolist()) if q > 0] for each in wanted
        ]
        self._allows = [each.mask[self._rows].tolist() for each in wanted]
        self._taken = [[0] * len(self._rows) for _ in wanted]

    def run(self) -> Places | NotPacked:
        if len(self._rows) > _MOST_NODES:
            return NotPacked.UNKNOWN
        if self._fill():
            return tuple(
                tuple(row for row, n in zip(self._rows, taken, strict=True) for _ in range(n))
                for taken in self._taken
            )
        return NotPacked.IMPOSSIBLE if self._steps.left >= 0 else NotPacked.UNKNOWN

    def _most(self, at: int, node: int) -> int:
        """How many members of a shape the node has room for now."""
        if not self._allows[at][node]:
            return 0
        each, free = self._wanted[at], self._free[node]
        most = each.count if each.per_node is None else min(each.count, each.per_node)
        return max(min((most, *(free[r] // q for r, q in self._asks[at]))), 0)

    def _fill(self) -> bool:
        """Place all shapes in their order; whether there is a way that the steps find."""
        turns: list[_Turn] = []
        turn = self._shape(0)
        while True:
            if turn is None or turn.count < turn.least:
                if not turns:
                    return False
                turn = turns.pop()
                self._take(turn, -turn.count)
                turn.count -= 1
                continue
            self._take(turn, turn.count)
            turns.append(turn)
            left = turn.left - turn.count
            if left:
                turn = self._node(turn.depth, turn.node + 1, left, turn.most)
            elif turn.depth + 1 == len(self._order):
                return True
            else:
                turn = self._shape(turn.depth + 1)

    def _shape(self, depth: int) -> "_Turn | None":
        """The first turn of a shape; None: that shape or one behind it has no room."""
        later = self._order[depth:]
        self._steps.left -= len(later) * len(self._rows) // _LOOKS
        if self._steps.left < 0:
            return None
        for at in later:
            room = sum(self._most(at, node) for node in range(len(self._rows)))
            if room < self._wanted[at].count:
                return None
        at = later[0]
        most = [self._most(at, node) for node in range(len(self._rows))]
        return self._node(depth, 0, self._wanted[at].count, most)

    def _node(self, depth: int, node: int, left: int, most: list[int]) -> "_Turn | None":
        """The turn of a node, with ``left`` members for it and those behind; None: too many."""
        if sum(most[node:]) < left or not self._steps.take():
            return None
        least = max(left - sum(most[node + 1 :]), 0)
        upto = min(most[node], left, self._taken_by_equal(depth, node))
        return _Turn(depth, node, left, most, count=upto, least=least)

    def _taken_by_equal(self, depth: int, node: int) -> int:
        """What the nearest node before it took that was equal to it; more would be no new try."""
        at = self._order[depth]
        later = self._order[depth:]
        for other in range(node - 1, -1, -1):
            before = self._taken[at][other]
            back = dict(self._asks[at])
            was = [free + back.get(r, 0) * before for r, free in enumerate(self._free[other])]
            if was == self._free[node] and all(
                self._allows[k][other] == self._allows[k][node] for k in later
            ):
                return before
        return self._wanted[at].count

    def _take(self, turn: "_Turn", count: int) -> None:
        at = self._order[turn.depth]
        self._taken[at][turn.node] += count
        free = self._free[turn.node]
        for r, q in self._asks[at]:
            free[r] -= q * count
