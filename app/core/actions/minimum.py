"""Placing a gang up to its minimum: all of it or nothing.

Inside a trial, members are placed in their order (those that a role's minimum needs first, slots
for members that do not exist yet last, and those that must be near others after these) until the
gang has its minimum; those of a gang that is parted in units (:mod:`app.core.actions.sub_groups`).
When it cannot get there the trial is undone and the gang holds nothing, so two gangs never keep
parts of each other's room.

A member that does not fit ends the attempt only if the members not tried yet could not make up for
it; equal ones are not tried again (volcano.md §3.5, NeedContinueAllocating). The reason of the
first failure is kept, in the numbers of the gang: what its minimum asks for, and what is free.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from app.core.actions import futility, network, refusals
from app.core.actions.attempt import Attempt, place_at
from app.core.actions.backlog import Backlog, followers_last, rank
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.kinds import kind_of
from app.core.actions.packed_units import STEPS, PackedUnits
from app.core.actions.related_units import STEPS as RELATED_STEPS
from app.core.actions.related_units import RelatedUnits, depend_on_each_other
from app.core.actions.spreading import SpreadAttempt, areas, is_spread
from app.core.actions.sub_groups import UnitAttempt, beyond_pieces
from app.core.gangs import slots
from app.core.gangs.need import Need
from app.core.gangs.task_topology import tells_tasks_apart
from app.core.gangs.units import units, whole_by_then
from app.core.victims.packing import Steps as SearchSteps
from app.model.domains import Domain
from app.model.gang import Gang, Task
from app.model.reason import Cause, Refusal
from app.model.topology import NetworkTopology

AttemptKind = Callable[[Cycle, Backlog, Sequence[Task], Need], Attempt]

PIECE = 8
"""Members placed between two yields."""


def is_reached(cycle: Cycle, gang: Gang) -> bool:
    """Whether ``gang`` has its minimum, as the ledger stands and for every plugin."""
    return Need.of(gang, cycle.ledger.gang(gang)).met and cycle.opened.gang_ready(gang)


def place_minimum(cycle: Cycle, backlog: Backlog) -> Generator[None, None, bool]:
    """Give the gang its minimum, or refuse it; returns whether it got it.

    ``backlog`` keeps what is left to place when it did.
    """
    gang = backlog.gang
    need = Need.of(gang, cycle.ledger.gang(gang))
    extra = slots.slots_of(gang, cycle.snapshot, made=cycle.slot_shapes)
    refusal = _too_few(cycle, gang, need, extra)
    if refusal is not None:
        cycle.refuse(gang, refusal)
        return False
    tasks = need.needed_first(_in_order(cycle, backlog, extra))
    if is_spread(gang):
        return (yield from _place_spread(cycle, backlog, tasks, need=need))
    members = _members(cycle, gang, tasks, need)
    refusal = beyond_pieces(cycle, members) if need.policies else None
    if refusal is not None:
        cycle.refuse(gang, refusal)
        return False
    if gang.topology is not None:
        found = yield from _place_in_domain(cycle, backlog, members, need=need, asked=gang.topology)
        if found is not None:
            return found
    if gang.sub_groups:
        return (yield from _place_units(cycle, backlog, tasks, need=need))
    demand = futility.demand_of(cycle.ledger, gang.queue, tasks, need=need)
    demand = futility.ruled(demand, cycle.plugin_keys(gang, tasks))
    failure = cycle.futile.recall(demand)
    if failure is None:
        in_order = followers_last(cycle.snapshot, tasks)
        one_by_one = MemberAttempt(cycle, backlog, in_order, need.copy())
        failure = yield from _try(cycle, one_by_one)
        if failure is None:
            return True
        if one_by_one.first is not None:
            cycle.futile.remember(demand, failure)
    wanted = tasks[: need.members]
    cycle.refuse(gang, refusals.of_minimum(cycle, gang, failure, wanted=wanted))
    return False


def _members(cycle: Cycle, gang: Gang, tasks: Sequence[Task], need: Need) -> network.Members:
    """What the minimum takes; ``need`` is told which sub-groups are whole then in any case."""
    if gang.sub_groups:
        waiting = units(gang, cycle.ledger.gang(gang), tasks)
        need.policies = dict(whole_by_then(waiting, tasks, need.members) | Counter(need.policies))
    return network.Members(gang, tasks, need.members, need.roles, policies=need.policies)


def _place_in_domain(
    cycle: Cycle,
    backlog: Backlog,
    members: network.Members,
    *,
    need: Need,
    asked: NetworkTopology,
) -> Generator[None, None, bool | None]:
    """Give the gang its minimum inside one domain, or refuse it; None: it may lie anywhere."""
    gang, tasks = backlog.gang, members.tasks
    in_order = followers_last(cycle.snapshot, tasks)
    search, kinds = network.DomainSearch.of(cycle, asked, members), _inside(gang)
    for domain in search.domains():
        backlog.forget_failures()
        with cycle.inside(domain):
            for kind in kinds:
                failure = yield from _try(cycle, kind(cycle, backlog, in_order, need.copy()))
                if failure is None:
                    return True
                if failure.refusal.cause in refusals.OF_LIMITS:
                    wanted = tasks[: need.members]
                    cycle.refuse(gang, refusals.of_minimum(cycle, gang, failure, wanted=wanted))
                    return False
    backlog.forget_failures()
    if search.anywhere:
        return None
    cycle.refuse(gang, search.refusal())
    return False


def _place_spread(
    cycle: Cycle, backlog: Backlog, tasks: Sequence[Task], *, need: Need
) -> Generator[None, None, bool]:
    """Give the gang its minimum in as many domains as it asks for, or refuse it."""
    gang, in_order = backlog.gang, followers_last(cycle.snapshot, tasks)
    members = network.Members(gang, tasks, need.members, roles=need.roles)
    search: network.DomainSearch | None = None
    domains: Iterable[Domain | None] = [None]
    if gang.topology is not None:
        search = network.DomainSearch.of(cycle, gang.topology, members)
        domains = chain(search.domains(), [None] if search.anywhere else [])
    kinds, first = _inside(gang), None
    for domain in domains:
        with cycle.inside(domain) if domain is not None else nullcontext():
            for area in areas(cycle, gang, tasks):
                backlog.forget_failures()
                with cycle.inside(area) if area is not None else nullcontext():
                    for kind in kinds:
                        failure = yield from _try(
                            cycle, kind(cycle, backlog, in_order, need.copy())
                        )
                        if failure is None:
                            return True
                        first = first or failure
                        if failure.refusal.cause in refusals.OF_LIMITS:
                            wanted = tasks[: need.members]
                            told = refusals.of_minimum(cycle, gang, failure, wanted=wanted)
                            cycle.refuse(gang, told)
                            return False
    backlog.forget_failures()
    no_room = first is None or first.refusal.cause is Cause.NOT_ENOUGH_RESOURCES
    if search is not None and not search.anywhere and no_room:
        cycle.refuse(gang, search.refusal())
    elif first is not None:
        wanted = tasks[: need.members]
        cycle.refuse(gang, refusals.of_minimum(cycle, gang, first, wanted=wanted))
    return False


def _inside(gang: Gang) -> Sequence[AttemptKind]:
    """How places are looked for inside one domain, the quickest way first."""
    steps, related = SearchSteps(STEPS), SearchSteps(RELATED_STEPS)
    if not gang.sub_groups:
        if is_spread(gang):
            return (MemberAttempt, PackedAttempt, partial(SpreadAttempt, steps=steps))
        return (MemberAttempt, PackedAttempt)
    if depend_on_each_other(gang):
        return (
            UnitAttempt,
            partial(RelatedUnits, steps=related),
            partial(PackedUnits, steps=steps),
        )
    return (UnitAttempt, partial(PackedUnits, steps=steps))


def tasks_of_minimum(cycle: Cycle, backlog: Backlog) -> Sequence[Task]:
    """The members and slots of ``backlog`` that the minimum of its gang would take first."""
    gang = backlog.gang
    need = Need.of(gang, cycle.ledger.gang(gang))
    extra = slots.slots_of(gang, cycle.snapshot, made=cycle.slot_shapes)
    return need.needed_first(_in_order(cycle, backlog, extra))[: need.members]


def _in_order(cycle: Cycle, backlog: Backlog, extra: Sequence[Task]) -> list[Task]:
    """The members and then the slots, or both in one order where tasks belong together."""
    tasks = [*backlog.tasks, *extra]
    if extra and tells_tasks_apart(backlog.gang.annotations):
        key = cycle.opened.task_key(backlog.gang)
        tasks.sort(key=lambda task: rank(task, key))
    return tasks


def _place_units(
    cycle: Cycle, backlog: Backlog, tasks: Sequence[Task], *, need: Need
) -> Generator[None, None, bool]:
    """Place the minimum of a gang that is parted.

    What one such gang did not get says nothing of others.
    """
    gang, wanted = backlog.gang, tasks[: need.members]
    in_order = followers_last(cycle.snapshot, tasks)
    failure = yield from _try(cycle, UnitAttempt(cycle, backlog, in_order, need.copy()))
    searches = (RelatedUnits, PackedUnits) if depend_on_each_other(gang) else (PackedUnits,)
    for search in searches:
        if failure is not None and failure.refusal.cause not in refusals.OF_LIMITS:
            searched = search(cycle, backlog, in_order, need.copy())
            failure = failure if (yield from _try(cycle, searched)) else None
    if failure is None:
        return True
    failure = replace(failure, placed=min(failure.placed, max(len(wanted) - 1, 0)))
    cycle.refuse(gang, refusals.of_minimum(cycle, gang, failure, wanted=wanted))
    return False


def awaits_unknown(cycle: Cycle, gang: Gang) -> Refusal | None:
    """The refusal of a gang that lacks members of which nothing is known: no turn would help it."""
    return None if slots.is_described(gang) else lacks_members(cycle, gang)


def lacks_members(cycle: Cycle, gang: Gang) -> Refusal | None:
    """The refusal of a gang that its members cannot bring to its minimum, nor any awaited ones."""
    if not gang.lacks_members and gang.able >= gang.min_member:
        return None
    need = Need.of(gang, cycle.ledger.gang(gang))
    extra = slots.slots_of(gang, cycle.snapshot, made=cycle.slot_shapes)
    return _too_few(cycle, gang, need, extra)


def _try(cycle: Cycle, attempt: Attempt) -> Generator[None, None, futility.Failure | None]:
    backlog = attempt.backlog
    with cycle.ledger.trial() as trial:
        yield from attempt.run()
        if attempt.succeeded:
            trial.keep()
            cycle.decide(backlog.gang, cycle.ledger.placed_since(trial.start), whole=True)
    if not attempt.succeeded:
        first = attempt.first or refusals.kept_back(backlog.gang)
        now = cycle.ledger.moment()
        return futility.Failure(first, attempt.placed, attempt.taken, now)
    backlog.tasks = attempt.left
    if attempt.first is not None:
        cycle.refuse(backlog.gang, refusals.of_member(cycle, backlog.gang, attempt.first))
    return None


def _too_few(cycle: Cycle, gang: Gang, need: Need, extra: Sequence[Task]) -> Refusal | None:
    """The refusal of a gang that could not get its minimum in an empty cluster either."""
    if not extra:
        refusal = cycle.opened.gang_valid(gang)
        if refusal is not None:
            return refusal
    lacks = need.total > len(gang.waiting) + len(extra)
    if need.roles:
        by_role = Counter(task.role for task in (*gang.waiting, *extra))
        lacks |= any(count > by_role[role] for role, count in need.roles.items())
    if lacks or gang.lacking_of_policies(gang.sub_group_able):
        return refusals.too_few(gang)
    return None


@dataclass(slots=True, eq=False)
class MemberAttempt(Attempt):
    """Member by member."""

    _untried: Counter[str] | None = None
    """Roles of the members after the one at hand, counted once one has failed."""

    def run(self) -> Steps:
        """Place until the minimum is reached or out of reach."""
        for number, task in enumerate(self.tasks):
            if self._untried is not None:
                self._untried[task.role] -= 1
            if self.succeeded or not self.need.takes(task.role):
                if not task.is_slot:
                    self.left.append(task)
            elif not self._take(task) and not self._may_succeed(task.role, after=number):
                return
            if number % PIECE == PIECE - 1:
                yield

    def _take(self, task: Task) -> bool:
        """Try one member; returns whether it has a place."""
        ledger = self.cycle.ledger
        kind = kind_of(task, ledger)
        if self.backlog.has_failed(kind, ledger):
            return False
        refusal = self.cycle.try_place(self.backlog.gang, task)
        if refusal is not None:
            self.backlog.failed[kind] = ledger.moment()
            self.first = self.first or refusal
            return False
        self.placed += 1
        if self.first is None:
            self.taken += task.request
        self.need.place(task.role)
        self.succeeded = self.need.met and self.cycle.opened.gang_ready(self.backlog.gang)
        return True

    def _may_succeed(self, role: str, *, after: int) -> bool:
        """Whether the members after that position could still make up for one that failed."""
        if self._untried is None:
            self._untried = Counter(task.role for task in self.tasks[after + 1 :])
        lacking = self.need.roles.get(role, 0)
        return lacking <= self._untried[role] and self.need.total <= self._untried.total()


@dataclass(slots=True, eq=False)
class PackedAttempt(Attempt):
    """All members of the minimum at once, where an exact packing of their shapes has room for them.

    Members that are placed one by one may leave gaps that are too small for the last ones.
    """

    def run(self) -> Steps:
        """Place the members that the minimum takes first."""
        cycle, gang = self.cycle, self.backlog.gang
        tasks = self.need.needed_first(list(self.tasks))
        wanted, others = tasks[: self.need.members], tasks[self.need.members :]
        hint = network.packing(cycle, wanted)
        if hint is not None:
            placed = place_at(cycle, gang, wanted, need=self.need, hint=hint)
            self.succeeded = placed is not None
        self.left.extend(task for task in others if not task.is_slot)
        yield
