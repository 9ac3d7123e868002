"""Which free room to keep for members that do not all fit yet.

Members that fit now keep the room that they would take. The others keep what is free where they
would fit once what runs there has ended, on the nodes that lack least: other pods would else take
each piece of it as it comes free.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.model.resources import Mask, Matrix, Rows, Vector


class Wanted(NamedTuple):
    """``number`` members of one ``request``, shape ``(R,)``; ``mask`` has the nodes for them."""

    mask: Mask
    request: Vector
    number: int


def room_to_keep(
    wanted: Sequence[Wanted],
    *,
    free: Matrix,
    allocatable: Matrix,
    within: Rows | None = None,
) -> Matrix | None:
    """What to keep of each node; ``free``, ``allocatable`` and the answer are of shape ``(N, R)``.

    Only the nodes of the rows ``within`` may be used; None: all. The answer is None where even if
    all that runs had ended, they would not hold the members together.
    """
    left, room = np.maximum(free, 0), allocatable.copy()
    if within is not None:
        outside = np.ones(len(room), dtype=np.bool_)
        outside[within] = False
        left[outside] = room[outside] = 0
    kept = np.zeros_like(left)
    for each in wanted:
        fitting = np.minimum(_count(left, each), _count(room, each))
        now = _spread(each.number, fitting, order=np.argsort(-fitting, kind="stable"))
        amount = np.outer(now, each.request)
        left -= amount
        room -= amount
        kept += amount
        missing = each.number - int(now.sum())
        nearest = np.argsort(-_part(left, each), kind="stable")
        later = _spread(missing, _count(room, each), order=nearest)
        if int(later.sum()) < missing:
            return None
        amount = np.outer(later, each.request)
        room -= amount
        partly = np.minimum(left, amount)
        left -= partly
        kept += partly
    return kept


def _count(room: Matrix, wanted: Wanted) -> Vector:
    """How many such members each node holds, shape ``(N,)``."""
    asked = wanted.request > 0
    if not asked.any():
        return np.where(wanted.mask, wanted.number, 0)
    fits: Vector = (np.maximum(room[:, asked], 0) // wanted.request[asked]).min(axis=1)
    return np.where(wanted.mask, fits, 0)


def _part(room: Matrix, wanted: Wanted) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Which part of one such member is free on each node, shape ``(N,)``."""
    asked = wanted.request > 0
    if not asked.any():
        return np.ones(len(room))
    part: np.ndarray[tuple[int], np.dtype[np.float64]] = (
        room[:, asked] / wanted.request[asked]
    ).min(axis=1)
    return part


def _spread(count: int, most: Vector, *, order: Vector) -> Vector:
    """``count`` members over nodes in that order, each up to its ``most``; shape ``(N,)``."""
    ordered = most[order]
    before = np.cumsum(ordered) - ordered
    taken = np.zeros_like(most)
    taken[order] = np.clip(count - before, 0, ordered)
    return taken
