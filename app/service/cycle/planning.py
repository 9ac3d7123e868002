"""When to plan, and what becomes of a plan.

A change marks the planner dirty. The next cycle starts at once, but not sooner than 20 ms (and four
times the last cycle's length) after the last one, and at least every second. A cycle works on its
own snapshot in slices of half a millisecond, so calls of kube-scheduler are answered in between. It
begins by giving back what nobody came for (:mod:`app.service.cycle.expiry`) and what queues may not
hold any more (:mod:`app.service.cycle.over_limit`). When nobody waits there is nothing to plan:
then a cycle only reports what changed, as it does when what changed cannot bring anybody a place,
such as room given back while all who wait lack members. Time can (pauses and vetoes end), so all is
planned a second after it was last, whatever other news there was.

A gang, or all when they are few, can be planned *on demand* in between
(:meth:`Planning.on_demand`), on what is true at that moment; a pod alone that is like the last one
may have a place without that (:mod:`app.service.cycle.equal_pods`). Two plans can then disagree,
and the cluster goes on while a cycle plans, so publishing checks every decision again
(:mod:`app.service.cycle.publishing`). What does not hold any more is left to the next cycle, which
then runs in one go.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member
from app.cache.gangs.missing import slots_wanted
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.placement.statics import ShapeCache
from app.core.planner import plan, plan_gang, plan_steps
from app.core.policy import Policies
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.plan import GangPlacement, Loan, Placement, Plan
from app.model.reason import Refusal
from app.model.snapshot import Snapshot
from app.service.activity import OTHER_LEADS, Activity
from app.service.configuration import Configuration
from app.service.cycle.allowed_victims import AllowedVictims
from app.service.cycle.cycle_log import CycleLog
from app.service.cycle.equal_pods import EqualPods
from app.service.cycle.expiry import Expiry
from app.service.cycle.over_limit import GiveBackOverLimit
from app.service.cycle.publishing import Published, Publisher
from app.service.cycle.queries import Queries
from app.service.cycle.refused import Refused
from app.service.cycle.snapshot_token import SnapshotToken
from app.service.cycle.taking_over import take_over
from app.service.cycle.vetoes import Vetoes
from app.service.limits import Limits
from app.service.ports import Clock
from app.telemetry import metrics


def _loop_time() -> float:
    """Seconds that nobody sets back."""
    return asyncio.get_running_loop().time()


log = logging.getLogger(__name__)

AT_ONCE = 128
"""So many groups and members at most are planned on demand together: some milliseconds."""

PlanSteps = Generator[None, None, Plan]

AfterCycle = Callable[[Collection[GroupKey]], None]


@dataclass(slots=True, eq=False)
class Planning:
    """Runs cycles.

    ``published`` are told of every placement that took effect, ``after`` which groups changed
    since the cycle before, ``stood_by`` that promises were given back since another replica leads.
    """

    cache: ClusterCache
    configuration: Configuration
    vetoes: Vetoes
    allowed_victims: AllowedVictims
    limits: Limits
    clock: Clock
    activity: Activity
    published: list[Published] = field(default_factory=list)
    after: list[AfterCycle] = field(default_factory=list)
    stood_by: list[Callable[[], None]] = field(default_factory=list)
    shown: frozenset[PodUid] = frozenset()
    """Members that only lacked nodes when all was planned last, and that lose their gates then."""
    loans: Mapping[GroupKey, Loan] = field(default_factory=dict)
    """What gangs held beyond the shares of their queues when all was planned last."""
    log: CycleLog = field(default_factory=CycleLog)
    first_cycle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set for good when everything has been looked at once, by a replica that stands by too."""
    deciding: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while this replica leads and has planned everything at least once since it does."""
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _ceased: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when this replica ceases to lead while it rests."""
    _shapes: ShapeCache = field(default_factory=ShapeCache)
    _under_way: bool = False
    _in_one_go: bool = False
    _standing_by: bool = False
    _planned_by: Policies | None = None
    """The policies of the last cycle."""
    _due_at: float = float("-inf")
    """When all is planned again in any case, by the loop's clock."""

    expiry: Expiry = field(init=False)
    queries: Queries = field(init=False)
    _refused: Refused = field(init=False)
    _relief: GiveBackOverLimit = field(init=False)
    _snapshotter: Snapshotter = field(init=False)
    _equal_pods: EqualPods = field(init=False)
    _publisher: Publisher = field(init=False)

    def __post_init__(self) -> None:
        self.expiry = Expiry(self.cache, self.limits)
        self._refused = Refused(self.cache)
        self._snapshotter = Snapshotter(self.cache)
        self.queries = Queries(
            cache=self.cache,
            configuration=self.configuration,
            snapshotter=self._snapshotter,
            shapes=self._shapes,
            clock=self.clock,
        )
        self._relief = GiveBackOverLimit(self.cache, self.configuration, self._snapshotter)
        self._equal_pods = EqualPods(
            cache=self.cache,
            configuration=self.configuration,
            snapshotter=self._snapshotter,
            allowed_victims=self.allowed_victims,
            refused=self._refused,
        )
        self._publisher = Publisher(
            cache=self.cache,
            configuration=self.configuration,
            snapshotter=self._snapshotter,
            told=self.published,
            log=self.log,
            limits=self.limits,
        )

    @property
    def refusals(self) -> Mapping[GroupKey, Refusal]:
        """Why each group that waits does so, as was decided last."""
        return self._refused.reasons

    def notice(self) -> None:
        """Something changed: run a cycle soon."""
        self._wake.set()

    def follow_lead(self) -> None:
        """Stand by at once when another replica leads: the next cycle may be far off."""
        if self.deciding.is_set() and not self.activity.active:
            self._stand_by()
            self._ceased.set()

    @property
    def has_news(self) -> bool:
        """Whether something changed since the last cycle began: the cluster, or who leads.

        Room that others take or give back is none while nobody waits for any.
        """
        signals, waiting = self.cache.signals, self.cache.registry.pending
        news = signals.may_place if waiting else signals.dirty
        return news or bool(signals.groups) or self._standing_by is self.activity.active

    async def run(self) -> None:
        """Cycle for ever; cancel to stop."""
        while True:
            await self._rest()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._due_at):
                    await self._wake.wait()
            self._wake.clear()
            if self.activity.active:
                self._lead()
                await self._attempt()
            else:
                self._stand_by()

    async def _rest(self) -> None:
        """The pause after a cycle; whoever stops leading, and leads again, does not wait for it."""
        least = self.limits.cycle_gap_s
        self._ceased.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(4 * self.log.last_s - least, 0.0)):
                await self._ceased.wait()
        await asyncio.sleep(least)

    async def _attempt(self) -> None:
        """A cycle; one that fails is tried again later, and gangs are planned on demand."""
        try:
            await self.cycle()
        except Exception:
            metrics.CYCLE_FAILURES.inc()
            log.exception("planning cycle failed")
            self.cache.signals.dirty = True
            await asyncio.sleep(self.limits.cycle_idle_s)

    async def cycle(self) -> None:
        """One cycle: expire, relieve, plan, publish, report."""
        started = self.clock()
        self.expiry.expire(started)
        self._equal_pods.cycle_begins()
        self._relief.relieve(started)
        signals = self.cache.signals
        changed, signals.groups = signals.groups, set()
        try:
            await self._follow(changed, started)
        except Exception:
            signals.groups |= changed  # the next cycle tells of them
            raise

    async def _follow(self, changed: set[GroupKey], started: float) -> None:
        """Plan if need be, and tell what ``changed``, to which comes what does meanwhile."""
        self._refused.cycle_begins()
        if self._is_worthwhile():
            self._put_off()
            await self._plan(started)
        else:
            self._refused.drop_decided()
        if not self._leads:
            self._stand_by()
            return
        self.log.cycles += 1
        self.log.last_at = started
        self.log.last_s = self.clock() - started
        metrics.CYCLE_SECONDS.observe(self.log.last_s)
        changed |= self.cache.signals.groups | self._refused.note_causes()
        for tell in self.after:
            tell(changed)
        self.first_cycle.set()
        self.deciding.set()

    @property
    def _leads(self) -> bool:
        """Whether this replica has led all the time since the cycle began."""
        return self.activity.active and not self._standing_by

    def _is_worthwhile(self) -> bool:
        """Whether planning now may bring what it did not bring last time; takes the signals."""
        signals = self.cache.signals
        dirty, freed = signals.dirty, signals.freed
        signals.taken_up()
        return (
            dirty or self._due_at <= _loop_time() or (freed and self._refused.somebody_wants_room())
        )

    def _put_off(self) -> None:
        self._due_at = _loop_time() + self.limits.cycle_idle_s

    async def _plan(self, now: float) -> None:
        if self._planned_by is not self.configuration.policies:
            self._planned_by = self.configuration.policies
            self.cache.registry.look_again()
        if not self.cache.registry.pending:
            self._refused.replace({})
            self.shown = frozenset()
            self.loans = {}
            self.cache.collect((), now=now)
            return
        snapshot = self._snapshot(now)
        token = SnapshotToken(snapshot, self.configuration.policies)
        steps = plan_steps(snapshot, token.policies, now=now, shapes=self._shapes)
        self._under_way = True
        try:
            plan = await self._drive(steps)
        finally:
            self._under_way = False
        if not self._leads:
            return
        self._in_one_go = self._publish(plan, token, now=now)
        if self._in_one_go:
            self.cache.signals.dirty = True
            self.notice()
        self._equal_pods.renew(now=now)

    async def _drive(self, steps: PlanSteps) -> Plan:
        """Run the generator, giving the loop a turn whenever a slice of time is used up."""
        slice_ends = self.clock() + self.limits.slice_s
        while True:
            try:
                next(steps)
            except StopIteration as done:
                plan: Plan = done.value
                return plan
            if not self._in_one_go and self.clock() > slice_ends:
                await asyncio.sleep(0)
                slice_ends = self.clock() + self.limits.slice_s

    def _publish(self, plan: Plan, token: SnapshotToken, *, now: float) -> bool:
        """Make the plan true; returns whether part of it has to be planned again."""
        again = self._publisher.publish(plan, token, now=now)
        self._refused.replace(plan.refused)
        self.shown = plan.shown
        self.cache.signals.groups |= self.loans.keys() ^ plan.loans.keys()
        self.loans = plan.loans
        self.cache.collect(plan.collected, now=now)
        self.expiry.give_back_stuck(self.refusals, now)
        self.log.generation = plan.generation
        return again

    def on_demand(self, key: GroupKey, *, anew: bool = False) -> bool:
        """Plan one gang now; True when something was placed.

        When few are pending, all of them: kube-scheduler will ask for the others next. A gang that
        was refused waits for the next cycle, unless the last of its members has come since: asking
        again before anything was given back costs much and brings nothing. ``anew`` is for who was
        given room since: it does not wait.
        """
        group = self.cache.groups.get(key)
        if group is None or not group.known:
            return False
        if self._refused.stands(group) and not anew:
            return False
        now = self.clock()
        self.log.on_demand += 1
        if not self._under_way and self._few_are_pending():
            return self._plan_all(now, asked=key)
        snapshot = self._snapshot(now)
        decided = plan_gang(
            snapshot, self.configuration.policies, key=key, now=now, shapes=self._shapes
        )
        self._publisher.set_aside(decided, snapshot)
        for admitted in decided.admitted:
            self.cache.admit(admitted)
        placed = [each.gang for each in decided.placed if self._publisher.take(each, now=now)]
        self._refused.note_on_demand(group, decided.refused)
        return key in placed

    def at_once(self, member: Member, names: Sequence[NodeName]) -> bool:
        """Promise a pod alone one of the offered nodes; True if that took no plan."""
        group, now = self.cache.groups[member.group], self.clock()
        if not self._equal_pods.covers(group, now=now):
            return False
        node = self.queries.best_of(member, names, least=len(self.cache.registry.pending))
        if node is None:
            return False
        self.cache.admit(group.key)
        decided = GangPlacement(group.key, (Placement(member.task, node),), whole=True)
        if not self._publisher.take(decided, now=now):
            return False
        self._equal_pods.use()
        self.log.at_once += 1
        return True

    def _snapshot(self, now: float) -> Snapshot:
        return self._snapshotter.snapshot(
            vetoes=self.vetoes.active(now=now), preemptors=self.allowed_victims.preemptors()
        )

    def _few_are_pending(self) -> bool:
        pending = self.cache.registry.pending
        wanted = (max(len(group.waiting), slots_wanted(group)) for group in pending.values())
        return len(pending) <= AT_ONCE and sum(wanted) <= AT_ONCE

    def _plan_all(self, now: float, *, asked: GroupKey) -> bool:
        """A cycle's planning in one go; returns whether something of ``asked`` was placed."""
        self.cache.signals.taken_up()
        snapshot = self._snapshot(now)
        token = SnapshotToken(snapshot, self.configuration.policies)
        decided = plan(snapshot, token.policies, now=now, shapes=self._shapes)
        if self._publish(decided, token, now=now):
            self.cache.signals.dirty = True
        self._refused.note_all_on_demand()
        self._equal_pods.learn(snapshot.gangs.get(asked), now=now)
        self.notice()
        return any(placed.gang == asked for placed in decided.placed)

    def _lead(self) -> None:
        """This replica decides from now on."""
        if not self._standing_by:
            return
        self._standing_by = False
        self.cache.signals.dirty = True
        self.cache.signals.groups.update(self.cache.groups)
        take_over(self.cache)

    def _stand_by(self) -> None:
        """Another replica decides: whatever was promised here is void, and nothing is said."""
        self._standing_by = True
        self.log.last_s = 0.0
        self._put_off()
        self.deciding.clear()
        for key in list(self.cache.registry.reserved):
            self.cache.release(key, why=OTHER_LEADS)
        self.expiry.forget_observed(self.clock())
        self._refused.clear()
        self._refused.note_causes()
        self.shown = frozenset()
        self.cache.signals.groups.clear()  # all are looked at when this one leads again
        for tell in self.stood_by:
            tell()
        self.first_cycle.set()
