"""Sub-groups whose places depend on each other: which of them goes into which domain.

Terms keep sub-groups together in a domain, or apart in different ones. Placed one after the other,
each where it fits best, the first ones may leave no domain to the last. Here the domains of all of
them are searched: each is placed in one domain after the other, in a trial, and what comes next is
tried on what that leaves. Of sub-groups of one shape that finds places whenever each can be in one
domain of the tier, as far as the steps go. Equal sub-groups are tried in the order of their domains
only.
"""

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from app.core.actions.areas import open_rows
from app.core.actions.attempt import Attempt
from app.core.actions.cycle import Cycle
from app.core.actions.cycle import Steps as Yields
from app.core.actions.kinds import kind_of
from app.core.actions.network import DomainSearch, Members
from app.core.actions.sub_groups import place_unit
from app.core.gangs.need import Need
from app.core.gangs.units import Unit, units
from app.core.victims.packing import Steps
from app.model.domains import Domain
from app.model.gang import Gang, Task
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.topology import NetworkTopology, Tier

STEPS: Final = 3_000
"""Steps of the search for one gang, of which each domain that is looked at takes one."""
_TRY: Final = 9
"""So many more it costs to place a sub-group in a trial: 300 times, some hundred milliseconds."""
_PIECE: Final = 64
"""Units looked at between two yields."""


class _Choice(NamedTuple):
    """A unit, and the domains that it may be in; the domain None: wherever terms let it be."""

    unit: Unit
    domains: Sequence[Domain | None]
    kind: object
    """What equal choices have in common."""


class _There:
    """The sub-groups of each policy, and the members, that are among the choices still."""

    def __init__(self, choices: Sequence[_Choice]) -> None:
        self._of = Counter(each.unit.sub_group.policy for each in choices if each.unit.sub_group)
        self._members = sum(len(each.unit.tasks) for each in choices)

    def may_do(self, need: Need) -> bool:
        """Whether they are enough for what is needed."""
        enough = all(lacks <= self._of[policy] for policy, lacks in need.policies.items())
        return enough and self._members >= need.total

    def leave(self, unit: Unit) -> None:
        """That unit is none of them any more."""
        self._members -= len(unit.tasks)
        if unit.sub_group is not None:
            self._of[unit.sub_group.policy] -= 1


class _Chosen(NamedTuple):
    kind: object
    at: int
    """The position of its domain among those of its choice."""


def depend_on_each_other(gang: Gang) -> bool:
    """Whether required terms say where sub-groups go by where others of the gang are."""
    return gang.affinity is not None and any(not term.weight for term in gang.affinity.of_parts)


def domains_for(cycle: Cycle, members: Members, of: SubGroup) -> Sequence[Domain | None]:
    """The domains in which ``members`` may make the sub-group whole, the best first.

    None is the last one where the sub-group need not be in one domain.
    """
    gang = members.gang
    policy = next(each for each in gang.sub_groups if each.name == of.policy)
    asked = _asked(cycle, gang, policy)
    if asked is None:
        return [None]
    search = DomainSearch.of(cycle, asked, members, holders=of)
    found: list[Domain | None] = [*search.domains()]
    apart = policy.topology is None and not _has_to_be_in_one(gang, policy)
    return [*found, None] if search.anywhere or apart else found


def _asked(cycle: Cycle, gang: Gang, policy: SubGroupPolicy) -> NetworkTopology | None:
    """What the policy asks of the network, or the lowest tier of the terms that name it."""
    if policy.topology is not None or gang.affinity is None:
        return policy.topology
    tiers = [
        tier
        for term in gang.affinity.of_parts
        if not term.weight and policy.name in term.policies
        if (tier := _number(cycle, term.tier)) is not None
    ]
    return NetworkTopology(highest_tier=min(tiers)) if tiers else None


def _number(cycle: Cycle, tier: Tier) -> int | None:
    domains = cycle.snapshot.domains
    return None if domains is None else domains.tier_of(tier)


def _has_to_be_in_one(gang: Gang, policy: SubGroupPolicy) -> bool:
    near = gang.affinity.parts_near if gang.affinity is not None else ()
    return any(not term.weight and policy.name in term.policies for term in near)


