"""Making a plan true: what of it still holds, and which parts are told of it.

A plan is made on a snapshot, and the cluster goes on while that takes. So every gang is checked
against the live cluster: that its PodGroup asks for the same still, that some domain of the network
has all its nodes if it needs that, that the nodes have room, and, when there may be less of it by
now (:mod:`app.service.cycle.snapshot_token`), that queues and
namespaces may hold what was decided (:mod:`app.core.confirm`).

A gang that is refused here is planned anew at once. One to which this happens again and again lets
others go first for a while: it would take the same room from them in every plan, in vain.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from app.cache.cluster import ClusterCache
from app.cache.gangs.story import Stimulus
from app.cache.gangs.views import asks_like
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.confirm import confirmed, queue_waits_for
from app.core.faults import PlanningFault
from app.model.ids import GroupKey, QueueName
from app.model.plan import GangPlacement, Plan
from app.model.snapshot import Snapshot
from app.service.configuration import Configuration
from app.service.cycle.bearable_plans import unbearable
from app.service.cycle.changed_domains import APART, GiveBackTorn
from app.service.cycle.cool_down import start_cool_down
from app.service.cycle.cycle_log import CycleLog
from app.service.cycle.evictions import Evictions
from app.service.cycle.expiry import Expiry
from app.service.cycle.faulty_groups import FaultyGroups
from app.service.cycle.last_plan import LastPlan
from app.service.cycle.snapshot_token import SnapshotToken
from app.service.intake.http_extender.victims import AskedVictims
from app.service.limits import Limits
from app.telemetry import metrics

Published = Callable[[GangPlacement], None]


log = logging.getLogger(__name__)

REFUSED_IN_A_ROW = 5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Publisher:
    """``told`` are told of every placement that took effect."""

    cache: ClusterCache
    configuration: Configuration
    snapshotter: Snapshotter
    last_plan: LastPlan
    expiry: Expiry
    evictions: Evictions
    asked_victims: AskedVictims
    torn: GiveBackTorn
    faulty: FaultyGroups
    log: CycleLog
    limits: Limits
    told: list[Published] = field(default_factory=list)
    _refused: Counter[GroupKey] = field(default_factory=Counter)
    """How often in a row each gang was refused."""

    def publish(self, plan: Plan, token: SnapshotToken, *, now: float) -> bool:
        """Make the plan of a cycle true; returns whether part of it has to be planned again."""
        again = self._make_true(plan, token, now)
        self.last_plan.replace(plan)
        self.cache.collect(plan.collected, now=now)
        self.cache.unplaced_claims.keep(plan.unplaced_claims, now=now)
        self._note_refused_room(plan, now=now)
        self.expiry.give_back_stuck(self.last_plan.refusals, now)
        self.log.generation = plan.generation
        return again

    def _make_true(self, plan: Plan, token: SnapshotToken, now: float) -> bool:
        evicts = bool(plan.evictions) and not self._is_overtaken(token, admits=True)
        self.set_aside(plan, token.snapshot)
        wanted = self._as_planned(plan, token.snapshot)
        standing = self._confirmed(wanted, token, now)
        generation = plan.generation
        for key in standing.admitted:
            with self._following(key, now):
                self.cache.decisions.admit(key, generation=generation)
        taken: list[GangPlacement] = []
        for each in standing.placed:
            with self._following(each.gang, now):
                if self.take(each, now=now, generation=generation):
                    taken.append(each)
        self.log.stale += len(plan.placed) - len(taken)
        self._count({each.gang for each in wanted.placed} - {each.gang for each in taken}, now)
        dropped = bool(plan.evictions) and not evicts
        if evicts:
            dropped = self._begin_evictions(plan, token.snapshot, now)
        lost = len(taken) < len(wanted.placed) or len(standing.admitted) < len(wanted.admitted)
        return lost or dropped

    def _begin_evictions(self, plan: Plan, snapshot: Snapshot, now: float) -> bool:
        """Take up the evictions that the live cluster bears; whether some are to be planned anew.

        Those of groups that pause are not: they would be decided on again at once. Nor those that
        the HTTP extender is to be asked about first, or has spared pods of.
        """
        again = False
        for each in plan.evictions:
            gang = snapshot.gangs.get(each.preemptor)
            if self.evictions.pauses_for(each, now=now):
                continue
            if not self.asked_victims.may_go(each, now=now):
                metrics.EVICTION_PLANS.labels(each.action, "asked").inc()
                continue
            with self._following(each.preemptor, now):
                apart = self.torn.tears(each.preemptor, each.places, planned_on=snapshot.domains)
                why = APART if apart else unbearable(each, gang, self.cache)
                if why:
                    log.info("evictions dropped", extra={"group": each.preemptor, "why": why})
                    metrics.EVICTION_PLANS.labels(each.action, "dropped").inc()
                    again = True
                else:
                    self.evictions.begin(each, gang, now=now, generation=plan.generation)
        return again

    @contextmanager
    def _following(self, key: GroupKey, now: float) -> Iterator[None]:
        """Inside, an unexpected error leaves that group out of the next plans, and no other."""
        try:
            yield
        except Exception as error:
            fault = PlanningFault(group=key)
            fault.__cause__ = error
            self.faulty.note({key: fault}, now=now)

    def _note_refused_room(self, plan: Plan, *, now: float) -> None:
        """Remember since when no eviction helps groups: pods that start later are let settle."""
        for key, refusal in plan.refused.items():
            group = self.cache.groups.get(key)
            if group is not None and refusal.no_victims:
                self.cache.decisions.refuse_room(group, now=now)

    def set_aside(self, plan: Plan, snapshot: Snapshot) -> None:
        """Take groups out of planning that no end of other pods helps, if that holds still."""
        registry = self.cache.registry
        if snapshot.outlook != registry.outlook:
            return
        for key in plan.set_aside:
            group, gang = self.cache.groups.get(key), snapshot.gangs.get(key)
            if group is not None and gang is not None and group.version == gang.version:
                self.cache.decisions.set_aside(group, generation=snapshot.generation)

    def _count(self, refused: Set[GroupKey], now: float) -> None:
        for key in self._refused.keys() - refused:
            del self._refused[key]
        self._refused.update(refused)
        for key in refused:
            group = self.cache.groups.get(key)
            if group is not None and self._refused[key] >= REFUSED_IN_A_ROW:
                del self._refused[key]
                start_cool_down(self.cache, group, limits=self.limits, now=now)
                log.warning("its places do not hold, others go first", extra={"group": key})

    def take(
        self,
        decided: GangPlacement,
        *,
        now: float,
        by: Stimulus = Stimulus.CYCLE,
        generation: int = 0,
    ) -> bool:
        """Reserve these places for a gang; returns whether the live cluster bears it."""
        if not self.cache.reservations.reserve(decided, now=now, by=by, generation=generation):
            return False
        for tell in self.told:
            tell(decided)
        return True

    def queue_waits_for(self, decided: GangPlacement, *, now: float) -> QueueName | None:
        """The queue that may hold these places only when pods of it have terminated."""
        if all(usage.releasing is None for usage in self.cache.registry.usage().values()):
            return None
        policies, snapshot = self.configuration.policies, self.snapshotter.snapshot()
        return queue_waits_for(decided, policies, snapshot=snapshot, now=now)

    def _as_planned(self, plan: Plan, snapshot: Snapshot) -> Plan:
        """The plan for groups whose PodGroup is the same and asks for the same by now."""
        pending = self.cache.registry.pending
        begun = self.cache.pipelined.preemptors()

        def asks_like_then(key: GroupKey) -> bool:
            group, gang = self.cache.groups.get(key), snapshot.gangs.get(key)
            return group is not None and gang is not None and asks_like(group, gang)

        return replace(
            plan,
            admitted=tuple(key for key in plan.admitted if asks_like_then(key)),
            placed=tuple(
                p
                for p in plan.placed
                if p.gang in pending
                and p.gang not in begun
                and asks_like_then(p.gang)
                and not self.torn.tears(p.gang, p.placements, planned_on=snapshot.domains)
            ),
        )

    def _is_overtaken(self, token: SnapshotToken, *, admits: bool) -> bool:
        return token.is_overtaken(self.cache, self.configuration.policies, admits=admits)

    def _confirmed(self, plan: Plan, token: SnapshotToken, now: float) -> Plan:
        """What queues may hold besides what was decided, or changed, meanwhile."""
        if not (plan.admitted or plan.placed):
            return plan
        if not self._is_overtaken(token, admits=bool(plan.admitted)):
            return plan
        self.log.overtaken += 1
        # A pod that was admitted since others are evicted for it may not be nominated yet.
        snapshot = replace(
            self.snapshotter.snapshot(), nominated_room=token.snapshot.nominated_room
        )
        while True:
            try:
                return confirmed(plan, self.configuration.policies, snapshot=snapshot, now=now)
            except PlanningFault as fault:
                if fault.group is None:
                    raise
                self.faulty.note({fault.group: fault}, now=now)
                plan = plan.without(fault.group)
