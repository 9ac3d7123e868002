"""A bound on what victims cost at least, from sums alone: no search is needed for it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.core.victims.units import NO_PRIORITY, SetCost, Unit
from app.model.resources import Matrix, Vector

_Numbers = NDArray[np.int64]


def least_cost(units: Sequence[Unit], freed: Matrix, short: Vector) -> SetCost:
    """What no set of ``units`` costs less than that frees all that is ``short``, shape ``(R,)``.

    Each unit frees its row of ``freed``, shape ``(U, R)``. Any part of a unit may free its part, at
    its part of the cost.
    """
    ends = np.array([unit.whole for unit in units], dtype=np.bool_)
    priorities = np.array([unit.priority for unit in units], dtype=np.int64)
    lost = np.array([unit.lost for unit in units], dtype=np.int64)
    pods = np.array([len(unit.pods) for unit in units], dtype=np.int64)
    least = SetCost(0, NO_PRIORITY, 0, 0)
    for resource in np.flatnonzero(short > 0).tolist():
        some, asked = freed[:, resource] > 0, int(short[resource])
        if not some.any():
            continue
        amounts = freed[some, resource]
        by_rank = np.argsort(priorities[some], kind="stable")
        reached = _first_enough(amounts[by_rank], asked)
        found = SetCost(
            _least_sum(ends[some].astype(np.int64), amounts, asked),
            int(priorities[some][by_rank][reached]),
            _least_sum(lost[some], amounts, asked),
            _least_sum(pods[some], amounts, asked),
        )
        least = SetCost(*map(max, least, found))
    return least


def _first_enough(amounts: _Numbers, asked: int) -> int:
    """The position up to which ``amounts`` sum up to what is asked, or else the last."""
    return min(int(np.searchsorted(np.cumsum(amounts), asked)), len(amounts) - 1)


def _least_sum(costs: _Numbers, amounts: _Numbers, asked: int) -> int:
    """What so much costs at least, rounded down: the cheapest in proportion go first."""
    order = np.argsort(costs / amounts, kind="stable")
    costs, amounts = costs[order], amounts[order]
    last = _first_enough(amounts, asked)
    rest = asked - int(amounts[:last].sum())
    part = min(rest, int(amounts[last])) * int(costs[last]) // int(amounts[last])
    return int(costs[:last].sum()) + part
