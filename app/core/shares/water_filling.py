"""Weighted max-min shares of the cluster for the queues that ask for it.

Round by round what is left is offered to the unmet queues by weight. A queue takes of the offer,
per resource, no more than it asks for and than it may hold, and never less than it is guaranteed.
It is *met* when it has all it asks for or a round gave it nothing. What was not taken is offered
again, until nothing is left or nothing changes.

Shares are real numbers: a third of four GPUs is 1.33 of them, and whole pods are compared with
that.
"""

import numpy as np
from numpy.typing import NDArray

from app.core.shares.shares import NOTHING
from app.model.resources import Matrix, Vector

Shares = NDArray[np.float64]


def fill(
    total: Vector, weights: NDArray[np.int64], *, request: Matrix, ceiling: Matrix, floor: Matrix
) -> Shares:
    """Deserved amounts, shape ``(Q, R)`` like ``request``, ``ceiling`` and ``floor``."""
    wanted = np.minimum(request, ceiling)
    shares = np.zeros(request.shape)
    remaining = total.astype(np.float64)
    unmet = np.ones(len(weights), dtype=bool)
    while (weight := int(weights[unmet].sum())) > 0:
        offered = shares + remaining * weights[:, None] / weight
        taken = np.maximum(np.minimum(offered, wanted), floor)
        taken[~unmet] = shares[~unmet]
        unmet &= (request > taken + NOTHING).any(axis=1) & (taken != shares).any(axis=1)
        left = np.maximum(remaining - (taken - shares).sum(axis=0), 0.0)
        shares = taken
        if (left < NOTHING).all() or (left == remaining).all():
            break
        remaining = left
    return shares


def whole(shares: Shares) -> Matrix:
    """The whole base units in ``shares``; rounding noise does not cost a unit."""
    return np.floor(shares + 10 * NOTHING).astype(np.int64)
