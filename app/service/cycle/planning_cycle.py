"""A planning cycle: expire, give back, plan, publish, report.

A cycle works on its own snapshot in slices of half a millisecond, so calls of kube-scheduler are
answered in between. It begins by giving back reservations that were not used in time
(:mod:`app.service.cycle.expiry`) and what queues may not hold any more
(:mod:`app.service.cycle.over_limit`). When no group waits there is nothing to plan, but for the
action ``shuffle``, zones that close, and queues that give up what they hold: then a cycle only
reports what changed, as it does when what changed cannot bring any group a place, such as room
given back while all groups that wait lack members.

The cluster goes on while a cycle plans, and gangs are planned on demand in between
(:mod:`app.service.cycle.on_demand`), so publishing checks every decision again
(:mod:`app.service.cycle.publishing`). What does not hold any more is left to the next cycle, which
then runs in one go.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from app.cache.cluster import ClusterCache
from app.core.faults import Upkeep
from app.core.planner import plan_around_faults
from app.core.policy import Policies
from app.model.ids import GroupKey
from app.model.recorded import PlanCall
from app.service.cycle.changed_domains import GiveBackTorn
from app.service.cycle.cycle_log import CycleLog
from app.service.cycle.equal_pods import EqualPods
from app.service.cycle.expiry import Expiry
from app.service.cycle.last_plan import LastPlan
from app.service.cycle.leadership import Leadership
from app.service.cycle.over_limit import GiveBackOverLimit
from app.service.cycle.pace import Pace
from app.service.cycle.planner_input import PlannerInput
from app.service.cycle.publishing import Publisher
from app.service.cycle.slices import in_slices
from app.service.cycle.stored_intents import StoredIntents
from app.service.limits import Limits
from app.service.ports import Clock
from app.telemetry import metrics

AfterCycle = Callable[[Collection[GroupKey]], None]


@dataclass(slots=True, eq=False, kw_only=True)
class PlanningCycle:
    """``after`` are told which groups changed since the cycle before."""

    cache: ClusterCache
    limits: Limits
    clock: Clock
    input: PlannerInput
    expiry: Expiry
    over_limit: GiveBackOverLimit
    torn: GiveBackTorn
    equal_pods: EqualPods
    publisher: Publisher
    intents: StoredIntents
    last_plan: LastPlan
    leadership: Leadership
    pace: Pace
    log: CycleLog
    after: list[AfterCycle] = field(default_factory=list)
    under_way: bool = False
    """Whether a plan is being made, with turns given to the event loop."""
    _in_one_go: bool = False
    _planned_by: Policies | None = None
    """The policies of the last cycle."""

    async def run(self) -> None:
        """One cycle."""
        if not await self.intents.are_taken_up():
            self.pace.put_off()
            return
        started = self.clock()
        with self.input.faulty.parts.doing(Upkeep.EXPIRY):
            self.expiry.expire(started)
        self.equal_pods.cycle_begins()
        self.over_limit.give_back(started)
        self.torn.give_back()
        signals = self.cache.signals
        changed = signals.take_groups()
        try:
            await self._follow(changed, started)
        except Exception:
            signals.note_groups(changed)  # the next cycle tells of them
            raise

    async def _follow(self, changed: set[GroupKey], started: float) -> None:
        """Plan if need be, and tell what ``changed``, to which comes what does meanwhile."""
        refused = self.last_plan.refused
        refused.cycle_begins()
        if self._is_worthwhile():
            self.pace.put_off()
            await self._plan(started)
        else:
            refused.drop_decided()
        if not self.leadership.leads:
            self.leadership.stand_by()
            return
        self.log.cycles += 1
        self.log.last_at = started
        self.log.last_s = self.clock() - started
        metrics.CYCLE_SECONDS.observe(self.log.last_s)
        changed |= self.cache.signals.groups | refused.note_causes()
        errors = list(self._tell(changed))
        self.leadership.has_planned()
        if errors:
            raise ExceptionGroup("not all were told of a cycle", errors)

    def _tell(self, changed: Collection[GroupKey]) -> Iterator[Exception]:
        """Tell all of them, be it that some fail; yields the errors."""
        for tell in self.after:
            try:
                tell(changed)
            except Exception as error:
                yield error

    def _is_worthwhile(self) -> bool:
        """Whether planning now may bring what it did not bring last time; takes the signals."""
        signals = self.cache.signals
        dirty, freed = signals.dirty, signals.freed
        signals.taken_up()
        return dirty or self.pace.is_due or (freed and self.last_plan.refused.wants_room())

    async def _plan(self, now: float) -> None:
        if self._planned_by is not self.input.configuration.policies:
            self._planned_by = self.input.configuration.policies
            self.cache.registry.look_again()
            self.input.faulty.forget()
        waits = bool(self.cache.registry.pending) or bool(self.cache.giving_up)
        configuration = self.input.configuration
        if not (waits or configuration.shuffles or configuration.revokes):
            self.last_plan.clear()
            self.cache.collect((), now=now)
            return
        token = self.input.token(now)
        steps = plan_around_faults(
            token.snapshot, token.policies, now=now, shapes=self.input.shapes
        )
        self.under_way = True
        try:
            planned = await in_slices(
                steps,
                clock=self.clock,
                slice_s=self.limits.slice_s,
                in_one_go=self._in_one_go,
            )
        finally:
            self.under_way = False
        token = replace(token, snapshot=planned.snapshot)
        self.input.ring.note(PlanCall.CYCLE, token, planned.plan, now=now)
        plan = self.input.faulty.followed(planned, now=now)
        if not self.leadership.leads:
            return
        self._in_one_go = self.publisher.publish(plan, token, now=now)
        if self._in_one_go:
            self.cache.signals.note_dirty()
            self.pace.notice()
        self.equal_pods.renew(now=now)
