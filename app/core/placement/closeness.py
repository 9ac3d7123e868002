"""How close the members of a gang are in the network, and how close they could be at best."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.core.placement.arrays import Counts
from app.core.placement.domains import Alike, Asked, Fits, fits, nearest
from app.model.domains import Domains
from app.model.reason import Closeness, NearestDomain
from app.model.resources import Matrix, ResourceAxis, Rows, Vector


def closeness(
    axis: ResourceAxis,
    domains: Domains,
    rows: Rows,
    requests: Sequence[Vector],
    *,
    allocatable: Matrix,
    used: Matrix,
) -> Closeness | None:
    """Members are on these ``rows``, and request so much each; None: there are none.

    ``allocatable`` and ``used`` (their own requests included) have the shape ``(N, R)``.
    """
    if not len(rows):
        return None
    alike: dict[bytes, tuple[Vector, int]] = {}
    for request in requests:
        known = alike.get(request.tobytes(), (request, 0))
        alike[request.tobytes()] = (request, known[1] + 1)
    free = allocatable - used
    for row, request in zip(rows.tolist(), requests, strict=True):
        free[row] += request
    at = domains.names.index(domains.around(np.unique(rows)))
    empty, now = (_fits(domains, list(alike.values()), room) for room in (allocatable, free))
    tier = int(domains.tiers[at])
    lower = empty.enough & (domains.tiers < tier)
    if not lower.any():
        return Closeness(len(requests), domains.names[at], tier, tier)
    lowest = int(domains.tiers[lower].min())
    best = nearest(domains, replace(now, allowed=lower))
    asked = np.sum(requests, axis=0)
    told = None
    if best is not None:
        there = np.maximum(free[domains.rows_of(best)], 0).sum(axis=0)
        short = axis.amounts(np.maximum(asked - there, 0))
        told = NearestDomain(domains.names[best], int(now.takes[best]), short)
    return Closeness(len(requests), domains.names[at], tier, lowest, told)


def _fits(domains: Domains, alike: Sequence[tuple[Vector, int]], room: Matrix) -> Fits:
    members = [Alike("", count, _places(room, request)) for request, count in alike]
    asked = Asked(members, sum(count for _, count in alike))
    none = np.zeros(0, dtype=np.intp)
    return fits(domains, asked, highest=int(domains.tiers[-1]), rows_of_placed_members=none)


def _places(room: Matrix, request: Vector) -> Counts:
    """How many such members each node takes, shape ``(N,)``."""
    asked = np.flatnonzero(request)
    if not len(asked):
        return np.full(len(room), np.iinfo(np.int32).max, dtype=np.int64)
    places: Counts = (np.maximum(room[:, asked], 0) // request[asked]).min(axis=1)
    return places
