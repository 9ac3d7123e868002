"""Gangs that ask for one domain of the network: where they are placed, and why they are not.

A gang, or a sub-group, of hard topology gets its places inside one domain of no higher tier than it
allows; members that hold room are in it already. Domains are tried from the lowest tier up
(:mod:`app.core.placement.domains`), each in a trial. Of soft topology the whole cluster comes last.
Sub-groups look for their domain inside that of the gang.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from app.core.actions.areas import affinity_note, open_rows
from app.core.actions.attempt import Hint
from app.core.actions.cycle import Cycle
from app.core.actions.futility import Failure
from app.core.actions.refusals import OF_LIMITS
from app.core.entries import Placed
from app.core.placement.arrays import Counts
from app.core.placement.domains import Alike, Asked, Fits, fits, in_order, nearest
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import Wanted
from app.model.domains import CLUSTER, Domain, Domains, whole_cluster
from app.model.gang import Gang, Task
from app.model.ids import NodeName
from app.model.parts import SubGroup
from app.model.reason import Cause, NearestDomain, Never, NoDomain, Refusal
from app.model.resources import Rows, Scores
from app.model.topology import NetworkTopology

_STEPS = 20_000
"""Steps of one search for a packing of several shapes: some ten milliseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """``least`` of ``tasks``, and so many of each role, that need places in one domain.

    ``sub_group`` None: they are of the whole gang.
    """

    gang: Gang
    tasks: Sequence[Task]
    least: int
    roles: Mapping[str, int] = field(default_factory=dict)
    sub_group: SubGroup | None = None


Level = tuple[NetworkTopology, SubGroup | None]
"""What is asked of the network, of the members of a sub-group or of the whole gang."""


def levels(cycle: Cycle, members: Members) -> list[Level]:
    """What ``members`` ask of the network, as a gang and as a sub-group.

    The gang's own level is left out inside ``cycle.inside``: its domain was chosen by then.
    """
    gang, sub_group = members.gang, members.sub_group
    found: list[Level] = []
    if gang.topology is not None and cycle.within is None:
        found.append((gang.topology, None))
    for policy in gang.sub_groups if sub_group is not None else ():
        if sub_group is not None and policy.name == sub_group.policy:
            asked = policy.topology or _together(cycle, gang, sub_group)
            found += [(asked, sub_group)] if asked is not None else []
    return found


def _together(cycle: Cycle, gang: Gang, sub_group: SubGroup) -> NetworkTopology | None:
    """The domain that required terms have the sub-group in with others; None: there is none."""
    domains, near = cycle.snapshot.domains, gang.affinity.parts_near if gang.affinity else ()
    named = (each.tier for each in near if not each.weight and sub_group.policy in each.policies)
    tiers = [domains.tier_of(tier) for tier in named] if domains is not None else []
    known = [tier for tier in tiers if tier is not None]
    return NetworkTopology(highest_tier=min(known)) if known else None


def place_inside(
    cycle: Cycle, members: Members, attempt: Callable[[], Failure | None]
) -> Failure | None:
    """Let ``attempt`` place ``members`` in the domains that they have to be inside of."""
    return _place_inside(cycle, members, attempt, levels(cycle, members))


def _place_inside(
    cycle: Cycle,
    members: Members,
    attempt: Callable[[], Failure | None],
    asked: Sequence[Level],
) -> Failure | None:
    if not asked:
        return attempt()
    (topology, sub_group), *inner = asked
    search = DomainSearch.of(cycle, topology, members, holders=sub_group)
    for domain in search.domains():
        with cycle.inside(domain):
            failure = _place_inside(cycle, members, attempt, inner)
        if failure is None or failure.refusal.cause in OF_LIMITS:
            return failure
    if search.anywhere:
        return _place_inside(cycle, members, attempt, inner)
    nothing = np.zeros(len(cycle.snapshot.axis), dtype=np.int64)
    return Failure(search.refusal(), 0, nothing, cycle.ledger.moment())


