"""What is given back when its time is up: unused reservations, and pods that no watch showed.

How long each may take is in :mod:`app.service.limits`, what giving back means for the group in
:mod:`app.service.cycle.cool_down`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.reserved.unused import overdue, stale_slots
from app.model.ids import GroupKey
from app.model.reason import Cause, Refusal
from app.service.cycle.cool_down import Why, give_back, leave_domain
from app.service.limits import Limits

BACKLOG_FACTOR = 10
"""How much longer a planned pod may take while kube-scheduler works off a queue."""


@dataclass(slots=True, eq=False)
class Expiry:
    """Gives back what is overdue; how often it is asked to does not matter."""

    cache: ClusterCache
    limits: Limits
    asked_at: float = float("-inf")
    """When kube-scheduler last asked for a pod of ours."""
    _next: float = 0.0
    _stuck: dict[GroupKey, float] = field(default_factory=dict)
    """Since when gangs are."""

    def expire(self, now: float) -> None:
        """Give back unused reservations, and forget pods that only a Filter call showed."""
        if now < self._next:
            return
        self._next = now + self.limits.cycle_idle_s
        patience = self.limits.planned_s
        if now - self.asked_at < self.limits.backlog_s:
            patience *= BACKLOG_FACTOR
        late = overdue(
            self.cache.registry.reserved.values(),
            before=now - patience,
            prebind_before=now - self.limits.in_prebind_s(self.cache.bind_timeout_s),
        )
        for group, uids in late:
            if group.reached_minimum:
                until = now + self.limits.hold_base_s
                self.cache.reservations.pass_over(group.key, uids, until=until, now=now)
            else:
                self._give_back(group, now, Why.UNUSED)
        for group in stale_slots(
            self.cache.registry.reserved.values(), before=now - self.limits.slot_s
        ):
            self._give_back(group, now, Why.UNCREATED)
        for group in self.cache.unplaced_claims.stale(before=now - self.limits.slot_s):
            self.cache.decisions.give_up(group.key)
        self.forget_observed(now)

    def forget_observed(self, now: float) -> None:
        """Forget pods that the watch has not shown in time."""
        self.cache.pods.forget_observed(before=now - self.limits.observed_s)

    def give_back_stuck(self, refused: Mapping[GroupKey, Refusal], now: float) -> None:
        """Release gangs that hold part of their room and cannot get the rest of it.

        That happens when a member turns out bigger than the room kept for it, or loses its node.
        After a moment (another cycle may find the rest) others may have what they hold. Not so what
        is kept for members that a gang has lost: that gang goes first. A gang whose domain of the
        network has no other room is released at once: what it holds there keeps it from others.
        """
        stuck = {
            key
            for key in refused
            if key in self.cache.registry.reserved and _may_be_stuck(self.cache.groups[key])
        }
        torn = {key for key in stuck if refused[key].cause is Cause.NO_DOMAIN}
        for key in torn:
            leave_domain(self.cache, self.cache.groups[key])
        self._stuck = {key: self._stuck.get(key, now) for key in stuck - torn}
        for key, since in list(self._stuck.items()):
            if now - since > self.limits.stuck_s:
                del self._stuck[key]
                self._give_back(self.cache.groups[key], now, Why.STUCK)

    def _give_back(self, group: Group, now: float, why: Why) -> None:
        give_back(self.cache, group, why=why, limits=self.limits, now=now)


def _may_be_stuck(group: Group) -> bool:
    return not group.placed_minimum and not group.owed
