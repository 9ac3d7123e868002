"""Members of sub-groups: placed so many together that their sub-group is whole, or not at all.

A gang that is parted is placed unit by unit (:mod:`app.core.gangs.units`). A member that does not
fit is made up for by others of its sub-group; a unit that lacks too many gives its room back, and
the next one of its policy stands in for it. Members that a sub-group has beyond its size come last.
"""

from collections import Counter, deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from app.core.actions import network, refusals
from app.core.actions.attempt import Attempt
from app.core.actions.backlog import Backlog, followers_last
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.futility import Failure
from app.core.actions.kinds import TaskKind, kind_of
from app.core.gangs.units import Unit, goes_alone, incomplete, units
from app.core.placement.domains import Parts, held
from app.model.gang import Task
from app.model.ids import CLUSTER
from app.model.parts import SubGroupPolicy
from app.model.reason import NearestDomain, Never, Refusal
from app.model.topology import NetworkTopology


def place_next_unit(cycle: Cycle, backlog: Backlog) -> Generator[None, None, bool]:
    """Place one more unit; returns whether it did. Those that request nothing are left."""
    gang, account = backlog.gang, cycle.ledger.gang(backlog.gang)
    if backlog.units is None:
        backlog.units = deque(units(gang, account, followers_last(cycle.snapshot, backlog.tasks)))
    while backlog.units:
        unit = backlog.units.popleft()
        if unit.tasks[0].best_effort and goes_alone(gang, account, unit.tasks[0]):
            continue
        at = len(cycle.ledger.journal)
        failure = place_unit(cycle, backlog, unit)
        if failure is None:
            entries = cycle.ledger.placed_since(at)
            cycle.decide(gang, entries, whole=False)
            backlog.units.extend(unit.rest({entry.task for entry in entries}))
            return True
        wanted = unit.tasks[: unit.lacks]
        cycle.refuse(gang, refusals.of_members(cycle, gang, failure, wanted=wanted))
        yield
    refusal = incomplete(gang)
    if refusal is not None:
        cycle.refuse(gang, refusal)
    return False


def place_unit(
    cycle: Cycle, backlog: Backlog, unit: Unit, *, chosen: bool = False
) -> Failure | None:
    """Give so many of ``unit`` places in its domain as it lacks, or say why that cannot be.

    ``chosen``: the cycle is inside its domain by now.
    """
    gang = backlog.gang
    sub_group = unit.sub_group or gang.sub_group_of.get(unit.tasks[0].uid)
    members = network.Members(gang, unit.tasks, unit.lacks, sub_group=sub_group)
    if chosen or not network.levels(cycle, members):
        return _place_together(cycle, backlog, unit)

    def attempt() -> Failure | None:
        backlog.forget_failures()
        return _place_together(cycle, backlog, unit)

    failure = network.place_inside(cycle, members, attempt)
    backlog.forget_failures()
    return failure


def _place_together(cycle: Cycle, backlog: Backlog, unit: Unit) -> Failure | None:
    """Give so many of ``unit`` places on the ledger as it lacks, or say why that cannot be.

    What like units did not get they do not get later either, while room only gets less. Where
    terms tell sub-groups apart, only the same one is like.
    """
    kinds = [kind_of(task, cycle.ledger) for task in unit.tasks]
    asks = None if backlog.gang.affinity is None else unit.sub_group
    rows = b"" if cycle.within is None else cycle.within.tobytes()
    like = unit.lacks, frozenset(Counter(kinds).items()), asks, rows
    known = backlog.failed_units.get(like)
    if known is not None and cycle.ledger.only_filled_since(known.since):
        return known
    taken = np.zeros(len(cycle.snapshot.axis), dtype=np.int64)
    placed, spare, refused = 0, len(unit.tasks) - unit.lacks, dict[TaskKind, Refusal]()
    with cycle.ledger.trial() as trial:
        for task, kind in zip(unit.tasks, kinds, strict=True):
            refusal = refused.get(kind) or cycle.try_place(backlog.gang, task)
            if refusal is not None:
                refused[kind] = refusal
                spare -= 1
                if spare < 0:
                    break
                continue
            if not refused:
                taken += task.request
            placed += 1
            if placed == unit.lacks:
                trial.keep()
                return None
    first = next(iter(refused.values()))
    now = cycle.ledger.moment()
    failure = backlog.failed_units[like] = Failure(first, placed, taken, now)
    return failure