@dataclass(frozen=True, slots=True, eq=False)
class DomainSearch:
    """The domains for ``members`` as the ledger stood; ``fits`` None: the tier is unknown."""

    cycle: Cycle
    topology: NetworkTopology
    members: Members
    among: Domains
    highest: int | None
    rows_of_placed_members: Rows
    fits: Fits | None

    @classmethod
    def of(
        cls,
        cycle: Cycle,
        topology: NetworkTopology,
        members: Members,
        *,
        holders: SubGroup | None = None,
        places: Callable[[Task], Counts] | None = None,
    ) -> "DomainSearch":
        """The domains that have the nodes of all ``holders``: of a sub-group, or of the gang.

        ``places`` tells how many such members each node takes; None: as many as the ledger has room
        for now.
        """
        snapshot = cycle.snapshot
        among = snapshot.domains or whole_cluster(len(snapshot.table.nodes))
        highest = among.highest_tier(topology)
        placed = rows_of_placed_members(cycle, members.gang, holders)
        found = None
        if highest is not None:
            within = open_rows(cycle, members.gang, members.sub_group)
            alike = _alike(within, members.tasks, places or cycle.finder.places)
            asked = Asked(alike, members.least, members.roles)
            found = fits(among, asked, highest=highest, rows_of_placed_members=placed)
        return cls(cycle, topology, members, among, highest, placed, found)

    @property
    def anywhere(self) -> bool:
        """Whether the members may be farther apart than any HyperNode has them."""
        return self.highest is not None and self.highest >= self.among.tiers[-1]

    def domains(self) -> Iterator[Domain]:
        """The domains to try, the best first; not the whole cluster."""
        for at in [] if self.fits is None else in_order(self.among, self.fits, self._liked()):
            if self.among.names[at] != CLUSTER:
                yield self._domain(at)

    def by_tier(self, now: "DomainSearch") -> Iterator[Sequence[Domain]]:
        """The domains to try, tier by tier; in each those first that take the most ``now``."""
        found = [] if self.fits is None else in_order(self.among, self.fits)
        tiers = self.among.tiers
        for _, some in groupby(found, key=lambda at: int(tiers[at])):
            first = sorted(some, key=lambda at: 0 if now.fits is None else -now.fits.takes[at])
            yield [self._domain(at) for at in first if self.among.names[at] != CLUSTER]

    def fullest(self, kept: Rows) -> Iterator[Domain]:
        """The allowed domains: those first that take the most members, then that have ``kept``."""
        if self.fits is None:
            return
        of_them = np.zeros(len(self.cycle.snapshot.table.nodes), dtype=np.int64)
        of_them[kept] = 1
        order = np.lexsort((self.among.tiers, -self.among.sums(of_them), -self.fits.takes))
        for at in order[self.fits.allowed[order]].tolist():
            yield self._domain(at)

    @property
    def best(self) -> Domain | None:
        """The domain that takes the most members; None: none is allowed."""
        at = None if self.fits is None else nearest(self.among, self.fits)
        return None if at is None else self._domain(at)

    def _domain(self, at: int) -> Domain:
        return Domain(self.among.names[at], self.among.rows_of(at))

    def refusal(self) -> Refusal:
        """Why no domain takes the members, and whether one would if nothing ran there."""
        members, axis = self.members, self.cycle.snapshot.axis
        best = None if self.fits is None else nearest(self.among, self.fits)
        told = None if best is None or self.fits is None else self._told(self.fits, best)
        empty = self._most_of_empty() if told else None
        found = NoDomain(
            asked=members.least,
            each=axis.amounts(members.tasks[0].request),
            alike=len({task.request.tobytes() for task in members.tasks}) == 1,
            tier=self.highest,
            tier_name=self.topology.highest_tier_name,
            placed_members_are_too_far_apart=best is None and len(self.rows_of_placed_members) > 0,
            nearest=empty or told,
            named_tiers=self.among.named_tiers if self.highest is None else (),
            is_bare=len(self.among) == 1,
        )
        where: str = members.gang.key
        if members.sub_group is not None:
            where = f"{where}, {members.sub_group.policy}/{members.sub_group.values}"
        lacking = max(members.least - (told.takes if told else 0), 1)
        return Refusal(
            Cause.NO_DOMAIN,
            where=where,
            domain=found,
            lacking=lacking,
            never=Never.DOMAINS if empty else None,
            note=affinity_note(self.cycle, members.gang, members.tasks[0]),
        )

    def _most_of_empty(self) -> NearestDomain | None:
        """The domain that would take the most members if nothing ran anywhere, and not enough.

        None: there is one that would take enough. Members that hold room may go too, so all domains
        of the allowed tiers count. Gangs that ask for the same get the same answer in a cycle.
        """
        if self.highest is None or not len(self.cycle.snapshot.table.nodes):
            return None
        members, known = self.members, self.cycle.judge.of_domains
        kinds = Counter((id(task.shape), task.pinned, task.role) for task in members.tasks)
        roles = frozenset(members.roles.items())
        key = self.highest, members.least, roles, frozenset(kinds.items())
        if key not in known:
            places = self.cycle.finder.places_if_empty
            asked = Asked(_alike(None, members.tasks, places), members.least, members.roles)
            found = fits(
                self.among,
                asked,
                highest=self.highest,
                rows_of_placed_members=np.zeros(0, dtype=np.intp),
            )
            known[key] = self._largest(found)
        return known[key]

    def _largest(self, found: Fits) -> NearestDomain | None:
        """The largest of empty domains, which take what ``found`` says; None: one takes enough.

        Members of several shapes are held against the sums of domains too.
        """
        at = nearest(self.among, found)
        if at is None:
            return None
        requests = np.stack([task.request for task in self.members.tasks])
        least = np.sort(requests, axis=0)[: self.members.least].sum(axis=0)
        sizes, columns = self.cycle.snapshot.table.sizes(), np.flatnonzero(least)
        there = [self.among.sums(sizes[:, column]) for column in columns]
        large = [sums >= least[column] for sums, column in zip(there, columns, strict=True)]
        if np.logical_and.reduce([found.allowed, found.enough, *large]).any():
            return None
        takes, lacks = int(found.takes[at]), np.zeros_like(least)
        if takes >= self.members.least:
            lacks[columns] = [max(least[c] - s[at], 0) for s, c in zip(there, columns, strict=True)]
        lacking = self.cycle.snapshot.axis.amounts(lacks)
        return NearestDomain(self.among.names[at], takes, lacking, empty=True)

    def _liked(self) -> Scores | None:
        scores, members = self.cycle.opened.domain_scores, self.members
        if not scores or not members.tasks:
            return None
        asked = np.sum([task.request for task in members.tasks[: max(members.least, 1)]], axis=0)
        liked: Scores = np.sum([score(members.gang, asked) for score in scores], axis=0)
        return liked

    def _told(self, found: Fits, at: int) -> NearestDomain:
        axis, tasks = self.cycle.snapshot.axis, self.members.tasks[: self.members.least]
        there = np.maximum(self.cycle.room[self.among.rows_of(at)], 0).sum(axis=0)
        short = np.maximum(np.sum([task.request for task in tasks], axis=0) - there, 0)
        return NearestDomain(self.among.names[at], int(found.takes[at]), axis.amounts(short))


