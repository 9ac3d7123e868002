"""The units of a problem as arrays, made once: what each frees on which node, and what it costs.

``U`` units, ``R`` resources, ``N`` nodes: those of the problem, and behind them one row for each of
its limits. There what is free is what is left of the limit, less than nothing where it is short.
``E`` entries, one for each node that a unit has pods on.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from app.core.victims.bounds import have_places
from app.core.victims.problem import Bound, BoundKind, Problem, Wanted
from app.core.victims.units import SetCost, Unit, cost_of
from app.model.ids import GroupKey
from app.model.resources import Mask, Matrix, Rows
from app.model.running import Running


class Entries:
    """Unit ``units[e]`` frees ``amounts[e]`` on the node ``nodes[e]``; sorted by one of these.

    ``units`` and ``nodes`` have the shape ``(E,)``, ``amounts`` ``(E, R)``. The entries of number
    ``i`` of what they are sorted by are ``starts[i]`` to ``starts[i + 1]``.
    """

    __slots__ = ("amounts", "nodes", "starts", "units")

    def __init__(self, units: Rows, nodes: Rows, amounts: Matrix, *, starts: Rows) -> None:
        self.units = units
        self.nodes = nodes
        self.amounts = amounts
        self.starts = starts

    def of(self, number: int) -> slice:
        """The entries of one unit or one node."""
        return slice(int(self.starts[number]), int(self.starts[number + 1]))


@dataclass(frozen=True, eq=False)
class Stock:
    """The units of ``problem``.

    ``room`` is what is free before any of them goes, shape ``(N, R)``, ``everything`` what is when
    all are gone. ``wanted`` are the members; none has a place on a limit. ``costs`` has the shape
    ``(U, 3)``: gangs ended, lost work, pods. ``by_unit`` has the nodes of a unit in order,
    ``by_node`` the units of a node, those of the least cost first.
    """

    problem: Problem
    room: Matrix
    wanted: Sequence[Wanted]
    costs: Matrix
    priorities: NDArray[np.int64]
    everything: Matrix
    by_unit: Entries
    by_node: Entries

    @classmethod
    def of(cls, problem: Problem) -> "Stock":
        """All units of ``problem``.

        A pod that terminates frees nothing: its room counts as idle in future already. Nor does one
        on a node that is not in the table.
        """
        units, running = problem.units, problem.running
        room = _with_limits(problem)
        pods = [unit.pods for unit in units]
        sizes = np.fromiter(map(len, pods), dtype=np.intp, count=len(units))
        flat = np.fromiter(chain.from_iterable(pods), dtype=np.intp, count=int(sizes.sum()))
        costs = np.empty((len(units), 3), dtype=np.int64)
        costs[:, 0] = [unit.whole for unit in units]
        costs[:, 1] = [unit.lost for unit in units]
        costs[:, 2] = sizes
        of_unit = np.repeat(np.arange(len(units), dtype=np.intp), sizes)
        pod, at = _freed(problem, flat)
        of_unit, amounts = of_unit[pod], running.requests[flat[pod]]
        if problem.limits or len(flat) != len(units):
            of_unit, at, amounts = _summed(of_unit, at, amounts)
        gone = np.zeros(len(running), dtype=np.bool_)
        gone[flat] = True
        everything = room.copy()
        pod, rows = _freed(problem, np.flatnonzero(gone))
        np.add.at(everything, rows, running.requests[gone][pod])
        return cls(
            problem,
            room,
            [_padded(each, len(room)) for each in problem.wanted],
            costs,
            np.array([unit.priority for unit in units], dtype=np.int64),
            everything,
            Entries(of_unit, at, amounts, starts=_starts(of_unit, len(units))),
            _by_node(of_unit, at, amounts, costs=costs, nodes=len(room)),
        )

    @cached_property
    def of_gang(self) -> Mapping[GroupKey, Sequence[int]]:
        """The units of each gang."""
        found: dict[GroupKey, list[int]] = {}
        for at, unit in enumerate(self.problem.units):
            found.setdefault(unit.gang, []).append(at)
        return found

    @cached_property
    def spare(self) -> Mapping[GroupKey, int]:
        """How many units that are not whole each gang can spare."""
        return {unit.gang: unit.spare for unit in self.problem.units if not unit.whole}

    @property
    def limits(self) -> slice:
        """The rows of limits."""
        return slice(len(self.problem.room), len(self.room))

    def exceeded_limit(self, free: Matrix) -> Bound | None:
        """A limit of which too little is ``free``, shape ``(N, R)``; None: there is none."""
        for at, left in enumerate(free[self.limits]):
            for resource in np.flatnonzero(left < 0).tolist():
                short = int(self.problem.limits[at].short[resource])
                return Bound(BoundKind.LIMIT, at, resource, short, short + int(left[resource]))
        return None

    def has_places(self, free: Matrix) -> bool:
        """Whether no bound on places or limits is exceeded where so much is ``free``."""
        return have_places(free, self.wanted) and not (free[self.limits] < 0).any()

    def units(self, chosen: Iterable[int]) -> list[Unit]:
        """The ``chosen`` units, in that order."""
        return [self.problem.units[at] for at in chosen]

    def cost(self, chosen: Collection[int]) -> SetCost:
        """The cost of the ``chosen`` units."""
        return cost_of(self.units(chosen))

    def flags(self, chosen: Collection[int]) -> Mask:
        """Which units are ``chosen``, shape ``(U,)``."""
        flags = np.zeros(len(self.problem.units), dtype=np.bool_)
        flags[list(chosen)] = True
        return flags

    def free_without(self, gone: Mask) -> Matrix:
        """What is free when these units (shape ``(U,)``), of no common pods, are ``gone``."""
        entries = gone[self.by_unit.units]
        free = self.room.copy()
        np.add.at(free, self.by_unit.nodes[entries], self.by_unit.amounts[entries])
        return free


def freeing(running: Running, nodes: int) -> Mask:
    """The pods whose eviction frees room on one of so many nodes, shape ``(P,)``."""
    frees: Mask = (running.nodes < nodes) & ~running.releasing
    return frees


def room_without(running: Running, room: Matrix, gone: Mask) -> Matrix:
    """What is free of ``room``, shape ``(N, R)``, when these pods (shape ``(P,)``) are ``gone``."""
    those = np.flatnonzero(gone & freeing(running, len(room)))
    free = room.copy()
    np.add.at(free, running.nodes[those], running.requests[those])
    return free


def _with_limits(problem: Problem) -> Matrix:
    lacks = [-np.maximum(limit.short, 0) for limit in problem.limits]
    return np.concatenate((problem.room, *(lack[None] for lack in lacks)))


def _padded(wanted: Wanted, rows: int) -> Wanted:
    mask = np.zeros(rows, dtype=np.bool_)
    mask[: len(wanted.mask)] = wanted.mask
    return Wanted(mask, wanted.request, wanted.count, wanted.per_node)


def _freed(problem: Problem, pods: Rows) -> tuple[Rows, Rows]:
    """What ``pods`` free: positions in ``pods``, and the node or limit of each."""
    running, nodes = problem.running, len(problem.room)
    found = [np.flatnonzero(freeing(running, nodes)[pods])]
    rows = [running.nodes[pods[found[0]]].astype(np.intp)]
    for number, limit in enumerate(problem.limits):
        found.append(np.flatnonzero(limit.counts[pods]))
        rows.append(np.full(len(found[-1]), nodes + number, dtype=np.intp))
    return np.concatenate(found), np.concatenate(rows)


def _summed(of_unit: Rows, at: Rows, amounts: Matrix) -> tuple[Rows, Rows, Matrix]:
    """The same with one entry for each pair of a unit and a node."""
    order = np.lexsort((at, of_unit))
    of_unit, at, amounts = of_unit[order], at[order], amounts[order]
    if not len(at):
        return of_unit, at, amounts
    first = np.ones(len(at), dtype=np.bool_)
    first[1:] = (of_unit[1:] != of_unit[:-1]) | (at[1:] != at[:-1])
    heads = np.flatnonzero(first)
    return of_unit[heads], at[heads], np.add.reduceat(amounts, heads, axis=0)


def _by_node(of_unit: Rows, at: Rows, amounts: Matrix, *, costs: Matrix, nodes: int) -> Entries:
    gangs, lost, pods = costs[of_unit].T
    order = np.lexsort((of_unit, pods, lost, gangs, at))
    at = at[order]
    return Entries(of_unit[order], at, amounts[order], starts=_starts(at, nodes))


def _starts(numbers: Rows, count: int) -> Rows:
    return np.searchsorted(numbers, np.arange(count + 1)).astype(np.intp)
