"""Which domains of the network have room for a gang, the best first.

For each shape it is counted how many members every node takes at most; sums over the nodes of a
domain then tell what the domain takes. For members of one shape without rules about other pods that
is exact. For several shapes it is a bound: a domain that is left out has no room, and one that is
not has to be tried.

Sub-groups that need domains of their own have the largest ones that they may be in as *pieces*.
What a piece has is divided by what a sub-group needs, so a domain holds no more of them than its
pieces do together. Where all members are of one shape and no two pieces overlap, that is exact too.

Among domains with room the order is: the lowest tier; then the one that takes the most members,
those beyond the minimum among them; then the one that plugins like most; then the one with the
least room to spare, so that wider gaps stay whole for others; then the one whose parent has the
least to spare; then names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.core.placement.arrays import Counts
from app.model.domains import Domains
from app.model.resources import Mask, Rows, Scores


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """``count`` members of one role and shape; each node takes at most ``places``, shape (N,)."""

    role: str
    count: int
    places: Counts


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """Nodes have so much of something, shape (N,), of which ``least`` is needed (above 0)."""

    per_node: Counts
    least: int


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """``count`` sub-groups of a ``policy``, each of which has all of the ``measures`` in one piece.

    Pieces are the largest domains up to the tier ``highest``.
    """

    policy: str
    count: int
    highest: int
    measures: Sequence[Measure]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """``least`` of these members have to be in one domain, and so many of each of the ``roles``.

    There the domain has all of the ``measures``, and holds the ``parts``.
    """

    members: Sequence[Alike]
    least: int
    roles: Mapping[str, int] = field(default_factory=dict)
    measures: Sequence[Measure] = ()
    parts: Sequence[Parts] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """How much of what is asked for each domain takes, shape ``(D,)`` each.

    ``allowed``: the tier is low enough, and the domain contains every node on which a member
    already is. ``takes`` is the number of members, no more than there are; ``enough``: whether the
    bound lets all that have to be there in. ``spare`` counts places for members and is not capped
    at the number of members. So many of the sub-groups that are asked for are ``torn`` there.
    """

    allowed: Mask
    enough: Mask
    takes: NDArray[np.int64]
    spare: NDArray[np.int64]
    torn: NDArray[np.int64]


def fits(domains: Domains, asked: Asked, *, highest: int, rows_of_placed_members: Rows) -> Fits:
    """What the domains up to tier ``highest`` take that contain all ``rows_of_placed_members``."""
    count = len(domains)
    takes, spare = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    of_role = {role: np.zeros(count, dtype=np.int64) for role in asked.roles}
    for alike in asked.members:
        sums = domains.sums(alike.places)
        spare += sums
        mine = np.minimum(sums, alike.count)
        takes += mine
        if alike.role in of_role:
            of_role[alike.role] += mine
    enough = takes >= asked.least
    for role, least in asked.roles.items():
        enough &= of_role[role] >= least
    for measure in asked.measures:
        enough &= domains.sums(measure.per_node) >= measure.least
    torn = np.zeros(count, dtype=np.int64)
    for parts in asked.parts:
        torn += np.maximum(parts.count - held(domains, parts), 0)
    enough &= torn == 0
    return Fits(domains.allowed(highest, rows_of_placed_members), enough, takes, spare, torn)


def held(domains: Domains, parts: Parts) -> NDArray[np.int64]:
    """At most so many of these sub-groups each domain holds, shape ``(D,)``."""
    pieces, count = domains.widest(parts.highest), len(domains)
    if pieces is None:
        return np.full(count, parts.count, dtype=np.int64)
    of_entry = np.repeat(np.arange(count), np.diff(domains.starts)) * count + pieces[domains.rows]
    inside = np.flatnonzero(pieces[domains.rows] >= 0)
    order = inside[np.argsort(of_entry[inside], kind="stable")]
    keys, rows = of_entry[order], domains.rows[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    most = np.full(len(first), parts.count, dtype=np.int64)
    found = np.zeros(count, dtype=np.int64)
    if len(first):
        for measure in parts.measures:
            there = np.add.reduceat(measure.per_node[rows], first)
            most = np.minimum(most, there // measure.least)
        np.add.at(found, keys[first] // count, most)
    return found


def in_order(domains: Domains, fits: Fits, liked: Scores | None = None) -> list[int]:
    """The positions of the domains to try, the best first; ``liked``: by plugins, shape (D,)."""
    above = fits.spare[domains.parents]
    worse = np.zeros(len(domains)) if liked is None else -liked
    names = np.arange(len(domains))
    order = np.lexsort((names, above, fits.spare, worse, -fits.takes, domains.tiers))
    found: list[int] = order[(fits.allowed & fits.enough)[order]].tolist()
    return found


def nearest(domains: Domains, fits: Fits) -> int | None:
    """The position of the allowed domain that tears the fewest sub-groups, and takes most members.

    None: none is allowed.
    """
    allowed = np.flatnonzero(fits.allowed)
    if not len(allowed):
        return None
    takes, torn, tiers = (each[allowed] for each in (fits.takes, fits.torn, domains.tiers))
    return int(allowed[np.lexsort((allowed, tiers, -takes, torn))[0]])
