"""Tells the HTTP extender what happened: groups admitted, places given and given back.

Events are sent one after the other, in the background, and not again where that fails: what was
decided stays. A place is told of once, and so is its end: the pod ended, was evicted, or lost it.
What was placed before this process began is not known here.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from app.cache.cluster import ClusterCache
from app.model.http_extender import HttpExtenderConf, Verb
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.plan import GangPlacement
from app.model.pod import Pod
from app.model.workload import GroupPhase
from app.service.configuration import Configuration
from app.service.intake.http_extender.calling import Calls
from app.service.intake.http_extender.telling import Bodies
from app.service.ports import Clock, HttpExtender, HttpExtenderError
from app.telemetry import metrics
from app.wire import http_extender as wire

MOST_WAITING: Final = 10_000
"""Of more events the oldest are dropped; a metric counts them."""


@dataclass(frozen=True, slots=True, eq=False)
class _Event:
    verb: Verb
    body: bytes


class HttpExtenderEvents:
    """One task, :meth:`run`."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        server: HttpExtender,
        configuration: Configuration,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._configuration = configuration
        self._calls = Calls(server, clock=clock)
        self._bodies = Bodies(cache)
        self._waiting: deque[_Event] = deque()
        self._there = asyncio.Event()
        self._placed: dict[PodUid, tuple[Pod, NodeName]] = {}
        """Places that were told of."""
        self._admitted: set[GroupKey] = set()
        """Groups whose admission was told of."""
        cache.node_usage.moved.append(self._moved)

    async def run(self) -> None:
        """Send for ever; cancel to stop."""
        while True:
            await self._there.wait()
            while self._waiting:
                event, conf = self._waiting.popleft(), self._configuration.http_extender
                if conf is not None and conf.asks(event.verb):
                    await self._send(conf, event)
            self._there.clear()

    def placed(self, decided: GangPlacement) -> None:
        """Places were given."""
        conf = self._conf_for(Verb.ALLOCATE, Verb.DEALLOCATE)
        for placement in decided.placements if conf is not None else ():
            member = self._cache.members.get(placement.task.uid)
            if conf is None or member is None or not conf.minds(member.pod.shape):
                continue
            self._given_back(conf, member.pod.uid)
            self._placed[member.pod.uid] = (member.pod, placement.node)
            self._add(conf, Verb.ALLOCATE, member.pod, placement.node)

    def after_cycle(self, changed: Collection[GroupKey]) -> None:
        """Tell of the groups among ``changed`` that are admitted, each once."""
        if self._conf_for(Verb.ENQUEUED) is None:
            self._admitted.clear()
            return
        views = self._cache.registry.refresh().all
        self._admitted &= views.keys()
        for gang in (views.get(key) for key in changed):
            if gang is None or not gang.inqueue:
                continue
            if gang.key not in self._admitted and gang.phase is GroupPhase.INQUEUE:
                self._put(_Event(Verb.ENQUEUED, wire.encode({"job": self._bodies.job(gang)})))
            self._admitted.add(gang.key)

    def _moved(self, holder: str) -> None:
        """A charge is another one: a place that was told of may be over."""
        told = self._placed.get(PodUid(holder))
        if told is None:
            return
        charge = self._cache.node_usage.charges.get(holder)
        if charge is not None and charge.node == told[1] and not charge.releasing:
            return
        conf = self._conf_for(Verb.ALLOCATE, Verb.DEALLOCATE)
        if conf is None:
            del self._placed[PodUid(holder)]
        else:
            self._given_back(conf, PodUid(holder))
            self._follow(conf, PodUid(holder))

    def _given_back(self, conf: HttpExtenderConf, uid: PodUid) -> None:
        told = self._placed.pop(uid, None)
        if told is not None:
            self._add(conf, Verb.DEALLOCATE, *told)

    def _follow(self, conf: HttpExtenderConf, uid: PodUid) -> None:
        """A pod that has another place now has been given that."""
        charge, member = self._cache.node_usage.charges.get(uid), self._cache.members.get(uid)
        if charge is not None and member is not None and not charge.releasing:
            self._placed[uid] = (member.pod, charge.node)
            self._add(conf, Verb.ALLOCATE, member.pod, charge.node)

    def _add(self, conf: HttpExtenderConf, verb: Verb, pod: Pod, node: NodeName) -> None:
        if conf.asks(verb):
            body = wire.encode({"task": self._bodies.task(pod, node=node)})
            self._put(_Event(verb, body))

    def _put(self, event: _Event) -> None:
        if len(self._waiting) >= MOST_WAITING:
            dropped = self._waiting.popleft()
            metrics.HTTP_EXTENDER_CALLS.labels(dropped.verb, "dropped").inc()
        self._waiting.append(event)
        self._there.set()

    async def _send(self, conf: HttpExtenderConf, event: _Event) -> None:
        """Send an event; the metric counts those that fail, and the others wait for no pause."""
        self._calls.begin_anew()
        try:
            await self._calls.ask(conf, event.verb, event.body, wire.read_event)
        except HttpExtenderError:
            return

    def _conf_for(self, *verbs: Verb) -> HttpExtenderConf | None:
        conf = self._configuration.http_extender
        return conf if conf is not None and any(map(conf.asks, verbs)) else None
