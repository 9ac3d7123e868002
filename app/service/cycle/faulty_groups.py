"""Groups that planning failed at: they are left out for a while, and for longer again.

An error that no code expects is a bug, of the planner or of a plugin, and most bugs fail again when
the same is asked again. So such a group is tried again after a second, and then each time after
twice as long. After some tries it is left out until its PodGroup, its pods or the configuration
change. Where several are due, one is tried in each cycle, as each fault costs a plan.

What else planning does without is in :mod:`app.service.cycle.failing_parts`.
"""

import logging
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final

from app.cache.cluster import ClusterCache
from app.core.faults import Planned, PlanningFault
from app.model.ids import GroupKey
from app.model.plan import Plan
from app.model.reason import Refusal
from app.model.snapshot import Snapshot
from app.service.cycle.failing_parts import FailingParts
from app.telemetry import metrics

log = logging.getLogger(__name__)

FIRST_S: Final = 1.0
TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class _Failed:
    """``tries`` failed so far, the last one at ``version`` of the group."""

    refusal: Refusal
    tries: int
    until: float
    version: int


@dataclass(slots=True, eq=False)
class FaultyGroups:
    """Which groups are left out of plans, and what they are told meanwhile."""

    cache: ClusterCache
    parts: FailingParts = field(default_factory=FailingParts)
    _failed: dict[GroupKey, _Failed] = field(default_factory=dict)
    _logged: set[str] = field(default_factory=set)
    """Places in the code whose errors the log has with their tracebacks."""

    def left_out(self, *, now: float) -> Set[GroupKey]:
        """The groups that are not to be planned at ``now``."""
        if not self._failed:
            return frozenset()
        due = [(each.until, key) for key, each in self._failed.items() if self._is_due(key, now)]
        return self._failed.keys() - {key for _, key in sorted(due)[:1]}

    def without(self, snapshot: Snapshot, *, now: float) -> Snapshot:
        """``snapshot``, where these groups wait for nothing."""
        left_out = self.left_out(now=now)
        if not left_out:
            return snapshot
        pending = tuple(gang for gang in snapshot.pending if gang.key not in left_out)
        return replace(snapshot, pending=pending)

    def followed(self, planned: Planned, *, now: float) -> Plan:
        """The plan, with a reason for each group that is left out by now."""
        self.note(planned.faults, now=now)
        self.parts.follow(planned)
        if not self._failed:
            return planned.plan
        for gang in planned.snapshot.pending:
            self._failed.pop(gang.key, None)
        for key in self._failed.keys() - self.cache.groups.keys():
            del self._failed[key]
        told = {key: each.refusal for key, each in self._failed.items()}
        return replace(planned.plan, refused={**planned.plan.refused, **told})

    def note(self, faults: Mapping[GroupKey, PlanningFault], *, now: float) -> None:
        """Planning failed at these groups."""
        for key, fault in faults.items():
            before, group = self._failed.get(key), self.cache.groups.get(key)
            tries = 1 if before is None else before.tries + 1
            version = 0 if group is None else group.version
            until = now + FIRST_S * 2 ** (min(tries, TRIES) - 1)
            self._failed[key] = _Failed(fault.refusal, tries, until, version)
            metrics.PLANNING_FAULTS.inc()
            known = fault.place in self._logged
            self._logged.add(fault.place)
            log.error(
                "planning failed at a group, which is left out",
                extra={"group": key, "where": fault.place, "tries": tries},
                exc_info=None if known else fault.__cause__,
            )

    def notices(self) -> tuple[str, ...]:
        """What an operator should know."""
        return tuple(self.parts.notices())

    def forget(self) -> None:
        """Other policies count from now on: all groups are planned again."""
        self._failed.clear()

    def _is_due(self, key: GroupKey, now: float) -> bool:
        each, group = self._failed[key], self.cache.groups.get(key)
        changed = group is not None and group.version != each.version
        return now >= each.until and (each.tries < TRIES or changed)
