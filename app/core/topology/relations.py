"""Which nodes members may go to by the domains of a tier that they and others are in.

A domain of the tier is *occupied* by members if one of them is on a node of it. A node that is in
no domain of the tier obeys no rule about that tier. HyperNodes of a tier may overlap: a node is in
all of its domains, so it is kept away from what is in any of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.model.domains import Domains
from app.model.ids import CLUSTER
from app.model.parts import NO_SUB_GROUP, SubGroup
from app.model.resources import Mask, Rows
from app.model.topology import GroupTerm, PartTerm, SpreadTerm, Tier, TopologyAffinity


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The ``K`` domains of one tier, without the whole cluster, over ``nodes`` nodes.

    Entry ``e`` says that the node of ``rows[e]`` is in the domain ``of[e]``, which is a position
    among ``names``.
    """

    names: tuple[str, ...]
    of: NDArray[np.intp]
    rows: Rows
    nodes: int

    @classmethod
    def at(cls, domains: Domains, tier: Tier) -> "Level | None":
        """The domains of that tier; None: no HyperNode has a tier of that name."""
        number = domains.tier_of(tier)
        if number is None:
            return None
        found = [
            at
            for at in np.flatnonzero(domains.tiers == number).tolist()
            if domains.names[at] != CLUSTER
        ]
        inside = [domains.rows_of(at) for at in found]
        nothing = np.zeros(0, dtype=np.intp)
        return cls(
            names=tuple(domains.names[at] for at in found),
            of=np.repeat(np.arange(len(found), dtype=np.intp), [len(rows) for rows in inside]),
            rows=np.concatenate([nothing, *inside]).astype(np.intp),
            nodes=int(domains.starts[-1] - domains.starts[-2]),
        )

    def occupied(self, held: Mask) -> Mask:
        """The domains that have any of the nodes ``held`` (shape ``(N,)``), shape ``(K,)``."""
        found = np.zeros(len(self.names), dtype=np.bool_)
        found[self.of[held[self.rows]]] = True
        return found

    def having_all(self, held: Mask) -> Mask:
        """The domains that have all of these nodes, shape ``(K,)``."""
        counts = np.bincount(self.of[held[self.rows]], minlength=len(self.names))
        found: Mask = counts == int(held.sum())
        return found

    def inside(self, domains: Mask) -> Mask:
        """The nodes of these domains (shape ``(K,)``), shape ``(N,)``."""
        found = np.zeros(self.nodes, dtype=np.bool_)
        found[self.rows[domains[self.of]]] = True
        return found

    @property
    def every(self) -> Mask:
        """The nodes that are in a domain of the tier, shape ``(N,)``."""
        return self.inside(np.ones(len(self.names), dtype=np.bool_))

    def apart_from(self, others: Mask) -> Mask:
        """The nodes in no domain that is occupied by ``others``; both of shape ``(N,)``."""
        return self.every & ~self.inside(self.occupied(others))

    def near_to(self, others: Mask) -> Mask:
        """The nodes in a domain that is occupied by ``others``; both of shape ``(N,)``."""
        return self.inside(self.occupied(others))

    def together_with(self, members: Mask) -> Mask:
        """The nodes in a domain that has all ``members``; both of shape ``(N,)``."""
        return self.inside(self.having_all(members))

    def spread(self, members: Mask, *, least: int, most: int | None, others_to_come: int) -> Mask:
        """The nodes for one more member of those that are to be in so many domains, shape (N,).

        At ``most`` domains no other one is taken. While ``members`` (shape ``(N,)``) are in fewer
        than ``least``, a domain of theirs is taken only if the ``others_to_come`` after this one
        can open the domains that are lacking.
        """
        occupied = self.occupied(members)
        count = int(occupied.sum())
        allowed = self.every
        if most is not None and count >= most:
            allowed = self.inside(occupied)
        if count < least and others_to_come < least - count:
            allowed &= ~self.inside(occupied)
        return allowed


@dataclass(frozen=True, slots=True, eq=False)
class Lie:
    """Where the members of a group are: on the nodes of ``parts``, by their sub-group.

    Masks have the shape ``(N,)``; ``others`` has the nodes of the groups that a term is about.
    """

    domains: Domains
    parts: Mapping[SubGroup, Mask]
    others: Callable[[GroupTerm], Mask]

    def keeps(self, affinity: TopologyAffinity) -> bool:
        """Whether every required term holds for the members as they lie."""
        return all(self._checks(affinity))

    def _checks(self, affinity: TopologyAffinity) -> Iterator[bool]:
        mine = self._of(list(self.parts))
        for near in affinity.groups_near:
            # of groups that look for each other the first one went anywhere
            there = self.others(near)
            yield bool(near.weight) or not there.any() or self._is_inside(near, mine, there)
        for apart in affinity.groups_apart:
            yield bool(apart.weight) or self._is_apart(apart, mine, self.others(apart))
        for together in affinity.parts_near:
            held = self._of([of for of in self.parts if of.policy in together.policies])
            level = Level.at(self.domains, together.tier)
            kept = level is not None and (level.having_all(held).any() or not held.any())
            yield bool(together.weight) or bool(kept)
        for parted in affinity.parts_apart:
            yield bool(parted.weight) or self._are_parted(parted)
        for spread in affinity.spread:
            yield bool(spread.weight) or self._is_spread(spread, mine)

    def _of(self, parts: Sequence[SubGroup]) -> Mask:
        found = np.zeros(int(self.domains.starts[-1] - self.domains.starts[-2]), dtype=np.bool_)
        for part in parts:
            found |= self.parts[part]
        return found

    def _is_inside(self, term: GroupTerm, mine: Mask, others: Mask) -> bool:
        level = Level.at(self.domains, term.tier)
        return level is not None and not (mine & ~level.near_to(others)).any()

    def _is_apart(self, term: GroupTerm | PartTerm, mine: Mask, others: Mask) -> bool:
        level = Level.at(self.domains, term.tier)
        return level is not None and not (mine & ~level.apart_from(others)).any()

    def _are_parted(self, term: PartTerm) -> bool:
        alone = len(term.policies) == 1
        named = [of for of in self.parts if of != NO_SUB_GROUP and of.policy in term.policies]
        return all(
            self._is_apart(
                term,
                self.parts[of],
                self._of([o for o in named if (o != of if alone else o.policy != of.policy)]),
            )
            for of in named
        )

    def _is_spread(self, term: SpreadTerm, mine: Mask) -> bool:
        level = Level.at(self.domains, term.tier)
        if level is None or (mine & ~level.every).any():
            return False
        count = int(level.occupied(mine).sum())
        return count >= min(term.least, int(mine.sum())) and count <= (term.most or count)
