"""Gangs whose members are to be in so many domains of a tier: at least so many, or at most.

Rules about nodes keep a member out of a domain that would be one too many, and let the last members
open those that are lacking. For members of one shape it is enough to choose the domains with the
most room where there may be only so many. For members of several shapes sets of domains are tried,
and which member opens which domain; the others are packed exactly. That search is bounded.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, permutations
from typing import Final

import numpy as np

from app.core.actions.areas import open_rows
from app.core.actions.attempt import Attempt
from app.core.actions.cycle import Cycle
from app.core.actions.cycle import Steps as Yields
from app.core.actions.network import rows_of_placed_members
from app.core.topology.relations import Level
from app.core.victims.packing import NotPacked, Steps, pack
from app.core.victims.problem import Wanted
from app.model.domains import Domain, whole_cluster
from app.model.gang import Gang, Task
from app.model.ids import NodeName
from app.model.resources import Mask, Rows
from app.model.topology import SpreadTerm

STEPS: Final = 20_000
_CHOICE: Final = 50
"""So many steps it costs to choose what opens which domain."""
_MOST_SETS: Final = 64
"""Sets of domains that are tried for a gang."""
_MOST_PLACES: Final = 300
"""Kinds of members times nodes: of more no packing is looked for."""

_Alike = tuple[int, NodeName]


def is_spread(gang: Gang) -> bool:
    """Whether required terms say in how many domains the members are."""
    return bool(_terms(gang))


def _terms(gang: Gang) -> Sequence[SpreadTerm]:
    terms = gang.affinity.spread if gang.affinity is not None else ()
    return [term for term in terms if not term.weight]


def areas(cycle: Cycle, gang: Gang, tasks: Sequence[Task]) -> Iterator[Domain | None]:
    """Where to look for places, the best first: sets of as many domains as there may be.

    None: anywhere, as no term says how many domains there may be at most.
    """
    terms = _terms(gang)
    first = next((term for term in terms if term.most is not None), None)
    level = None if first is None else _level(cycle, first)
    if first is None or first.most is None or level is None:
        yield None
        return
    kinds = _kinds(tasks)
    room = np.zeros(level.nodes, dtype=np.int64)
    for some in kinds.values():
        room += np.minimum(cycle.finder.places(some[0]), len(some))
    mine = open_rows(cycle, gang)
    open_ = np.zeros(level.nodes, dtype=np.bool_)
    open_[slice(None) if mine is None else mine] = True
    sums = np.bincount(level.of, weights=(room * open_)[level.rows], minlength=len(level.names))
    held = level.occupied(_held(cycle, gang, level.nodes))
    others = [at for at in np.argsort(-sums, kind="stable").tolist() if sums[at] and not held[at]]
    more = min(max(first.most - int(held.sum()), 0), len(others))
    simple = len(kinds) <= 1 and len(terms) <= 1
    for chosen in islice(combinations(others, more), 1 if simple else _MOST_SETS):
        domains = held.copy()
        domains[list(chosen)] = True
        names = [level.names[at] for at in np.flatnonzero(domains).tolist()]
        yield Domain(" and ".join(names), np.flatnonzero(level.inside(domains)))


def _level(cycle: Cycle, term: SpreadTerm) -> Level | None:
    snapshot = cycle.snapshot
    return Level.at(snapshot.domains or whole_cluster(len(snapshot.table.nodes)), term.tier)


def _held(cycle: Cycle, gang: Gang, nodes: int) -> Mask:
    mask = np.zeros(nodes, dtype=np.bool_)
    mask[rows_of_placed_members(cycle, gang, None)] = True
    return mask


def _kinds(tasks: Sequence[Task]) -> dict[_Alike, list[Task]]:
    found: dict[_Alike, list[Task]] = {}
    for task in tasks:
        found.setdefault((id(task.shape), task.pinned), []).append(task)
    return found


@dataclass(slots=True, eq=False)
class SpreadAttempt(Attempt):
    """All members of the minimum at once: some open the domains that are lacking.

    The ``steps`` are shared by the attempts for one gang in several places.
    """

    steps: Steps = field(default_factory=lambda: Steps(STEPS))

    def run(self) -> Yields:
        """Place the members that the minimum takes first."""
        cycle, gang = self.cycle, self.backlog.gang
        tasks = self.need.needed_first(list(self.tasks))
        wanted, others = tasks[: self.need.members], tasks[self.need.members :]
        kinds = _kinds(wanted)
        term = max(_terms(gang), key=lambda each: each.least, default=None)
        level = None if term is None else _level(cycle, term)
        if term is None or level is None or len(kinds) < 2:
            return
        mine = open_rows(cycle, gang)
        every = np.flatnonzero(level.every)
        rows = every if mine is None else np.intersect1d(mine, every)
        if len(kinds) * len(rows) > _MOST_PLACES:
            return
        free = ~level.occupied(_held(cycle, gang, level.nodes))
        lacking = min(max(term.least - int((~free).sum()), 0), len(wanted))
        lacking = lacking if term.least > 1 else 0
        if lacking > int(free.sum()):
            return
        for openers in _openers(kinds, lacking):
            for domains in permutations(np.flatnonzero(free).tolist(), lacking):
                self.steps.left -= _CHOICE
                if self.steps.left <= 0:
                    return
                inside = [level.inside(_one(level, each))[rows] for each in domains]
                if self._place(wanted, kinds, list(zip(openers, inside, strict=True)), rows):
                    self.succeeded = True
                    self.left.extend(task for task in others if not task.is_slot)
                    return
            yield

    def _place(
        self,
        wanted: Sequence[Task],
        kinds: dict[_Alike, list[Task]],
        opening: Sequence[tuple[_Alike, Mask]],
        rows: Rows,
    ) -> bool:
        """Place all, those first that open a domain; whether every limit and rule allows that."""
        cycle, gang = self.cycle, self.backlog.gang
        left = {kind: list(some) for kind, some in kinds.items()}
        groups: list[list[Task]] = []
        asked: list[Wanted] = []
        for kind, inside in opening:
            task = left[kind].pop()
            groups.append([task])
            asked.append(Wanted((cycle.finder.places(task)[rows] > 0) & inside, task.request, 1))
        for some in left.values():
            if some:
                groups.append(some)
                mask = cycle.finder.places(some[0])[rows] > 0
                asked.append(Wanted(mask, some[0].request, len(some)))
        packed = pack(cycle.room[rows], asked, self.steps)
        if isinstance(packed, NotPacked):
            return False
        with cycle.ledger.trial() as trial:
            for group, places in zip(groups, packed, strict=True):
                for task, at in zip(group, places, strict=True):
                    row = int(rows[at])
                    if not cycle.may_place(gang, task, row):
                        return False
                    cycle.place(gang, task, row)
            need = self.need.copy()
            for task in wanted:
                need.place(task.role)
            if not (need.met and cycle.opened.gang_ready(gang)):
                return False
            trial.keep()
        self.need, self.placed = need, len(wanted)
        return True


def _openers(kinds: Mapping[_Alike, Sequence[Task]], lacking: int) -> Iterator[tuple[_Alike, ...]]:
    """The kinds of ``lacking`` members, one of which opens each domain: every choice once."""
    names = list(kinds)
    every = [at for at, some in enumerate(kinds.values()) for _ in some[:lacking]]
    last = every[len(every) - lacking :]
    chosen = every[:lacking]
    while True:
        yield tuple(names[at] for at in chosen)
        behind = [at for at in range(lacking) if chosen[at] < last[at]]
        if not behind:
            return
        first = behind[-1]
        start = bisect_right(every, chosen[first])
        chosen[first:] = every[start : start + lacking - first]


def _one(level: Level, domain: int) -> Mask:
    """That domain alone, shape ``(K,)``."""
    mask = np.zeros(len(level.names), dtype=np.bool_)
    mask[domain] = True
    return mask
