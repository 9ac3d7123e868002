"""Planning on demand: kube-scheduler asks for a pod that has no place, between two cycles.

A gang, or all groups when few are pending, is planned on what is true at that moment. A single pod
that is like the last one may have a place without a plan (:mod:`app.service.cycle.equal_pods`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member
from app.cache.gangs.missing import slots_wanted
from app.cache.gangs.story import Stimulus
from app.core.faults import PlanningFault
from app.core.planner import finish, plan_around_faults, plan_gang
from app.model.ids import GroupKey, NodeName
from app.model.plan import GangPlacement, Placement
from app.model.recorded import PlanCall
from app.service.cycle.cycle_log import CycleLog
from app.service.cycle.equal_pods import EqualPods
from app.service.cycle.evictions import Evictions
from app.service.cycle.pace import Pace
from app.service.cycle.planner_input import PlannerInput
from app.service.cycle.planning_cycle import PlanningCycle
from app.service.cycle.publishing import Publisher
from app.service.cycle.queries import Queries
from app.service.cycle.refused import Refused
from app.service.ports import Clock

AT_ONCE = 128
"""How many groups and members at most are planned on demand together: some milliseconds."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OnDemand:
    """Places pods that are asked for, whatever the ``cycle`` is doing."""

    cache: ClusterCache
    clock: Clock
    input: PlannerInput
    queries: Queries
    equal_pods: EqualPods
    publisher: Publisher
    refused: Refused
    evictions: Evictions
    cycle: PlanningCycle
    pace: Pace
    log: CycleLog

    def plan(self, key: GroupKey, *, anew: bool = False) -> bool:
        """Plan one gang now; True when something was placed.

        When few are pending, all of them: kube-scheduler will ask for the others next. A gang that
        was refused waits for the next cycle, unless the last of its members has come since: asking
        again before anything was given back costs much and brings nothing. ``anew`` is for a gang
        that was given room since: it does not wait.
        """
        group = self.cache.groups.get(key)
        if group is None or not group.known or not self.evictions.loaded:
            return False
        if self.evictions.of(key) is not None:
            return False
        if self.refused.stands(group) and not anew:
            return False
        now = self.clock()
        if key in self.input.faulty.left_out(now=now):
            return False
        self.log.on_demand += 1
        if not self.cycle.under_way and self._few_are_pending():
            return self._plan_all(now, asked=key)
        token = self.input.token(now)
        try:
            decided = plan_gang(
                token.snapshot, token.policies, key=key, now=now, shapes=self.input.shapes
            )
        except PlanningFault as fault:
            self.input.faulty.note({key: fault}, now=now)
            self.refused.note_on_demand(group, {key: fault.refusal})
            return False
        self.input.ring.note(PlanCall.GANG, token, decided, now=now, key=key)
        self.publisher.set_aside(decided, token.snapshot)
        for admitted in decided.admitted:
            self.cache.decisions.admit(admitted, generation=decided.generation)
        placed = [
            each.gang
            for each in decided.placed
            if self.publisher.take(each, now=now, generation=decided.generation)
        ]
        self.refused.note_on_demand(group, decided.refused, generation=decided.generation)
        return key in placed

    def at_once(self, member: Member, names: Sequence[NodeName]) -> bool:
        """Reserve one of the offered nodes for a single pod; True if that took no plan."""
        group, now = self.cache.groups[member.group], self.clock()
        if not self.evictions.loaded or not self.equal_pods.covers(group, now=now):
            return False
        node = self.queries.best_of(member, names, least=len(self.cache.registry.pending))
        if node is None:
            return False
        self.cache.decisions.admit(group.key)
        decided = GangPlacement(group.key, (Placement(member.task, node),), whole=True)
        if not self.publisher.take(decided, now=now, by=Stimulus.EQUAL_POD):
            return False
        self.equal_pods.use()
        self.log.at_once += 1
        return True

    def _few_are_pending(self) -> bool:
        pending = self.cache.registry.pending
        wanted = (max(len(group.waiting), slots_wanted(group)) for group in pending.values())
        return len(pending) <= AT_ONCE and sum(wanted) <= AT_ONCE

    def _plan_all(self, now: float, *, asked: GroupKey) -> bool:
        """A cycle's planning in one go; returns whether something of ``asked`` was placed."""
        self.cache.signals.taken_up()
        token = self.input.token(now)
        planned = finish(
            plan_around_faults(token.snapshot, token.policies, now=now, shapes=self.input.shapes)
        )
        token = replace(token, snapshot=planned.snapshot)
        self.input.ring.note(PlanCall.ON_DEMAND, token, planned.plan, now=now)
        decided = self.input.faulty.followed(planned, now=now)
        if self.publisher.publish(decided, token, now=now):
            self.cache.signals.note_dirty()
        self.refused.note_all_on_demand()
        self.equal_pods.learn(token.snapshot.gangs.get(asked), now=now)
        self.pace.notice()
        return any(placed.gang == asked for placed in decided.placed)
