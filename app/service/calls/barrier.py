"""The bind barrier: no member is bound before enough members can be.

kube-scheduler calls Bind once per pod, in goroutines of its own. A call for a member of a gang that
is not complete yet is held; the call that completes the gang lets all of them go. What ends a hold
early: the pod loses its place (deleted, node gone, room taken), the PodGroup goes away, the time is
up (the whole gang is given back, so that another can have the room), or the process drains. The
time is that since the last member arrived: kube-scheduler sends one after the other, so a gang of
thousands takes longer than one of ten.

The time is not up while the members that lack are in PreBind (:mod:`app.cache.gangs.prebind`). A
call is not held longer for that than kube-scheduler waits for its answer: then it ends, and the
places are kept for when it comes again.

Letting go is one step: all members that are let go count as *binding* from then on, so nothing that
happens before their calls continue takes a place away from one of them.

A held call costs one future; nothing polls. The calls themselves go on a few at a time.
"""

import asyncio
from collections.abc import Iterable

from app.cache.cluster import ClusterCache
from app.cache.gangs.prebind import waits_for_prebind
from app.model.ids import GroupKey, PodUid
from app.service.calls.fair_turns import end_in_turns
from app.service.cycle.cool_down import Why, give_back, text
from app.service.limits import Limits
from app.service.ports import Clock

OPEN = ""
"""What a hold ends with when the member may be bound; anything else is the error text."""

_LATE = text(Why.LATE)
_STOPPING = "extender is stopping"
_IN_PREBIND = "volumes or devices of other members are not ready; the places of the gang are kept"


class Barrier:
    """Bind calls that wait for the rest of their gang."""

    def __init__(self, cache: ClusterCache, *, limits: Limits, clock: Clock) -> None:
        self.draining = asyncio.Event()
        """Set when the process stops: calls that wait for something else end as well."""
        self._cache = cache
        self._limits = limits
        self._clock = clock
        self._held: dict[GroupKey, dict[PodUid, asyncio.Future[str]]] = {}
        self._timers: dict[GroupKey, asyncio.TimerHandle] = {}
        self._ends: dict[GroupKey, float] = {}
        """When a gang's time is up in any case, by the loop's clock."""

    def hold(self, key: GroupKey, uid: PodUid) -> asyncio.Future[str]:
        """A future that ends with OPEN, or with the reason why the member may not be bound."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()
        if self.draining.is_set():
            future.set_result(_STOPPING)
            return future
        room = self._held.setdefault(key, {})
        before = room.get(uid)
        if before is not None and not before.done():
            before.set_result("another Bind call for the same pod arrived")
        room[uid] = future
        self._ends.setdefault(key, loop.time() + self._limits.barrier_limit_s)
        if key in self._timers:
            self._timers[key].cancel()
        self._set_timer(key)
        return future

    def _set_timer(self, key: GroupKey) -> None:
        loop = asyncio.get_running_loop()
        due = min(loop.time() + self._limits.barrier_s, self._ends[key])
        self._timers[key] = loop.call_at(due, self._expire, key)

    def leave(self, key: GroupKey, uid: PodUid, future: asyncio.Future[str]) -> None:
        """The caller gave up (its client is gone)."""
        room = self._held.get(key, {})
        if room.get(uid) is future:
            del room[uid]
        self._tidy(key)

    def settle(self, changed: Iterable[GroupKey] = ()) -> None:
        """Look again at the groups that ``changed``, and release calls that lost their places."""
        self._end_lost()
        if not self._held:
            return
        for key in tuple(changed):
            if key in self._held:
                self.check(key)

    def check(self, key: GroupKey) -> bool:
        """Open the group's barrier if enough members are there; returns whether they are."""
        self._end_lost()
        group = self._cache.groups.get(key)
        if group is None or not group.known or not group.complete:
            return False
        if self.draining.is_set() and not group.reached_minimum:
            return False  # of those that have come, some are being sent away
        now = self._clock()
        for uid in self._held.get(key, ()):
            self._cache.bind_steps.binding(uid, now=now)
        self._end_all(key, OPEN)
        return True

    def held(self) -> dict[GroupKey, int]:
        """How many calls are held per group."""
        return {key: len(room) for key, room in self._held.items()}

    def drain(self) -> None:
        """End every hold with an error and take no more (the process is stopping)."""
        self.draining.set()
        for key in list(self._held):
            self._end_all(key, _STOPPING)

    def _expire(self, key: GroupKey) -> None:
        self._timers.pop(key, None)
        group = self._cache.groups.get(key)
        now = self._clock()
        patience_s = self._limits.in_prebind_s(self._cache.bind_timeout_s)
        if group is not None and waits_for_prebind(group, before=now - patience_s):
            self._wait_for_prebind(key)
            return
        self._end_all(key, _LATE)
        if group is not None:
            give_back(self._cache, group, why=Why.LATE, limits=self._limits, now=now)
        self._end_lost()

    def _wait_for_prebind(self, key: GroupKey) -> None:
        if asyncio.get_running_loop().time() < self._ends[key]:
            self._set_timer(key)
        else:
            self._end_all(key, _IN_PREBIND)

    def _end_lost(self) -> None:
        for loss in self._cache.losses.take():
            self._end(loss.group, loss.uid, loss.why)

    def _end(self, key: GroupKey, uid: PodUid, result: str) -> None:
        future = self._held.get(key, {}).pop(uid, None)
        if future is not None and not future.done():
            future.set_result(result)
        self._tidy(key)

    def _end_all(self, key: GroupKey, result: str) -> None:
        held = self._held.pop(key, {})
        self._tidy(key)
        end_in_turns(held.values(), result)

    def _tidy(self, key: GroupKey) -> None:
        if not self._held.get(key):
            self._held.pop(key, None)
            self._ends.pop(key, None)
            timer = self._timers.pop(key, None)
            if timer is not None:
                timer.cancel()
