"""One course that things may take: the planner's cycles at the times when gangs end.

Gangs that run end when their run times say so, in one draw of these; gangs that start then end in
their turn. No gang comes. A gang whose run time is not known runs on for ever. All members of a
gang end together.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Final

from app.core.eta.afterwards import Afterwards, Holdings
from app.core.eta.run_times import UNKNOWN, RunTime
from app.core.placement.statics import ShapeCache
from app.core.planner import plan_around_faults
from app.core.policy import Policies
from app.core.simulation import Fate, Outcome, fate_of
from app.model.eviction import EvictionPlan
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.plan import GangPlacement, Plan
from app.model.reason import Refusal
from app.model.snapshot import MemberPlace, Snapshot

COURSES: Final = 19
"""Draws, a prime: of so many courses the 10th is the median, and the 18th is at 90 %."""
MOST_CYCLES: Final = 240
"""Of one course."""
_EXACT_CYCLES: Final = 40
_COARSE: Final = 0.05
"""After that many cycles, ends within so large a part of the time that has passed are one."""
_MOST_AFTER: Final = 5
"""Gangs named of those on whose end a start waits."""

_AT_ONCE: Final = 32
"""Gangs whose end is looked up between two yields."""

_WAKE: Final = GroupKey("")
"""In place of a gang that ends: one that was to wait goes on."""
_LET_GO: Final = GroupKey("/")
"""In place of a gang that ends: pods that terminate are gone."""


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What is known of run times, by group; that of a group that is not there is not known.

    ``began`` is when groups that run did (seconds since the epoch), ``slots`` are places that they
    keep for members that do not exist.
    """

    run_times: Mapping[GroupKey, RunTime]
    began: Mapping[GroupKey, float]
    slots: Mapping[GroupKey, Collection[MemberPlace]] = field(default_factory=dict)

    def run_time(self, key: GroupKey) -> RunTime:
        """What is known of the group's."""
        return self.run_times.get(key, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Start:
    """A gang starts ``at`` that time (seconds since the epoch), on the nodes of these ``rows``.

    ``after`` are gangs on whose end it waits, the last to end first. ``evicts``: pods are evicted
    for it.
    """

    at: float
    rows: tuple[int, ...]
    after: tuple[GroupKey, ...] = ()
    evicts: bool = False


@dataclass(slots=True, eq=False)
class Course:
    """What happens in one draw, from ``began`` up to ``now`` (seconds since the epoch).

    ``starts`` are in their order. ``ends`` are the times at which gangs that run now end. ``cut``:
    it was stopped before all had happened. ``lasting`` are gangs that have room and whose end is
    not known.
    """

    began: float
    now: float
    starts: dict[GroupKey, Start] = field(default_factory=dict)
    ends: dict[GroupKey, float] = field(default_factory=dict)
    refused: Mapping[GroupKey, Refusal] = field(default_factory=dict)
    never: dict[GroupKey, Refusal] = field(default_factory=dict)
    lasting: list[GroupKey] = field(default_factory=list)
    cut: bool = False


Steps = Generator[None, None, Course]


def share_of(key: GroupKey, draw: int) -> float:
    """Which share of a gang's run times is less than the one that it has in that draw."""
    digest = blake2b(key.encode(), digest_size=8).digest()
    step = 1 + int.from_bytes(digest[:4], "big") % (COURSES - 1)
    first = int.from_bytes(digest[4:], "big") % COURSES
    return ((first + step * draw) % COURSES + 0.5) / COURSES


def course_steps(
    snapshot: Snapshot,
    policies: Policies,
    expected: Expected,
    *,
    waiting: Collection[GroupKey],
    wanted: Collection[GroupKey],
    draw: int,
    now: float,
    shapes: ShapeCache,
    holdings: Holdings,
    stops: Callable[[], bool],
) -> Steps:
    """What happens from ``now`` on until all gangs ``wanted`` have started, in pieces.

    They are some of those that are ``waiting`` for their minimum.
    ``draw`` tells the run times apart that gangs have in different courses. ``stops`` is asked
    before each cycle.
    """
    taking = _Taking(
        snapshot=snapshot,
        policies=policies,
        expected=expected,
        draw=draw,
        began=now,
        shapes=shapes,
        stops=stops,
        waiting=set(waiting),
        left=set(wanted),
        world=Afterwards(snapshot, policies, holdings),
        course=Course(now, now),
    )
    return taking.steps()


@dataclass(slots=True, eq=False, kw_only=True)
class _Taking:
    snapshot: Snapshot
    policies: Policies
    expected: Expected
    draw: int
    began: float
    shapes: ShapeCache
    stops: Callable[[], bool]
    waiting: set[GroupKey]
    """Those that have not started."""
    left: set[GroupKey]
    """Those of them that are asked about."""
    world: Afterwards
    course: Course
    noted: int = 0
    ends: dict[GroupKey, float] = field(default_factory=dict)
    events: list[tuple[float, int, GroupKey]] = field(default_factory=list)
    freed: defaultdict[int, list[GroupKey]] = field(default_factory=lambda: defaultdict(list))
    """By row, the gangs that ended on the node."""
    ended: list[GroupKey] = field(default_factory=list)

    def steps(self) -> Steps:
        yield from self._begin()
        course, cycles = self.course, 0
        while self.left:
            if cycles >= MOST_CYCLES or (cycles and self.stops()):
                course.cut = True
                break
            evicted = yield from self._cycle()
            cycles += 1
            if not evicted and not self._go_on(cycles):
                break
        course.lasting = [
            gang.key
            for gang in self.snapshot.gangs.values()
            if gang.counts.holding and gang.key not in self.ends and self.world.gang(gang.key)
        ]
        return course

    def _begin(self) -> Generator[None, None, None]:
        """What is known to come: gangs end, pods terminate, evictions are under way."""
        now, snapshot = self.began, self.snapshot
        for number, gang in enumerate(snapshot.gangs.values()):
            if number % _AT_ONCE == 0:
                yield
            if gang.counts.holding:
                began = self.expected.began.get(gang.key, now)
                self._expect_end(gang.key, now, ran=max(now - began, 0.0))
        self.course.ends = dict(self.ends)
        graces = snapshot.running.grace[snapshot.running.releasing]
        if len(graces):
            self._note(now + float(graces.max()), _LET_GO)
        for gang in snapshot.pending:
            if gang.cool_down_until > now:
                self._note(gang.cool_down_until, _WAKE)
        for plan in snapshot.begun:
            self.world.evict(plan, now=now)
            preemptor = snapshot.gangs.get(plan.preemptor)
            if preemptor is not None and plan.places:
                self._start(preemptor, self._evicting(plan), after=False)

    def _cycle(self) -> Generator[None, None, bool]:
        """Plan once, and let the plan come true; whether pods are evicted by it."""
        now, snapshot = self.course.now, self.world.snapshot()
        planned = yield from plan_around_faults(
            snapshot, self.policies, now=now, shapes=self.shapes
        )
        plan = planned.with_refusals()
        self.world.take(plan, now=now)
        self._forget_ends(plan)
        for gang, fate in _fates(plan, snapshot):
            if fate.outcome in (Outcome.RUNS, Outcome.EVICTS):
                self._start(gang, self._of_fate(fate), after=True)
        for key, refusal in plan.refused.items():
            if refusal.never is not None and key in self.waiting:
                self.course.never.setdefault(key, refusal)
        self.course.refused = plan.refused
        return any(each.victims for each in plan.evictions)

    def _of_fate(self, fate: Fate) -> Start:
        index = self.snapshot.table.index
        rows = {index[place.node] for place in fate.places}
        wait = self._grace(fate.eviction) if fate.eviction is not None else 0.0
        evicts = fate.outcome is Outcome.EVICTS
        return Start(self.course.now + wait, tuple(sorted(rows)), evicts=evicts)

    def _evicting(self, plan: EvictionPlan) -> Start:
        index = self.snapshot.table.index
        rows = {index[place.node] for place in plan.places if place.node in index}
        return Start(self.course.now + self._grace(plan), tuple(sorted(rows)), evicts=True)

    def _grace(self, plan: EvictionPlan) -> float:
        running = self.snapshot.running
        positions = (running.index.get(victim.uid) for victim in plan.victims)
        return max((float(running.grace[at]) for at in positions if at is not None), default=0.0)

    def _start(self, gang: Gang, start: Start, *, after: bool) -> None:
        """The gang starts, unless it has: members beyond its minimum got places then."""
        key = gang.key
        if key not in self.ends:
            self._expect_end(key, start.at, ran=0.0)
        if key not in self.waiting:
            return
        self.waiting.discard(key)
        self.left.discard(key)
        causes = self._causes(start.rows, gang) if after else ()
        self.course.starts[key] = Start(start.at, start.rows, causes, start.evicts)

    def _causes(self, rows: tuple[int, ...], gang: Gang) -> tuple[GroupKey, ...]:
        """The gangs that ended on these nodes, or in the queue, or at all, the last first."""
        on_nodes = {key for row in rows for key in self.freed.get(row, ())}
        found = [key for key in reversed(self.ended) if key in on_nodes]
        if not found:
            gangs = self.snapshot.gangs
            found = [
                key
                for key in reversed(self.ended)
                if key in gangs and gangs[key].queue == gang.queue
            ]
        return tuple((found or list(reversed(self.ended)))[:_MOST_AFTER])

    def _forget_ends(self, plan: Plan) -> None:
        """Gangs that were evicted as a whole do not end, but start again."""
        for victim in (victim for each in plan.evictions for victim in each.victims):
            gang = self.world.gang(victim.gang)
            if gang is not None and not gang.counts.holding:
                self.ends.pop(victim.gang, None)

    def _expect_end(self, key: GroupKey, start: float, *, ran: float) -> None:
        left = self.expected.run_time(key).remaining(share_of(key, self.draw), ran=ran)
        if left is not None:
            self.ends[key] = start + left
            self._note(start + left, key)

    def _note(self, at: float, key: GroupKey) -> None:
        self.noted += 1
        heappush(self.events, (at, self.noted, key))

    def _go_on(self, cycles: int) -> bool:
        """Go to the next time when something ends; whether there is one."""
        until: float | None = None
        while self.events and (until is None or self.events[0][0] <= until):
            at, _, key = heappop(self.events)
            if key not in (_WAKE, _LET_GO) and self.ends.get(key) != at:
                continue  # it was evicted
            self.course.now = max(self.course.now, at)
            if until is None:
                passed = at - self.began
                until = at if cycles < _EXACT_CYCLES else at + _COARSE * passed
            if key == _LET_GO:
                self.world.let_go()
            elif key != _WAKE:
                for row in self.world.nodes_of(key):
                    self.freed[row].append(key)
                self.ended.append(key)
                self.world.end(key)
        return until is not None


def _fates(plan: Plan, snapshot: Snapshot) -> Iterator[tuple[Gang, Fate]]:
    """What becomes of the gangs that get places by ``plan``, or that pods are evicted for."""
    placed: defaultdict[GroupKey, list[GangPlacement]] = defaultdict(list)
    for each in plan.placed:
        placed[each.gang].append(each)
    evictions = {each.preemptor: each for each in plan.evictions if each.preemptor}
    for key in dict.fromkeys((*placed, *evictions)):
        gang = snapshot.gangs[key]
        own = (evictions[key],) if key in evictions else ()
        yield gang, fate_of(gang, replace(plan, placed=tuple(placed[key]), evictions=own))
