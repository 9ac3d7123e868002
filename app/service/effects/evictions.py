"""Evicts pods: stores the intent of each plan, asks for the evictions, and deletes it at the end.

What is to be done is asked of :class:`~app.service.cycle.evictions.Evictions` when its turn comes,
and again right before each call, so a plan that was given up meanwhile evicts no pod more. The pods
of a plan are asked to go together, as soon as all of its intent is stored: a pod of another
scheduler sees freed room too. Each call names the UID of its pod, so to ask twice, as a process
does that takes a plan over, evicts no other pod.

Only the replica that leads writes. An intent that belongs to no plan, as one may be stored by a
write whose answer was lost, is deleted by the next look at what is stored; so are the parts of a
long intent that a process could not store whole.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Final, Protocol

from app.cache.cluster import ClusterCache
from app.kit.workqueue import Again, WorkQueue
from app.model.eviction import VictimPod
from app.model.ids import GroupKey, PodUid
from app.service.activity import Activity
from app.service.cycle.begun_eviction import BegunEviction, Fate
from app.service.cycle.evictions import Evictions
from app.service.effects.failed_writes import again_unless_gone
from app.service.limits import Limits
from app.service.ports import (
    Clock,
    EventSink,
    EventType,
    Evictor,
    IntentStore,
    PodWriter,
    Reaction,
    WriteError,
)
from app.service.telling.hiding import Wording
from app.telemetry import metrics
from app.wire.intents import texts_of

log = logging.getLogger(__name__)

FORBIDDEN_S: Final = 5.0
"""An eviction that a PodDisruptionBudget forbids is asked for again after so long."""
TIDY_S: Final = 60.0
"""So often the intents that are stored are compared with the plans."""
_STORING_AT_ONCE: Final = 4
_TELLING_AT_ONCE: Final = 4
_EVICT: Final = "Evict"
_EVICTS: Final = "Evicts"
_WASTED: Final = "EvictionWasted"


class Ports(Evictor, IntentStore, EventSink, PodWriter, Protocol):
    """What evictions need of the API server."""


@dataclass(frozen=True, slots=True)
class _Told:
    """One event."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str
    event_type: EventType
    reason: str
    message: str


