"""The units of a problem as arrays, made once: what each frees on which node, and what it costs.

``U`` units, ``N`` nodes, ``R`` resources; ``E`` entries, one for each node that a unit has pods on.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from app.core.victims.problem import Problem
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

    ``costs`` has the shape ``(U, 3)``: gangs ended, lost work, pods. ``everything`` is what is free
    when all units are gone, shape ``(N, R)``. ``by_unit`` has the nodes of a unit in order,
    ``by_node`` the units of a node, those of the least cost first.
    """

    problem: Problem
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
        units, running, nodes = problem.units, problem.running, len(problem.room)
        pods = [unit.pods for unit in units]
        sizes = np.fromiter(map(len, pods), dtype=np.intp, count=len(units))
        flat = np.fromiter(chain.from_iterable(pods), dtype=np.intp, count=int(sizes.sum()))
        costs = np.empty((len(units), 3), dtype=np.int64)
        costs[:, 0] = [unit.ends_gang for unit in units]
        costs[:, 1] = [unit.lost for unit in units]
        costs[:, 2] = sizes
        of_unit = np.repeat(np.arange(len(units), dtype=np.intp), sizes)
        frees = freeing(running, nodes)[flat]
        of_unit, freed = of_unit[frees], flat[frees]
        at, amounts = running.nodes[freed].astype(np.intp), running.requests[freed]
        if len(flat) != len(units):
            of_unit, at, amounts = _summed(of_unit, at, amounts)
        gone = np.zeros(len(running), dtype=np.bool_)
        gone[flat] = True
        return cls(
            problem,
            costs,
            np.array([unit.priority for unit in units], dtype=np.int64),
            room_without(running, problem.room, gone),
            Entries(of_unit, at, amounts, starts=_starts(of_unit, len(units))),
            _by_node(of_unit, at, amounts, costs=costs, nodes=nodes),
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

    def units(self, chosen: Collection[int]) -> list[Unit]:
        """The ``chosen`` units, in order."""
        return [self.problem.units[at] for at in sorted(chosen)]

    def cost(self, chosen: Collection[int]) -> SetCost:
        """What they cost."""
        return cost_of(self.units(chosen))

    def flags(self, chosen: Collection[int]) -> Mask:
        """Which units are ``chosen``, shape ``(U,)``."""
        flags = np.zeros(len(self.problem.units), dtype=np.bool_)
        flags[list(chosen)] = True
        return flags

    def free_without(self, gone: Mask) -> Matrix:
        """What is free when these units (shape ``(U,)``), of no common pods, are ``gone``."""
        entries = gone[self.by_unit.units]
        free = self.problem.room.copy()
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
