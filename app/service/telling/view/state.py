"""The rows of the whole state, brought up to date when asked for.

It follows the cache and the planning cycles from its first look on until it is closed. A look costs
what has changed since the last one, and gives the event loop a turn every so many rows.
"""

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.core.faults import place_of
from app.core.figures import queue_figures
from app.core.ordering import line_positions
from app.model.ids import GroupKey
from app.model.reason import Refusal
from app.model.snapshot import Snapshot
from app.service.cycle.begun_eviction import BegunEviction
from app.service.cycle.eta.etas import EtaAnswer
from app.service.cycle.parts import PlanningParts
from app.service.ports import Clock
from app.service.telling.reasons import Reasons
from app.service.telling.view.expected import ExpectedStarts
from app.service.telling.view.jobs import Around, faulty_row, future_rows, job_row
from app.service.telling.view.nodes import NodeFacts, NodeRows
from app.service.telling.view.rows import (
    ClusterTotals,
    Estimate,
    JobRow,
    PlaceInLine,
    Row,
    RowKey,
    SchedulerState,
    Section,
)
from app.service.telling.view.totals import Shapes, cluster_totals, queue_rows, shown_resources

log = logging.getLogger(__name__)

_SLICE: Final = 16
"""Jobs that are looked at from one turn of the event loop to the next."""
_LOOKED_AT_AGAIN: Final = 100
"""Jobs that wait or have reservations, and that are looked at in each round though nothing was
heard of them: what is told of them depends on the time too."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sources:
    """What is looked at. ``held`` gives how many Bind calls wait at the barrier, by group."""

    cache: ClusterCache
    planning: PlanningParts
    reasons: Reasons
    held: Callable[[], Mapping[GroupKey, int]]
    notices: Callable[[], Collection[str]]
    clock: Clock


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """What the view says besides its rows."""

    at: float
    role: str
    notice: str
    scheduler: SchedulerState
    resources: tuple[str, ...]
    cluster: ClusterTotals


@dataclass(slots=True, eq=False)
class _Jobs:
    """The rows of jobs, and what was heard of them since the last look."""

    rows: dict[str, JobRow] = field(default_factory=dict)
    noted: set[GroupKey] = field(default_factory=set)
    refusals: dict[GroupKey, Refusal] = field(default_factory=dict)
    lines: Mapping[GroupKey, PlaceInLine] = field(default_factory=dict)
    held: Mapping[GroupKey, int] = field(default_factory=dict)
    evicting: Mapping[GroupKey, BegunEviction] = field(default_factory=dict)
    expected: Mapping[GroupKey, EtaAnswer] = field(default_factory=dict)
    again: list[GroupKey] = field(default_factory=list)
    """Jobs whose turn to be looked at again is to come."""
    shapes: Shapes = field(default_factory=Shapes)


class State:
    """The rows of one process; ``rows`` are by section and key."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._nodes = NodeRows(sources.cache)
        self._jobs = _Jobs(noted=set(sources.cache.groups))
        self.expected = ExpectedStarts(
            cache=sources.cache,
            etas=sources.planning.etas,
            reasons=sources.reasons,
            clock=sources.clock,
        )
        self._faults: set[str] = set()
        """Places in the code whose errors the log has."""
        self.rows: dict[Section, Mapping[str, Row]] = {section: {} for section in Section}
        self.head: Head | None = None
        """None before the first look."""
        sources.planning.cycle.after.append(self._note)

    def close(self) -> None:
        """Follow nothing any more."""
        self._sources.planning.cycle.after.remove(self._note)
        self._nodes.close()
        self.expected.close()

    def _note(self, changed: Collection[GroupKey]) -> None:
        self._jobs.noted.update(changed)

    @property
    def namespaces(self) -> Collection[str]:
        """The namespaces of which a name may be told."""
        return self._sources.cache.namespaces_heard_of

    def steps(self) -> Generator[None, None, set[RowKey]]:
        """Bring the rows up to date; returns those that may say something else than before."""
        planning, now = self._sources.planning, self._sources.clock()
        facts, before = self._nodes.facts(), self.rows
        changed: set[RowKey] = set()
        if planning.leadership.leads:
            self.expected.ask_if_due()
            snapshot = planning.queries.snapshotter.snapshot()
            nodes = yield from self._nodes.steps(facts)
            jobs = yield from self._follow_jobs(snapshot, now)
            yield
            policies = planning.queries.configuration.policies
            figures = queue_figures(snapshot, policies, now=now)
            yield
            queues = queue_rows(self._sources.cache, figures, self._jobs.rows.values())
            yield
            changed.update(RowKey(Section.NODES, key) for key in nodes)
            changed.update(RowKey(Section.JOBS, key) for key in jobs)
            self.rows = {
                Section.NODES: self._nodes.rows,
                Section.JOBS: self._jobs.rows,
                Section.QUEUES: _keyed(queues),
                Section.DOMAINS: self._nodes.domains,
                Section.FUTURE: _keyed(self._future()),
            }
        else:
            self.rows = {section: {} for section in Section}
        for section in Section:
            if self.rows[section] is not before[section]:
                keys = before[section].keys() | self.rows[section].keys()
                changed.update(RowKey(section, key) for key in keys)
        yield
        self.head = self._head(facts, now, leads=planning.leadership.leads)
        return changed

    # --- jobs ------------------------------------------------------------------------------------

    def _follow_jobs(self, snapshot: Snapshot, now: float) -> Generator[None, None, Iterable[str]]:
        jobs, sources = self._jobs, self._sources
        policies = sources.planning.queries.configuration.policies
        places = yield from line_positions(snapshot, policies, now=now)
        lines = {key: PlaceInLine(*place) for key, place in places.items()}
        evicting = {
            begun.intent.preemptor: begun
            for begun in sources.planning.evictions.under_way()
            if begun.intent.preemptor and begun.waits
        }
        expected = self.expected.answers
        around = Around(lines, sources.held(), evicting, self.expected.estimate)
        dirty, jobs.noted = jobs.noted, set()
        dirty |= _different(jobs.lines, lines) | _different(jobs.held, around.held)
        dirty |= jobs.evicting.keys() | evicting.keys()
        refusals = dict(sources.planning.last_plan.refusals)
        dirty |= _different(jobs.refusals, refusals)
        dirty |= _different(jobs.expected, expected) | self._again()
        jobs.lines, jobs.held, jobs.evicting = lines, around.held, evicting
        jobs.refusals, jobs.expected = refusals, expected
        for number, key in enumerate(dirty):
            group = sources.cache.groups.get(key)
            if group is None:
                jobs.shapes.follow(key, None)
                jobs.rows.pop(key, None)
            else:
                jobs.rows[key] = self._job_row(group, around)
            if number % _SLICE == 0:
                yield
        return dirty

    def _job_row(self, group: Group, around: Around) -> JobRow:
        """The row of one group; an error in it, which no code expects, is that group's alone."""
        sources = self._sources
        try:
            self._jobs.shapes.follow(group.key, group)
            return job_row(sources.cache, sources.reasons, group, around)
        except Exception as error:
            place = place_of(error)
            if place not in self._faults:
                self._faults.add(place)
                log.exception("the row of a group cannot be made", extra={"group": group.key})
            return faulty_row(group, place)

    def _again(self) -> set[GroupKey]:
        """The next jobs whose row depends on the time."""
        registry, jobs = self._sources.cache.registry, self._jobs
        if not jobs.again:
            jobs.again = [*registry.pending, *registry.aside, *registry.reserved]
        taken, jobs.again = jobs.again[:_LOOKED_AT_AGAIN], jobs.again[_LOOKED_AT_AGAIN:]
        return set(taken)

    # --- the rest --------------------------------------------------------------------------------

    def _future(self) -> Iterator[Row]:
        cache = self._sources.cache
        yield from future_rows(cache, cache.collected, self._jobs.evicting)
        yield from self.expected.rows()

    def _head(self, facts: NodeFacts, now: float, *, leads: bool) -> Head:
        planning, log = self._sources.planning, self._sources.planning.log
        notice = ""
        if not leads:
            notice = "; ".join(planning.leadership.activity.notices)
        elif not planning.leadership.first_cycle.is_set():
            notice = "no planning cycle has run yet"
        notices = tuple(islice(self._sources.notices(), 20))
        return Head(
            at=now,
            role="leads" if leads else "stands by",
            notice=notice,
            scheduler=SchedulerState(log.generation, log.last_s, log.last_at, notices),
            resources=shown_resources(facts),
            cluster=cluster_totals(facts, self._jobs.rows.values(), self._jobs.shapes),
        )


def row_of(sources: Sources, group: Group, *, eta: Estimate | None) -> JobRow:
    """The row of one job, for an answer about it alone; ``eta``: when it is expected to start."""
    key, planning = group.key, sources.planning
    lines: dict[GroupKey, PlaceInLine] = {}
    gang = sources.cache.registry.view(key) if key in sources.cache.registry.pending else None
    if gang is not None:
        found = planning.queries.line_position(gang)
        lines[key] = PlaceInLine(found.position, found.waiting)
    begun = planning.evictions.of(key)
    evicting = {key: begun} if begun is not None else {}
    around = Around(lines, sources.held(), evicting, lambda _key: eta)
    return job_row(sources.cache, sources.reasons, group, around)


def _keyed(rows: Iterable[Row]) -> dict[str, Row]:
    return {row.key: row for row in rows}


def _different(before: Mapping[GroupKey, object], now: Mapping[GroupKey, object]) -> set[GroupKey]:
    """The keys whose values differ."""
    return {key for key in before.keys() | now if _differ(before.get(key), now.get(key))}


def _differ(one: object, other: object) -> bool:
    return one is not other and one != other
