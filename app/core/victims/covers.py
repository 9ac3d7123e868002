"""The cheapest units of one node that free enough of it.

Rows of ``amounts`` and ``costs`` are units; costs are compared column by column, the first one
first.
"""

import numpy as np

from app.model.resources import Matrix, Rows, Vector

_MOST_SUBSETS = 10
"""Among all subsets of so many units the cheapest is found."""


def cheap_cover(amounts: Matrix, costs: Matrix, short: Vector) -> list[int]:
    """Rows that free at least ``short`` together; the caller knows that all rows do.

    Rows are in the order of their costs. Of a few the cheapest ones; of more, the cheapest that
    were found by trying them by cost, by cost for what they free, and one alone.
    """
    if len(amounts) <= _MOST_SUBSETS:
        return _cheapest(amounts, costs, short)
    shares = (np.minimum(amounts, short) / short).sum(axis=1)
    by_share = np.lexsort((costs / np.maximum(shares, 1e-9)[:, None]).T[::-1])
    tried = [_needed(amounts, costs, short, order) for order in (np.arange(len(amounts)), by_share)]
    alone = np.flatnonzero((amounts >= short).all(axis=1))[:1].tolist()
    tried += [alone] if alone else []
    return min(tried, key=lambda rows: (costs[rows].sum(axis=0).tolist(), rows))


def subset_sums(values: Matrix) -> Matrix:
    """The sums of all subsets of the rows of ``values``, by number, the empty one first."""
    sums = np.zeros((1 << len(values), values.shape[1]), dtype=np.int64)
    for at, value in enumerate(values):
        half = 1 << at
        sums[half : 2 * half] = sums[:half] + value
    return sums


def _cheapest(amounts: Matrix, costs: Matrix, short: Vector) -> list[int]:
    numbers = np.flatnonzero((subset_sums(amounts) >= short).all(axis=1))
    sums = subset_sums(costs)
    for column in range(costs.shape[1]):
        values = sums[numbers, column]
        numbers = numbers[values == values.min()]
    number = int(numbers[0])
    return [at for at in range(len(amounts)) if number >> at & 1]


def _needed(amounts: Matrix, costs: Matrix, short: Vector, order: Rows) -> list[int]:
    """The first rows of ``order`` that are enough, without those that can be spared."""
    sums = np.cumsum(amounts[order], axis=0)
    last = int(np.argmax((sums >= short).all(axis=1)))
    chosen: list[int] = order[: last + 1].tolist()
    total = sums[last]
    for row in sorted(chosen, key=lambda at: (costs[at].tolist(), at), reverse=True):
        if (total - amounts[row] >= short).all():
            total = total - amounts[row]
            chosen.remove(row)
    return sorted(chosen)