class EvictionWorker:
    """Does what the plans want done."""

    def __init__(
        self,
        cache: ClusterCache,
        evictions: Evictions,
        *,
        ports: Ports,
        activity: Activity,
        wording: Wording,
        limits: Limits,
        clock: Clock,
        failed: Callable[[Hashable, Exception], None],
    ) -> None:
        self._cache = cache
        self._evictions = evictions
        self._ports = ports
        self._activity = activity
        self._wording = wording
        self._limits = limits
        self._clock = clock
        self._turn = 0.0
        """When the next eviction may be asked for, by the clock of the loop."""
        self._next_tidying = 0.0
        self._plans: WorkQueue[str] = WorkQueue(self._follow, failed=failed)
        self._pods: WorkQueue[PodUid] = WorkQueue(self._evict, failed=failed)
        self._events: WorkQueue[_Told] = WorkQueue(self._tell, failed=failed)
        evictions.listeners.append(self._plans.add)

    async def run(self) -> None:
        """Work for ever; cancel to stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._plans.run(_STORING_AT_ONCE))
            group.create_task(self._pods.run(self._limits.writes_in_flight))
            group.create_task(self._events.run(_TELLING_AT_ONCE))

    def after_cycle(self, _changed: Collection[GroupKey]) -> None:
        """Look whether something is left to do, and now and then at what is stored."""
        for begun in self._evictions.plans.values():
            if begun.ended or not begun.stored:
                self._plans.add(begun.name)
        self._tell_notices()
        now = self._clock()
        if now >= self._next_tidying and self._evictions.loaded:
            if self._next_tidying:
                self._plans.add("")
            self._next_tidying = now + TIDY_S

    # --- intents ---------------------------------------------------------------------------------

    async def _follow(self, name: str) -> None:
        if not self._activity.active or not self._evictions.loaded:
            return
        if not name:
            await self._tidy()
            return
        begun = self._evictions.plans.get(name)
        if begun is None:
            return
        self._tell_notices()
        if begun.ended:
            for each in reversed(begun.names):
                await self._delete(each)
            self._evictions.on_deleted(begun)
        elif begun.waits and not begun.stored:
            if begun.intent.victims:  # without these nothing is lost that the next leader misses
                await self._store(begun)
        else:
            for victim in begun.to_evict():
                self._pods.add(victim.uid)

    async def _store(self, begun: BegunEviction) -> None:
        texts = texts_of(begun.name, begun.intent)
        self._evictions.on_storing(begun, texts)
        for name, text in texts.items():
            if not begun.waits or not self._activity.active:
                return
            try:
                await self._ports.create_intent(name, text)
            except WriteError as error:
                if error.reaction is Reaction.CONFLICT:
                    await self._replace(name, text)
                elif error.reaction in (Reaction.REFUSED, Reaction.GONE):
                    self._give_up(begun, f"the plan cannot be stored: {error}")
                    return
                else:
                    raise Again(str(error), after_s=error.retry_after_s) from error
        if self._evictions.plans.get(begun.name) is begun:
            self._evictions.on_stored(begun, now=self._clock())

    async def _replace(self, name: str, text: str) -> None:
        """There is an intent of that name; returns if it is this one, whose answer was lost."""
        try:
            stored = await self._ports.list_intents()
        except WriteError as error:
            raise Again(str(error), after_s=error.retry_after_s) from error
        if stored.get(name) != text:
            await self._delete(name)
            raise Again("an earlier intent of that name was deleted")

    async def _delete(self, name: str) -> None:
        if not self._activity.active:
            raise Again("another replica leads")
        try:
            await self._ports.delete_intent(name)
        except WriteError as error:
            again_unless_gone(error)

    def _give_up(self, begun: BegunEviction, why: str) -> None:
        """No pod was evicted, and none is for the group for a while: it would come to the same."""
        log.error("intent of an eviction refused", extra={"intent": begun.name, "why": why})
        now = self._clock()
        self._evictions.pause(begun.intent.preemptor, why, now=now)
        if not begun.ended:
            self._evictions.give_up(begun, why, now=now)

    async def _tidy(self) -> None:
        try:
            stored = await self._ports.list_intents()
        except WriteError:
            return  # it is looked at again
        for name in stored:
            if self._evictions.loaded and not self._belongs_to_a_plan(name):
                await self._delete(name)

    def _belongs_to_a_plan(self, name: str) -> bool:
        return any(name in begun.names for begun in self._evictions.plans.values())

    # --- evictions -------------------------------------------------------------------------------

    async def _evict(self, uid: PodUid) -> None:
        if self._evictions.to_evict(uid) is None:
            return
        await self._next_turn()
        found = self._evictions.to_evict(uid)
        if found is None or not self._activity.active:
            return
        begun, victim = found
        self._evictions.on_evicting(begun, now=self._clock())
        try:
            await self._mark(begun, victim)
            if self._evictions.to_evict(uid) is None or not self._activity.active:
                return
            await self._ports.evict(victim.namespace, victim.name, uid=victim.uid)
        except WriteError as error:
            metrics.WRITES.labels("eviction", error.reaction.value).inc()
            self._kept(begun, victim, error)
            return
        metrics.WRITES.labels("eviction", "done").inc()
        self._evictions.on_evicted(begun, victim, now=self._clock())
        self._tell_of(begun, victim)

    async def _mark(self, begun: BegunEviction, victim: VictimPod) -> None:
        """Tell the pod before, for its job: what we evict is no failure."""
        whom = begun.intent.preemptor
        said = f"{begun.intent.action} for {whom}" if whom else begun.intent.action.value
        text = self._wording.text(said, namespace=victim.namespace)
        try:
            await self._ports.mark_evicted(victim.namespace, victim.name, uid=victim.uid, text=text)
        except WriteError as error:
            if error.reaction is not Reaction.REFUSED:
                raise
            metrics.WRITES.labels("eviction-mark", error.reaction.value).inc()

    def _kept(self, begun: BegunEviction, victim: VictimPod, error: WriteError) -> None:
        """The API server did not evict it; raises `Again` if it may next time."""
        now = self._clock()
        match error.reaction:
            case Reaction.GONE:
                self._evictions.on_gone(begun, victim, now=now)
            case Reaction.REFUSED:
                self._evictions.on_kept(begun, victim, Fate.REFUSED, now=now)
            case Reaction.BUDGET:
                self._evictions.on_kept(begun, victim, Fate.FORBIDDEN, now=now)
                pause_s = error.retry_after_s or FORBIDDEN_S
                raise Again(str(error), after_s=pause_s) from error
            case _:
                self._evictions.on_kept(begun, victim, Fate.FAILING, now=now)
                raise Again(str(error), after_s=error.retry_after_s) from error

    async def _next_turn(self) -> None:
        loop = asyncio.get_running_loop()
        turn = max(self._turn, loop.time())
        self._turn = turn + 1 / self._limits.evictions_per_s
        await asyncio.sleep(max(turn - loop.time(), 0.0))

    # --- events ----------------------------------------------------------------------------------

    def _tell_of(self, begun: BegunEviction, victim: VictimPod) -> None:
        """Tell of an eviction at the pod and, once for each plan, at its PodGroup."""
        action, key = begun.intent.action, begun.intent.preemptor
        whom = f" for {self._called(key)}" if key else ""
        text = f"Pod is evicted, because of {action}{whom}: {victim.rule} allows it"
        pod = ("Pod", "v1", victim.namespace, victim.name, victim.uid)
        self._events.add(_Told(*pod, "Warning", _EVICT, text))
        if victim.gang in begun.told:
            return
        begun.told.add(victim.gang)
        mine = [each for each in begun.intent.victims if each.gang == victim.gang]
        pods = "Pod is" if len(mine) == 1 else f"{len(mine)} Pods are"
        self._tell_group(
            victim.gang, "Normal", _EVICT, f"{pods} evicted, because of {action}{whom}"
        )

    def _tell_notices(self) -> None:
        notices, self._evictions.notices = self._evictions.notices, []
        for notice in notices:
            kind: EventType = "Warning" if notice.is_warning else "Normal"
            reason = _WASTED if notice.is_warning else _EVICTS
            self._tell_group(notice.group, kind, reason, notice.text)

    def _tell_group(self, key: GroupKey, kind: EventType, reason: str, message: str) -> None:
        group = self._cache.groups.get(key)
        if group is None or group.pod_group is None:
            return
        about = group.pod_group
        version = "scheduling.volcano.sh/v1beta1"
        names = ("PodGroup", version, about.namespace, about.name, about.uid)
        self._events.add(_Told(*names, kind, reason, message))

    def _called(self, key: GroupKey) -> str:
        view = self._cache.registry.view(key)
        return key if view is None else view.called

    async def _tell(self, told: _Told) -> None:
        try:
            await self._ports.record_event(
                kind=told.kind,
                api_version=told.api_version,
                namespace=told.namespace,
                name=told.name,
                uid=told.uid,
                event_type=told.event_type,
                reason=told.reason,
                message=self._wording.text(told.message, namespace=told.namespace),
            )
        except WriteError as error:
            again_unless_gone(error)
