"""Giving reservations back when a queue holds more than its limit.

Whether any does is only looked into when it may have come to that (:attr:`Signals.overfull`): a
limit changed, or a pod is there that no reservation of ours brought there. Our own reservations
are checked when they are made. What goes is decided in :mod:`app.core.over_limit`. No gang cools
down for it: a gang that gave its room back waits for its queue, with the ordinary reason, and has
its place as soon as it fits.

This is done when a cycle begins, not when the event comes, of which there may be hundreds a second
while a look takes tens of milliseconds where there are a thousand queues. A gang that is complete
before that cycle goes, as it would if the event came so much later; so it is with the sessions of
Volcano.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.reserved.revocable import is_under_way, revocable, stands_without
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.faults import Upkeep
from app.core.over_limit import give_back
from app.core.policy import Policies
from app.model.plan import Revocable
from app.service.configuration import Configuration
from app.service.cycle.cool_down import Why, text
from app.service.cycle.failing_parts import FailingParts
from app.telemetry import metrics

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class GiveBackOverLimit:
    """Looks at queues that may hold too much, and gives back what they may not hold."""

    cache: ClusterCache
    configuration: Configuration
    snapshotter: Snapshotter
    parts: FailingParts
    _looked_by: Policies | None = field(init=False, default=None)
    """The policies of the last look: by others, other limits count."""

    def give_back(self, now: float) -> None:
        """Give back what queues may not hold any more; cheap when nothing hints at that."""
        signals, policies = self.cache.signals, self.configuration.policies
        if signals.overfull or policies is not self._looked_by:
            reserved = list(self.cache.registry.reserved.values())
            again = bool(reserved)
            with self.parts.doing(Upkeep.OVER_LIMIT):
                again = again and self._look(reserved, policies, now)
            signals.looked_for_overfull(again=again)
            self._looked_by = policies

    def _look(self, reserved: Sequence[Group], policies: Policies, now: float) -> bool:
        """Give back what must be; returns whether there may soon be more of that.

        Raises one of the faults of what was left out.
        """
        decided = give_back(
            self.snapshotter.snapshot(),
            policies,
            queues={group.queue for group in reserved},
            reservations_in=lambda queues: revocable(
                (group for group in reserved if group.queue in queues),
                vector=self.cache.node_usage.vector,
            ),
            now=now,
        )
        for each in decided.given_back:
            self._give_back(each)
        if decided.faults:
            raise decided.faults[0]
        # A gang being bound has nothing to give, but members beyond its minimum will stand alone.
        return any(
            group.queue in decided.over and is_under_way(group) and not stands_without(group)
            for group in reserved
        )

    def _give_back(self, reserve: Revocable) -> None:
        if reserve.whole:
            metrics.GANGS_RELEASED.labels(Why.OVER_LIMIT.value).inc()
        log.info(
            "its queue holds more than it may, given back",
            extra={"group": reserve.gang, "places": len(reserve.holders)},
        )
        self.cache.reservations.take_back(reserve.holders, why=text(Why.OVER_LIMIT))