@dataclass(slots=True, eq=False)
class RelatedUnits(Attempt):
    """Unit by unit, each in one of its domains, with the domains of all of them searched.

    The ``steps`` are shared by the attempts for one gang in several domains.
    """

    steps: Steps = field(default_factory=lambda: Steps(STEPS))

    def run(self) -> Yields:
        """Place units until the minimum is reached, or no choice of domains is left."""
        gang = self.backlog.gang
        if not depend_on_each_other(gang):
            return
        at = len(self.cycle.ledger.journal)
        choices = [
            self._choice(unit) for unit in units(gang, self.cycle.ledger.gang(gang), self.tasks)
        ]
        self.succeeded = yield from self._choose(choices, self.need, None)
        self.backlog.forget_failures()
        if self.succeeded:
            served = {entry.task for entry in self.cycle.ledger.placed_since(at)}
            self.placed = len(served)
            self.left.extend(t for t in self.tasks if t not in served and not t.is_slot)

    def _choice(self, unit: Unit) -> _Choice:
        gang, of = self.backlog.gang, unit.sub_group
        unit = unit._replace(tasks=tuple(self.need.needed_first(list(unit.tasks))))
        if of is None:
            return _Choice(unit, [None], None)
        members = Members(gang, unit.tasks, unit.lacks, sub_group=of)
        domains = domains_for(self.cycle, members, of)
        kinds = Counter(kind_of(task, self.cycle.ledger) for task in unit.tasks)
        names = tuple("" if domain is None else domain.name for domain in domains)
        return _Choice(unit, domains, (of.policy, unit.lacks, frozenset(kinds.items()), names))

    def _choose(
        self, choices: Sequence[_Choice], need: Need, last: _Chosen | None
    ) -> Generator[None, None, bool]:
        """Place some of the choices so that ``need`` is met; whether that is done."""
        if need.met and self.cycle.opened.gang_ready(self.backlog.gang):
            return True
        there = _There(choices)
        for number, choice in enumerate(choices):
            if not there.may_do(need):
                return False
            there.leave(choice.unit)
            if not _is_wanted(choice.unit, need):
                continue
            for at, domain in self._candidates(choice, last):
                with self.cycle.ledger.trial() as trial:
                    served = self._place(choice.unit, domain)
                    if served:
                        rest = [_Choice(each, [None], None) for each in choice.unit.rest(served)]
                        others = [*choices[number + 1 :], *rest]
                        less = _less(need, choice.unit, served)
                        chosen = _Chosen(choice.kind, at)
                        if (yield from self._choose(others, less, chosen)):
                            trial.keep()
                            return True
                yield
            if number % _PIECE == _PIECE - 1:
                yield
        return False

    def _candidates(
        self, choice: _Choice, last: _Chosen | None
    ) -> Iterator[tuple[int, Domain | None]]:
        """The domains that may have room for the unit, with their positions."""
        same = last is not None and last.kind is not None and last.kind == choice.kind
        first = last.at if last is not None and same else 0
        for at, domain in enumerate(choice.domains[first:], start=first):
            if not self.steps.take():
                return
            if self._may_fit(choice.unit, domain):
                self.steps.left -= _TRY
                yield at, domain

    def _may_fit(self, unit: Unit, domain: Domain | None) -> bool:
        """Whether sums let so many of the unit in as it lacks, by what is left to it by now."""
        if unit.sub_group is None or domain is None:
            return True
        cycle = self.cycle
        rows = domain.rows_within(open_rows(cycle, self.backlog.gang, unit.sub_group))
        kinds = Counter(kind_of(task, cycle.ledger) for task in unit.tasks)
        one = {kind_of(task, cycle.ledger): task for task in unit.tasks}
        takes = (
            min(count, int(cycle.finder.places(one[kind])[rows].sum()))
            for kind, count in kinds.items()
        )
        return sum(takes) >= unit.lacks

    def _place(self, unit: Unit, domain: Domain | None) -> Collection[Task]:
        """Give the unit its places in the domain; the members that have one, none if it fails."""
        cycle, at = self.cycle, len(self.cycle.ledger.journal)
        with cycle.inside(domain) if domain is not None else nullcontext():
            self.backlog.forget_failures()
            failure = place_unit(cycle, self.backlog, unit, chosen=domain is not None)
        if failure is not None:
            if self.first is None:
                self.first = failure.refusal
            return ()
        return {entry.task for entry in cycle.ledger.placed_since(at)}


def _is_wanted(unit: Unit, need: Need) -> bool:
    """Whether the unit brings the gang nearer to its minimum."""
    if unit.sub_group is not None and unit.sub_group.policy in need.policies:
        return True
    return any(need.takes(task.role) for task in unit.tasks)


def _less(need: Need, unit: Unit, served: Collection[Task]) -> Need:
    """What is needed once these members of the unit have places."""
    less = need.copy()
    for task in served:
        less.place(task.role)
    if unit.sub_group is not None:
        less.make_whole(unit.sub_group)
    return less
