"""Whether this replica decides, and what begins and ends with that.

Two replicas must not both publish plans (:mod:`app.service.activity`). A replica that begins to
lead believes what the API server shows and nothing else: it may have led before, and knows what has
changed without it since. A replica that ceases to lead gives back every reservation.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.model.workload import GroupPhase
from app.service.activity import OTHER_LEADS, Activity
from app.service.cycle.expiry import Expiry
from app.service.cycle.last_plan import LastPlan
from app.service.cycle.pace import Pace
from app.service.ports import Clock


@dataclass(slots=True, eq=False, kw_only=True)
class Leadership:
    """``stood_by`` are told that reservations were given back since another replica leads."""

    cache: ClusterCache
    activity: Activity
    expiry: Expiry
    last_plan: LastPlan
    pace: Pace
    clock: Clock
    stood_by: list[Callable[[], None]] = field(default_factory=list)
    first_cycle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set for good when everything has been looked at once, by a replica that stands by too."""
    deciding: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while this replica leads and has planned everything at least once since it does."""
    _standing_by: bool = False

    @property
    def leads(self) -> bool:
        """Whether this replica leads, and has done so since :meth:`begin` was called last."""
        return self.activity.active and not self._standing_by

    @property
    def is_about_to_change(self) -> bool:
        """Whether another replica was elected than the one that this goes by."""
        return self._standing_by is self.activity.active

    def follow(self) -> None:
        """Stand by at once when another replica leads: the next cycle may be far off."""
        if self.deciding.is_set() and not self.activity.active:
            self.stand_by()
            self.pace.end_rest()

    def begin(self) -> None:
        """Have this replica decide from now on."""
        if not self._standing_by:
            return
        self._standing_by = False
        self.cache.signals.note_dirty()
        self.cache.signals.note_groups(self.cache.groups)
        take_over(self.cache)

    def has_planned(self) -> None:
        """Note that this replica leads, and a cycle of it is over."""
        self.first_cycle.set()
        self.deciding.set()

    def stand_by(self) -> None:
        """Another replica decides: every reservation made here is void, and nothing is said."""
        self._standing_by = True
        self.pace.start_over()
        self.deciding.clear()
        for key in list(self.cache.registry.reserved):
            self.cache.reservations.release(key, why=OTHER_LEADS)
        self.expiry.forget_observed(self.clock())
        self.last_plan.forget()
        self.cache.signals.take_groups()  # all are looked at when this one leads again
        for tell in self.stood_by:
            tell()
        self.first_cycle.set()


def take_over(cache: ClusterCache) -> None:
    """Forget what was true when this replica led last, if ever.

    Phases are those that the last leader stored. Single pods have none: they are voted on anew, as
    after a restart. Nominations are the last leader's, or those of kube-scheduler. No group is set
    aside: the reason was known to the last leader only.
    """
    cache.registry.look_again()
    for key, group in list(cache.groups.items()):
        if group.pod_group is not None:
            cache.decisions.set_phase(key, group.pod_group.phase)
        elif group.solo:
            cache.decisions.set_phase(key, GroupPhase.NEW)
    for uid in cache.pods.nominated_members:
        member = cache.members.get(uid)
        if member is not None:
            cache.decisions.nominated(member, member.pod.left_nomination)
