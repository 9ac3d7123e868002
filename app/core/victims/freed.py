"""What units free on nodes, as arrays.

``U`` units, ``N`` nodes, ``R`` resources; ``E`` entries, one for each node that a unit has pods on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from app.core.victims.units import Unit
from app.model.resources import Mask, Matrix, Rows
from app.model.running import Running


@dataclass(frozen=True, slots=True, eq=False)
class Freed:
    """Unit ``units[e]`` frees ``amounts[e]`` on the node ``nodes[e]``; sorted by unit, then node.

    ``units`` and ``nodes`` have the shape ``(E,)``, ``amounts`` ``(E, R)``. The entries of unit
    ``u`` are ``starts[u]`` to ``starts[u + 1]``.
    """

    units: Rows
    nodes: Rows
    amounts: Matrix
    starts: Rows

    @classmethod
    def of(cls, units: Sequence[Unit], running: Running, *, nodes: int) -> "Freed":
        """What ``units`` free of so many nodes.

        A pod that terminates frees nothing: its room counts as idle in future already. Nor does one
        on a node that is not in the table.
        """
        sizes = np.fromiter((len(unit.pods) for unit in units), dtype=np.intp, count=len(units))
        pods = np.fromiter(
            chain.from_iterable(unit.pods for unit in units), dtype=np.intp, count=int(sizes.sum())
        )
        of_unit = np.repeat(np.arange(len(units), dtype=np.intp), sizes)
        at = running.nodes[pods].astype(np.intp)
        counts = (at < nodes) & ~running.releasing[pods]
        of_unit, at, amounts = of_unit[counts], at[counts], running.requests[pods[counts]]
        if len(pods) != len(units):
            of_unit, at, amounts = _summed(of_unit, at, amounts)
        starts = np.searchsorted(of_unit, np.arange(len(units) + 1))
        return cls(of_unit, at, amounts, starts.astype(np.intp))

    def by(self, chosen: Mask, *, nodes: int) -> Matrix:
        """What the ``chosen`` units (shape ``(U,)``) free together, shape ``(N, R)``."""
        entries = chosen[self.units]
        return self._sum(self.nodes[entries], self.amounts[entries], nodes)

    def by_all(self, *, nodes: int) -> Matrix:
        """What all units free together, shape ``(N, R)``: too much where they share pods."""
        return self._sum(self.nodes, self.amounts, nodes)

    @staticmethod
    def _sum(at: Rows, amounts: Matrix, nodes: int) -> Matrix:
        freed = np.zeros((nodes, amounts.shape[1]), dtype=np.int64)
        np.add.at(freed, at, amounts)
        return freed


def _summed(of_unit: Rows, at: Rows, amounts: Matrix) -> tuple[Rows, Rows, NDArray[np.int64]]:
    """The same with one entry for each pair of a unit and a node."""
    order = np.lexsort((at, of_unit))
    of_unit, at, amounts = of_unit[order], at[order], amounts[order]
    if not len(at):
        return of_unit, at, amounts
    first = np.ones(len(at), dtype=np.bool_)
    first[1:] = (of_unit[1:] != of_unit[:-1]) | (at[1:] != at[:-1])
    heads = np.flatnonzero(first)
    return of_unit[heads], at[heads], np.add.reduceat(amounts, heads, axis=0)