def packing(cycle: Cycle, tasks: Sequence[Task]) -> Hint | None:
    """Rows for all of ``tasks``, of several shapes, where places are given now; None: none found.

    For members of one shape no search is needed: one by one they find all the room there is.
    """
    alike: dict[tuple[int, NodeName], list[Task]] = {}
    for task in tasks:
        alike.setdefault((id(task.shape), task.pinned), []).append(task)
    if len(alike) < 2 or cycle.within is None:
        return None
    rows = cycle.within
    wanted = [
        Wanted(cycle.finder.places(some[0])[rows] > 0, some[0].request, len(some))
        for some in alike.values()
    ]
    found = pack(cycle.room[rows], wanted, Steps(_STEPS))
    if isinstance(found, NotPacked):
        return None
    return {kind: [int(rows[at]) for at in some] for kind, some in zip(alike, found, strict=True)}


def _alike(
    within: Rows | None, tasks: Sequence[Task], places: Callable[[Task], Counts]
) -> list[Alike]:
    counts = Counter((id(task.shape), task.pinned, task.role) for task in tasks)
    first = {(id(task.shape), task.pinned, task.role): task for task in tasks}
    return [
        Alike(task.role, counts[kind], _only(within, places(task))) for kind, task in first.items()
    ]


def _only(within: Rows | None, places: Counts) -> Counts:
    """``places`` on the nodes of the rows ``within``, and none elsewhere; None: on all."""
    if within is None:
        return places
    kept = np.zeros_like(places)
    kept[within] = places[within]
    return kept


def rows_of_placed_members(cycle: Cycle, gang: Gang, sub_group: SubGroup | None) -> Rows:
    """The rows of nodes that members of the gang, or of the sub-group, have by now."""
    index = cycle.snapshot.table.index
    held = {
        index[place.node]
        for place in cycle.snapshot.places.get(gang.key, ())
        if place.node in index and sub_group in (None, place.sub_group)
    }
    held.update(
        entry.node
        for entry in cycle.ledger.journal
        if isinstance(entry, Placed)
        and entry.gang.key == gang.key
        and sub_group in (None, gang.sub_group_of.get(entry.task.uid))
    )
    return np.array(sorted(held), dtype=np.intp)
