"""What proves at once that members have no room: no search is needed then.

The bounds look at resources and masks alone, so they hold whatever else a planner checks.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.core.victims.problem import Bound, BoundKind, Wanted
from app.model.resources import Matrix

Counts = NDArray[np.int64]


def places_on(free: Matrix, wanted: Wanted) -> Counts:
    """How many of the members each node has room for if nothing else goes there, shape ``(N,)``.

    ``free`` has the shape ``(N, R)``. No node counts for more than are wanted.
    """
    most = wanted.count if wanted.per_node is None else min(wanted.per_node, wanted.count)
    asked = np.flatnonzero(wanted.request > 0)
    if not len(asked):
        everywhere: Counts = np.where(wanted.mask, most, 0)
        return everywhere
    places: Counts = (free[:, asked] // wanted.request[asked]).min(axis=1)
    np.clip(places, 0, most, out=places)
    places[~wanted.mask] = 0
    return places


def have_places(free: Matrix, wanted: Sequence[Wanted]) -> bool:
    """Whether no bound on places is exceeded."""
    return all(int(places_on(free, each).sum()) >= each.count for each in wanted)


def first_bound(free: Matrix, wanted: Sequence[Wanted]) -> Bound | None:
    """A bound that is exceeded where so much is ``free``, shape ``(N, R)``; None: none is."""
    for at, each in enumerate(wanted):
        there = int(places_on(free, each).sum())
        if there < each.count:
            return (
                _largest_node(free, each, at)
                or _sums(free, (each,), at)
                or Bound(BoundKind.PLACES, at, -1, each.count, there)
            )
    return _sums(free, wanted, -1) if len(wanted) > 1 else None


def _largest_node(free: Matrix, wanted: Wanted, at: int) -> Bound | None:
    if not wanted.count:
        return None
    largest = free[wanted.mask].max(axis=0, initial=0)
    short = np.flatnonzero(largest < wanted.request)
    if not len(short):
        return None
    worst = int(short[0])
    return Bound(BoundKind.NODE, at, worst, int(wanted.request[worst]), int(largest[worst]))


def _sums(free: Matrix, wanted: Sequence[Wanted], at: int) -> Bound | None:
    """All of a resource that is free is less than what all of ``wanted`` ask for."""
    anywhere = np.logical_or.reduce([each.mask for each in wanted])
    there = np.maximum(free[anywhere], 0).sum(axis=0)
    asked = np.sum([each.request * each.count for each in wanted], axis=0)
    short = np.flatnonzero(there < asked)
    if not len(short):
        return None
    worst = int(short[0])
    return Bound(BoundKind.SUM, at, worst, int(asked[worst]), int(there[worst]))
