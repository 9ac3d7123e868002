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
from app.core.actions.measures import Places, parts_asked, sums_asked
from app.core.actions.refusals import OF_LIMITS
from app.core.entries import Placed
from app.core.gangs.units import units
from app.core.placement.arrays import Counts
from app.core.placement.domains import Alike, Asked, Fits, Parts, fits, in_order, nearest
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import Wanted
from app.model.domains import Domain, Domains, whole_cluster
from app.model.gang import Gang, Task
from app.model.ids import CLUSTER, NodeName
from app.model.parts import SubGroup
from app.model.reason import Cause, NearestDomain, Never, NoDomain, Refusal
from app.model.resources import Matrix, Rows, Scores
from app.model.topology import NetworkTopology

_STEPS = 20_000
"""Steps of one search for a packing of several shapes: some ten milliseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """``least`` of ``tasks``, and so many of each role, that need places in one domain.

    ``sub_group`` None: they are of the whole gang. So many sub-groups have to be whole there of
    ``policies``.
    """

    gang: Gang
    tasks: Sequence[Task]
    least: int
    roles: Mapping[str, int] = field(default_factory=dict)
    sub_group: SubGroup | None = None
    policies: Mapping[str, int] = field(default_factory=dict)


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
        places: Places | None = None,
    ) -> "DomainSearch":
        """The domains that have the nodes of all ``holders``: of a sub-group, or of the gang.

        ``places`` tells how many such members each node takes; None: as many as the ledger has room
        for now.
        """
        among = domains_of(cycle)
        highest = among.highest_tier(topology)
        placed = rows_of_placed_members(cycle, members.gang, holders)
        found = None
        if highest is not None:
            if places is None:
                asked = asked_now(cycle, members)
            else:
                asked = _asked(
                    cycle,
                    members,
                    _once(open_rows(cycle, members.gang, members.sub_group), places),
                    None,
                )
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
        return self.among.domain(at)

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
            parts=sum(members.policies.values()),
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
        of = members.gang.key if members.policies else ""
        key = self.highest, members.least, roles, frozenset(kinds.items()), of
        if key not in known:
            found = fits(
                self.among,
                asked_of_empty(self.cycle, members),
                highest=self.highest,
                rows_of_placed_members=np.zeros(0, dtype=np.intp),
            )
            known[key] = self._largest(found)
        return known[key]

    def _largest(self, found: Fits) -> NearestDomain | None:
        """The largest of empty domains, which take what ``found`` says; None: one takes enough.

        Members of several shapes lack what all of them ask for at least.
        """
        at = nearest(self.among, found)
        if at is None or (found.allowed & found.enough).any():
            return None
        least, takes = self.members.least, int(found.takes[at])
        asked = np.sort([task.request for task in self.members.tasks], axis=0)[:least].sum(axis=0)
        there = self.cycle.snapshot.table.sizes()[self.among.rows_of(at)].sum(axis=0)
        short = np.maximum(asked - there, 0) if takes >= least else np.zeros_like(asked)
        lacks = self.cycle.snapshot.axis.amounts(short)
        name, parts = self.among.names[at], self._whole_parts(found, at)
        return NearestDomain(name, takes, lacks, empty=True, parts=parts)

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
        lacks, name = axis.amounts(short), self.among.names[at]
        parts = None if lacks else self._whole_parts(found, at)
        return NearestDomain(name, int(found.takes[at]), lacks, parts=parts)

    def _whole_parts(self, found: Fits, at: int) -> int | None:
        """How many sub-groups the domain has room for, where all members have some there."""
        if found.takes[at] < self.members.least or not found.torn[at]:
            return None
        return sum(self.members.policies.values()) - int(found.torn[at])


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


def _asked(cycle: Cycle, members: Members, places: Places, room: Matrix | None) -> Asked:
    """What ``members`` ask of a domain; ``room`` None: only ``places`` are known of nodes."""
    tasks, gang = members.tasks, members.gang
    counts = Counter((id(task.shape), task.pinned, task.role) for task in tasks)
    first = {(id(task.shape), task.pinned, task.role): task for task in tasks}
    alike = [Alike(task.role, counts[kind], places(task)) for kind, task in first.items()]
    if room is None:
        return Asked(alike, members.least, members.roles)
    measures = tuple(sums_asked(tasks, members.least, room=room, places=places))
    parts: Sequence[Parts] = ()
    if members.policies:
        waiting = units(gang, cycle.ledger.gang(gang), tasks)
        asked = parts_asked(
            domains_of(cycle), gang, members.policies, waiting, room=room, places=places
        )
        parts = tuple(asked)
    return Asked(alike, members.least, members.roles, measures, parts)


def asked_now(cycle: Cycle, members: Members) -> Asked:
    """What ``members`` ask of a domain as the ledger stands."""
    within = open_rows(cycle, members.gang, members.sub_group)
    return _asked(cycle, members, _once(within, cycle.finder.places), cycle.room)


def asked_of_empty(cycle: Cycle, members: Members) -> Asked:
    """What ``members`` ask of a domain in which nothing runs."""
    places, sizes = _once(None, cycle.finder.places_if_empty), cycle.snapshot.table.sizes()
    return _asked(cycle, members, places, sizes)


def domains_of(cycle: Cycle) -> Domains:
    """The domains of the cluster; without HyperNodes that is the cluster itself."""
    return cycle.snapshot.domains or whole_cluster(len(cycle.snapshot.table.nodes))


def _once(within: Rows | None, places: Places) -> Places:
    """``places`` on the nodes of the rows ``within`` (None: of all), asked once for each kind."""
    known: dict[tuple[int, NodeName], Counts] = {}

    def of(task: Task) -> Counts:
        kind = id(task.shape), task.pinned
        if kind not in known:
            known[kind] = _only(within, places(task))
        return known[kind]

    return of


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