def beyond_pieces(cycle: Cycle, members: network.Members) -> Refusal | None:
    """The refusal of a gang where all domains of the cluster hold too few of its sub-groups.

    It is told from sums, without a search; None: they may hold enough.
    """
    domains = network.domains_of(cycle)
    asked = {parts.policy: parts for parts in network.asked_now(cycle, members).parts}
    for policy in members.gang.sub_groups:
        topology, parts = policy.topology, asked.get(policy.name)
        if topology is None or policy.name not in members.policies:
            continue
        whole = None if parts is None else int(held(domains, parts)[-1])
        if domains.highest_tier(topology) is None:
            return _search_for_one(cycle, members, policy).refusal()
        if parts is not None and whole is not None and whole < parts.count:
            return _too_few_pieces(cycle, members, parts, whole=whole, policy=policy)
    return None


def _too_few_pieces(
    cycle: Cycle, members: network.Members, parts: Parts, *, whole: int, policy: SubGroupPolicy
) -> Refusal:
    """Why only so many sub-groups can be ``whole`` now, of those that are asked for."""
    search = _search_for_one(cycle, members, policy)
    refusal = search.refusal()
    if next(search.domains(), None) is None or refusal.domain is None:
        return refusal
    of_empty = network.asked_of_empty(cycle, members).parts
    empty = next(each for each in of_empty if each.policy == policy.name)
    most = int(held(search.among, empty)[-1])
    is_final = most < parts.count
    told = NearestDomain(CLUSTER, whole, (), is_final, parts=most if is_final else whole)
    return replace(
        refusal,
        where=f"{members.gang.key}, {policy.name}",
        never=Never.DOMAINS if is_final else None,
        domain=replace(refusal.domain, nearest=told, parts=parts.count),
        lacking=(parts.count - whole) * search.members.least,
    )


def _search_for_one(
    cycle: Cycle, members: network.Members, policy: SubGroupPolicy
) -> network.DomainSearch:
    """The domains for the first sub-group of ``policy`` that may be made whole."""
    gang, topology = members.gang, policy.topology or NetworkTopology()
    waiting = units(gang, cycle.ledger.gang(gang), members.tasks)
    first = next(u for u in waiting if u.sub_group and u.sub_group.policy == policy.name)
    of_one = network.Members(gang, first.tasks, first.lacks, sub_group=first.sub_group)
    return network.DomainSearch.of(cycle, topology, of_one, holders=first.sub_group)


@dataclass(slots=True, eq=False)
class UnitAttempt(Attempt):
    """Unit by unit, of a gang that is parted."""

    _served: set[Task] = field(default_factory=set)

    def run(self) -> Steps:
        """Place unit by unit until the minimum is reached or all have been tried."""
        gang = self.backlog.gang
        waiting = deque(units(gang, self.cycle.ledger.gang(gang), self.tasks))
        while waiting and not self.succeeded:
            unit = waiting.popleft()
            if self._is_wanted(unit):
                waiting.extend(self._take(self._in_order(unit)))
                yield
        if not (self.succeeded or self.first):
            self.first = incomplete(gang)
        unserved = (task for task in self.tasks if task not in self._served)
        self.left.extend(task for task in unserved if not task.is_slot)

    def _is_wanted(self, unit: Unit) -> bool:
        """Whether the unit brings the gang nearer to its minimum."""
        if unit.sub_group is not None and unit.sub_group.policy in self.need.policies:
            return True
        return any(self.need.takes(task.role) for task in unit.tasks)

    def _in_order(self, unit: Unit) -> Unit:
        """The unit with the members first that the minimums of roles need by now."""
        tasks = self.need.needed_first(list(unit.tasks))
        return unit._replace(tasks=tuple(followers_last(self.cycle.snapshot, tasks)))

    def _take(self, unit: Unit) -> Iterable[Unit]:
        """Try one unit; returns what is left of it if it has its places."""
        at = len(self.cycle.ledger.journal)
        failure = place_unit(self.cycle, self.backlog, unit)
        if failure is not None:
            if self.first is None:
                self.first = failure.refusal
                self.taken += failure.taken
            return ()
        served = {entry.task for entry in self.cycle.ledger.placed_since(at)}
        self._served |= served
        self.placed += len(served)
        for task in served:
            self.need.place(task.role)
            if self.first is None:
                self.taken += task.request
        if unit.sub_group is not None:
            self.need.make_whole(unit.sub_group)
        gang = self.backlog.gang
        self.succeeded = self.need.met and self.cycle.opened.gang_ready(gang)
        return unit.rest(served)
