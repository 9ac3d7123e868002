"""Sub-groups of members of several shapes: all that a gang needs at once, each in its domain.

Sub-groups that are placed one after the other, each where it fits best, may leave gaps that are too
small for the last ones. Here it is searched which sub-group goes into which domain, and members are
packed exactly (:mod:`app.core.victims.packing`). A sub-group of which more members wait than it
lacks takes the first ones. The search is bounded and may end without an answer. Of many sub-groups,
or on many nodes, there is none: each is packed by itself, the largest first, into the best domain
that has room for it.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from app.core.actions.attempt import Attempt
from app.core.actions.cycle import Steps as Yields
from app.core.actions.network import Members
from app.core.actions.related_units import domains_for
from app.core.actions.sub_groups import UnitAttempt
from app.core.gangs.units import units
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import Wanted
from app.model.domains import Domain
from app.model.gang import Task
from app.model.ids import NodeName
from app.model.parts import SubGroup
from app.model.resources import Rows

STEPS: Final = 20_000
"""Steps of the search for one gang: some hundred milliseconds at most."""
_CHOICE: Final = 50
"""So many of them it costs to choose a domain."""
_MOST_UNITS: Final = 8
_MOST_STEPS: Final = 400
"""Steps of the search for a packing of one sub-group."""
_MOST_PLACES: Final = 300
"""Kinds of members in their domains, times nodes: of more no packing is looked for."""

_Alike = tuple[int, NodeName]
"""What members alike have in common: the identity of their shape, and their pin."""


class _Choice(NamedTuple):
    """The members that make a sub-group whole, and the domains that they may be in.

    The domain None: wherever the gang may be.
    """

    sub_group: SubGroup
    tasks: Sequence[Task]
    domains: Sequence[Domain | None]

    @property
    def kind(self) -> tuple[object, ...]:
        """What equal choices have in common."""
        names = tuple("" if domain is None else domain.name for domain in self.domains)
        return self.sub_group.policy, frozenset(Counter(map(_alike, self.tasks)).items()), names


class _Chosen(NamedTuple):
    choice: _Choice
    domain: Domain | None


@dataclass(slots=True, eq=False)
class PackedUnits(Attempt):
    """Whole sub-groups where a packing has room for them; members by themselves come after that.

    The ``steps`` are shared by the attempts for one gang in several domains.
    """

    steps: Steps = field(default_factory=lambda: Steps(STEPS))

    def run(self) -> Yields:
        """Place the sub-groups that the minimum needs, and then what else it takes."""
        cycle, gang = self.cycle, self.backlog.gang
        if not self.need.policies or len({id(task.shape) for task in self.tasks}) < 2:
            return
        if self.steps.left <= 0:
            return
        yield
        choices, at = self._choices(), len(cycle.ledger.journal)
        lacking = Counter(self.need.policies)
        found = lacking.total() <= _MOST_UNITS and self._choose(choices, [], lacking)
        if not (found or self._place_each(choices, lacking)):
            return
        self.backlog.forget_failures()
        served = {entry.task for entry in cycle.ledger.placed_since(at)}
        rest = [task for task in self.tasks if task not in served]
        if self.need.met and cycle.opened.gang_ready(gang):
            self.succeeded = True
            self.left.extend(task for task in rest if not task.is_slot)
            return
        others = UnitAttempt(cycle, self.backlog, rest, self.need)
        yield from others.run()
        self.succeeded, self.left = others.succeeded, others.left

    def _choices(self) -> list[_Choice]:
        """The sub-groups that may be made whole, those first that go first."""
        gang = self.backlog.gang
        found = []
        for unit in units(gang, self.cycle.ledger.gang(gang), self.tasks):
            of = unit.sub_group
            if of is None or of.policy not in self.need.policies:
                continue
            tasks = self.need.needed_first(list(unit.tasks))[: unit.lacks]
            found.append(_Choice(of, tasks, self._domains(of, tasks)))
        return found

    def _domains(self, of: SubGroup, tasks: Sequence[Task]) -> Sequence[Domain | None]:
        """The domains for these members of a sub-group, the best first."""
        members = Members(self.backlog.gang, tasks, len(tasks), sub_group=of)
        return domains_for(self.cycle, members, of)

    def _choose(
        self, choices: Sequence[_Choice], chosen: list[_Chosen], lacking: Counter[str]
    ) -> bool:
        """Place the ``chosen`` and so many of the other choices as policies are ``lacking``."""
        if not +lacking:
            self.steps.left -= _CHOICE
            return self._place(chosen)
        left = Counter(choice.sub_group.policy for choice in choices)
        for number, choice in enumerate(choices):
            policy = choice.sub_group.policy
            left[policy] -= 1
            if lacking[policy] > 0:
                less = lacking - Counter([policy])
                for domain in choice.domains[_first(choice, chosen) :]:
                    self.steps.left -= _CHOICE
                    if self.steps.left <= 0:
                        return False
                    more = [*chosen, _Chosen(choice, domain)]
                    found = self._packed(more) is not None
                    if found and self._choose(choices[number + 1 :], more, less):
                        return True
            if left[policy] < lacking[policy]:
                return False
        return False

    def _place_each(self, choices: Sequence[_Choice], lacking: Counter[str]) -> bool:
        """Place so many sub-groups as policies lack, each by itself; whether that was possible."""
        nothing = np.zeros(len(self.cycle.snapshot.axis), dtype=np.int64)
        in_order = sorted(
            choices, key=lambda each: -sum((t.request for t in each.tasks), nothing).max()
        )
        for choice in in_order:
            policy = choice.sub_group.policy
            if lacking[policy] > 0 and self._place_one(choice):
                lacking -= Counter([policy])
        return not +lacking

    def _place_one(self, choice: _Choice) -> bool:
        """Place a sub-group into the best domain that has room for it by now."""
        for domain in self._domains(choice.sub_group, choice.tasks):
            self.steps.left -= 2 * _CHOICE
            if self.steps.left <= 0:
                return False
            if domain is not None and self._place([_Chosen(choice, domain)]):
                return True
        return False

    def _packed(self, chosen: Sequence[_Chosen]) -> list[int] | None:
        """A row for each of their members, in order; None: no packing is found."""
        cycle, rows = self.cycle, self._rows(chosen)
        alike: dict[tuple[_Alike, str], list[int]] = {}
        wanted: list[Wanted] = []
        tasks = [(task, domain) for choice, domain in chosen for task in choice.tasks]
        for at, (task, domain) in enumerate(tasks):
            key = _alike(task), "" if domain is None else domain.name
            alike.setdefault(key, []).append(at)
        if len(alike) * len(rows) > _MOST_PLACES:
            return None
        for positions in alike.values():
            task, domain = tasks[positions[0]]
            mask = cycle.finder.places(task)[rows] > 0
            if domain is not None:
                mask &= np.isin(rows, domain.rows)
            wanted.append(Wanted(mask, task.request, len(positions)))
        steps = Steps(min(self.steps.left, _MOST_STEPS if len(chosen) == 1 else STEPS))
        before = steps.left
        found = pack(cycle.room[rows], wanted, steps)
        self.steps.left -= before - steps.left
        if isinstance(found, NotPacked):
            return None
        row_of = {
            at: int(rows[row])
            for positions, some in zip(alike.values(), found, strict=True)
            for at, row in zip(positions, some, strict=True)
        }
        return [row_of[at] for at in range(len(tasks))]

    def _rows(self, chosen: Sequence[_Chosen]) -> Rows:
        """The rows of the nodes that they may be on together."""
        cycle = self.cycle
        rows = [domain.rows_within(cycle.within) for _, domain in chosen if domain is not None]
        if len(rows) == len(chosen):
            return np.unique(np.concatenate(rows))
        return np.arange(len(cycle.room), dtype=np.intp) if cycle.within is None else cycle.within

    def _place(self, chosen: Sequence[_Chosen]) -> bool:
        """Place them all, if every limit and rule allows that; whether it does."""
        cycle, gang, packed = self.cycle, self.backlog.gang, self._packed(chosen)
        if packed is None:
            return False
        rows = iter(packed)
        with cycle.ledger.trial() as trial:
            for choice, domain in chosen:
                with cycle.inside(domain) if domain is not None else nullcontext():
                    for task in choice.tasks:
                        row = next(rows)
                        if not cycle.may_place(gang, task, row):
                            return False
                        cycle.place(gang, task, row)
            trial.keep()
        for choice, _ in chosen:
            for task in choice.tasks:
                self.need.place(task.role)
            self.need.make_whole(choice.sub_group)
        self.placed = len(packed)
        return True


def _alike(task: Task) -> _Alike:
    return id(task.shape), task.pinned


def _first(choice: _Choice, chosen: Sequence[_Chosen]) -> int:
    """The position of the first domain to try: equal choices are in the order of their domains."""
    if not chosen or chosen[-1].choice.kind != choice.kind:
        return 0
    names = [None if domain is None else domain.name for domain in choice.domains]
    last = chosen[-1].domain
    return names.index(None if last is None else last.name)
