"""Making a plan true: what of it still holds, and who is told.

A plan is made on a snapshot, and the cluster goes on while that takes. So every gang is checked
against the live cluster: that its PodGroup asks for the same still, that the nodes have room, and,
when there may be less of it by now (:mod:`app.service.basis`), that queues and namespaces may hold
what was decided (:mod:`app.core.confirm`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.cache.cluster import ClusterCache
from app.cache.snapshotter import Snapshotter
from app.core.confirm import confirmed
from app.model.ids import GroupKey
from app.model.plan import GangPlacement, Plan
from app.model.snapshot import Snapshot
from app.service.basis import Basis
from app.service.configuration import Configuration
from app.service.cycle_log import CycleLog

Published = Callable[[GangPlacement], None]


@dataclass(frozen=True, slots=True, eq=False)
class Publisher:
    """``told`` are those who want to know of every placement that took effect."""

    cache: ClusterCache
    configuration: Configuration
    snapshotter: Snapshotter
    told: list[Published]
    log: CycleLog

    def publish(self, plan: Plan, basis: Basis, *, now: float) -> bool:
        """Make the plan true; returns whether part of it has to be planned again."""
        wanted = self._as_planned(plan, basis.snapshot)
        standing = self._confirmed(wanted, basis, now)
        for key in standing.admitted:
            self.cache.admit(key)
        taken = sum(self.take(decided, now=now) for decided in standing.placed)
        self.log.stale += len(plan.placed) - taken
        return taken < len(wanted.placed) or len(standing.admitted) < len(wanted.admitted)

    def take(self, decided: GangPlacement, *, now: float) -> bool:
        """Promise a gang these places; returns whether the live cluster bears it."""
        if not self.cache.promise(decided, now=now):
            return False
        for tell in self.told:
            tell(decided)
        return True

    def _as_planned(self, plan: Plan, snapshot: Snapshot) -> Plan:
        """Of those only whose PodGroup is the same and asks for the same by now."""
        pending = self.cache.registry.pending

        def asks_like_then(key: GroupKey) -> bool:
            group, gang = self.cache.groups.get(key), snapshot.gangs.get(key)
            return group is not None and gang is not None and group.asks_like(gang)

        return replace(
            plan,
            admitted=tuple(key for key in plan.admitted if asks_like_then(key)),
            placed=tuple(p for p in plan.placed if p.gang in pending and asks_like_then(p.gang)),
        )

    def _confirmed(self, plan: Plan, basis: Basis, now: float) -> Plan:
        """What queues may hold besides what was decided, or changed, meanwhile."""
        policies = self.configuration.policies
        if not (plan.admitted or plan.placed):
            return plan
        if not basis.is_overtaken(self.cache, policies, admits=bool(plan.admitted)):
            return plan
        self.log.overtaken += 1
        return confirmed(plan, policies, snapshot=self.snapshotter.snapshot(), now=now)
