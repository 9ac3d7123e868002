"""Domains of the network: the nodes below each HyperNode (volcano.md §2.7, §3.6).

To the planner a *domain* is the set of nodes below a HyperNode, so HyperNodes may overlap, and a
set that is wrong harms its own groups only. Above all of them is the whole cluster, whose tier is
one more than the highest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.model.ids import CLUSTER
from app.model.resources import Mask, Rows
from app.model.topology import NetworkTopology, Tier

DOMAIN_CLASS: Final = "domain "
"""How the names of domains begin among those of classes of exchange."""


@dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """The domains of the nodes of one table: those of the lowest tier first, then by name.

    The last one is the whole cluster. ``tiers`` and ``parents`` have the shape ``(D,)``; the parent
    is the position of the lowest domain that has the HyperNode as a member, that of the cluster
    where there is none, and -1 of the cluster itself. The rows of domain ``d`` are
    ``rows[starts[d]:starts[d + 1]]``, ascending; ``starts`` has the shape ``(D + 1,)``.
    """

    names: tuple[str, ...]
    tiers: NDArray[np.int64]
    parents: NDArray[np.intp]
    starts: NDArray[np.intp]
    rows: Rows
    tier_of_name: Mapping[str, int] = field(default_factory=dict)
    """Tiers by ``tierName``; of two tiers of a name the higher one."""
    editions: tuple[int, ...] = ()
    """For each domain a number that it never had before with other nodes; empty: all have 0."""

    def __len__(self) -> int:
        return len(self.names)

    def domain(self, at: int) -> "Domain":
        """The domain of that position."""
        return Domain(self.names[at], self.rows_of(at), self.editions[at] if self.editions else 0)

    def rows_of(self, domain: int) -> Rows:
        """The rows of its nodes, ascending."""
        return self.rows[self.starts[domain] : self.starts[domain + 1]]

    def sums(self, per_node: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums over the nodes of each domain, shape ``(D,)``, of numbers of shape ``(N,)``."""
        total = np.concatenate(([0], np.cumsum(per_node[self.rows])))
        return total[self.starts[1:]] - total[self.starts[:-1]]

    @property
    def named_tiers(self) -> tuple[str, ...]:
        """The names of tiers, the lowest first."""
        return tuple(sorted(self.tier_of_name, key=lambda name: (self.tier_of_name[name], name)))

    def around(self, held: Rows) -> str:
        """The lowest domain that has all of these rows, the first by name; empty: of no rows."""
        if not len(held):
            return ""
        there = np.zeros(self.starts[-1] - self.starts[-2], dtype=np.int64)
        there[held] = 1
        return self.names[int((self.sums(there) == there.sum()).argmax())]

    def allowed(self, highest: int, held: Rows) -> Mask:
        """Which domains up to that tier have all of these rows, shape ``(D,)``."""
        there = np.zeros(self.starts[-1] - self.starts[-2], dtype=np.int64)
        there[held] = 1
        has_all: Mask = self.sums(there) == there.sum()
        return has_all & (self.tiers <= highest)

    def tier_of(self, asked: Tier) -> int | None:
        """The number of that tier; None: no HyperNode has a tier of that name."""
        return self.tier_of_name.get(asked.name) if asked.number is None else asked.number

    def widest(self, highest: int) -> Rows | None:
        """Of each node the largest domain up to that tier, shape ``(N,)``; -1: it is in none.

        None: two of these have some nodes in common and others not.
        """
        sizes = np.diff(self.starts)
        of_entry = np.repeat(np.arange(len(self), dtype=np.intp), sizes)
        kept = np.flatnonzero(self.tiers[of_entry] <= highest)
        found = np.full(self.starts[-1] - self.starts[-2], -1, dtype=np.intp)
        in_order = kept[np.argsort(sizes[of_entry[kept]], kind="stable")]
        found[self.rows[in_order]] = of_entry[in_order]  # of several the last one stands
        first = found[self.rows[self.starts[of_entry[kept]]]]
        return found if (found[self.rows[kept]] == first).all() else None

    def highest_tier(self, asked: NetworkTopology) -> int | None:
        """The highest tier that ``asked`` allows; None: no HyperNode has the tier it names."""
        if not asked.is_hard:
            return int(self.tiers[-1])
        if asked.highest_tier is not None:
            return asked.highest_tier
        return self.tier_of_name.get(asked.highest_tier_name)


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """A domain that places are given in: its name, and the rows of its nodes, ascending.

    ``edition`` tells it from domains that have had its name and other nodes.
    """

    name: str
    rows: Rows
    edition: int = 0

    @property
    def called(self) -> str:
        """The name among those of classes of exchange."""
        return f"{DOMAIN_CLASS}{self.name}" + (f" #{self.edition}" if self.edition else "")

    def rows_within(self, others: Rows | None) -> Rows:
        """The rows that are among ``others`` as well (None: all are)."""
        return self.rows if others is None else np.intersect1d(others, self.rows)


def whole_cluster(nodes: int) -> Domains:
    """The domains of ``nodes`` nodes when there are no HyperNodes."""
    return Domains(
        names=(CLUSTER,),
        tiers=np.array([1], dtype=np.int64),
        parents=np.array([-1], dtype=np.intp),
        starts=np.array([0, nodes], dtype=np.intp),
        rows=np.arange(nodes, dtype=np.intp),
    )
