"""The loop: one pod at a time through filter, extender and assume; bindings run beside it.

::

    pop -> (nominated node alone) -> all nodes -> extender filter -> score if > 1 -> assume -> bind
        -> nothing fits: preemption -> refused, parked      (condition Unschedulable)
        -> error:        error back-off                     (condition SchedulerError)

A loop serves its ``profiles`` only; with an extender, all of its pods go there. Form A is two loops
(ours with the extender, the stock profile without), form C is one loop with both profiles.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from app.sandbox.apiserver.binding import bind
from app.sandbox.apiserver.deletion import DeleteOptions
from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import Clock
from app.sandbox.ports import ExtenderClient
from app.sandbox.scheduler import affinity, messages
from app.sandbox.scheduler.claims import BINDING, Claims, UnboundError
from app.sandbox.scheduler.cluster import Cluster, NodeState
from app.sandbox.scheduler.devices import PLUGIN as DEVICES
from app.sandbox.scheduler.devices import Devices
from app.sandbox.scheduler.extender import Extender, ExtenderError
from app.sandbox.scheduler.feed import Feed
from app.sandbox.scheduler.filters import (
    Candidate,
    Failure,
    candidate_of,
)
from app.sandbox.scheduler.nominations import Nominations
from app.sandbox.scheduler.preemption import Outcome, Preemption
from app.sandbox.scheduler.queue import EXTENDER, BackoffConfig, PodQueue, QueuedPod, Wake
from app.sandbox.scheduler.reporting import Reporter
from app.wire.documents import Document, name_of, section, uid_of

logger = logging.getLogger(__name__)

_SCORE_STEP = 10
"""One point of an extender of weight 1 against the plugins' 0..100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """One scheduler process: its profiles, and how it treats the extender.

    ``ignorable``: pods are scheduled without the extender when Filter fails. ``attempt_seconds`` is
    what one attempt costs; in virtual time this keeps a loop that feeds itself (a refusal whose
    text changes) from standing still in time.
    """

    name: str
    profiles: frozenset[str]
    prioritizes: bool = True
    preempts: bool = True
    weight: int = 1
    http_timeout_s: float = 60.0
    ignorable: bool = False
    ignored_resources: frozenset[str] = frozenset()
    backoff: BackoffConfig = field(default_factory=BackoffConfig)
    attempt_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Nothing can take the pod: why, per node, or ``everywhere`` for the same reason."""

    failures: Mapping[str, Failure]
    everywhere: str = ""


class SchedulerLoop:
    """One scheduler. ``run`` serves until cancelled."""

    def __init__(
        self,
        server: ApiServer,
        config: LoopConfig,
        *,
        clock: Clock,
        extender: ExtenderClient | None = None,
        random: Random | None = None,
    ) -> None:
        self._server = server
        self._config = config
        self._clock = clock
        self._extender: Extender | None = None
        if extender is not None:
            self._extender = Extender(extender, clock=clock, timeout_s=config.http_timeout_s)
        self.cluster = Cluster()
        self.queue = PodQueue(clock=clock, backoff=config.backoff)
        self._nominations = Nominations(self.cluster)
        self._feed = Feed(
            self.cluster, self.queue, nominations=self._nominations, profiles=config.profiles
        )
        self._preemption = Preemption(
            self.cluster, self._nominations, server.disruption, random=random or Random()
        )
        self._claims = Claims(server, clock=clock)
        self._devices = Devices(server)
        self._reporter = Reporter(server, clock=clock, name=config.name)
        self._bindings: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Schedule pods until cancelled; bindings under way are cancelled too."""
        self._feed.start(self._server.store)
        try:
            while True:
                queued = await self.queue.pop()
                await self._clock.sleep(self._config.attempt_seconds)
                await self._survived(queued)
        finally:
            self._feed.stop()
            for task in self._bindings:
                task.cancel()
            await asyncio.gather(*self._bindings, return_exceptions=True)

    async def _survived(self, queued: QueuedPod) -> None:
        """One attempt; a pod or a node that cannot be read costs this pod's turn only."""
        try:
            await self._attempt(queued)
        except Exception as error:
            logger.exception("attempt failed", extra={"pod": str(name_of(queued.pod))})
            self._failed(queued, f"running an attempt: {error!r}")

    async def _attempt(self, queued: QueuedPod) -> None:
        pod = queued.pod
        if pod["metadata"].get("deletionTimestamp"):
            self._reporter.event(
                pod,
                kind="Warning",
                reason="FailedScheduling",
                note=f"skip schedule deleting pod: {name_of(pod)}",
            )
            self.queue.remove(queued.uid)
            return
        candidate = candidate_of(pod, ignoring=self._config.ignored_resources)
        try:
            chosen = await self._choose(candidate)
        except ExtenderError as error:
            self._failed(queued, str(error))
            return
        if isinstance(chosen, _Refusal):
            await self._refused(queued, candidate, chosen)
        elif self.queue.get(queued.uid) is queued:
            document = self.cluster.nodes[chosen].document
            prepares = self._claims.reserve(queued.pod, document)
            self._devices.reserve(queued.pod, document)
            self._feed.assume(queued.pod, chosen)
            self.queue.remove(queued.uid)
            task = asyncio.create_task(self._bind(queued, chosen, prepares=prepares))
            self._bindings.add(task)
            task.add_done_callback(self._bindings.discard)

    # Choosing a node

    async def _choose(self, candidate: Candidate) -> str | _Refusal:
        everywhere = self._claims.unusable(candidate.pod)
        everywhere = everywhere or self._devices.unusable(candidate.pod)
        if everywhere is not None:
            failure = Failure(everywhere.plugin, ())
            return _Refusal(dict.fromkeys(self.cluster.nodes, failure), everywhere.why)
        nominated = section(candidate.pod, "status").get("nominatedNodeName")
        if nominated in self.cluster.nodes and await self._nominated_fits(candidate, nominated):
            return str(nominated)
        failures = self._plugin_failures(candidate)
        feasible = sorted(name for name in self.cluster.nodes if name not in failures)
        if feasible and self._extender is not None:
            failures.update(await self._extender_failures(candidate.pod, feasible))
            feasible = [name for name in feasible if name not in failures]
        if not feasible:
            return _Refusal(failures)
        return feasible[0] if len(feasible) == 1 else await self._best(candidate, feasible)

    async def _extender_failures(self, pod: Document, names: list[str]) -> dict[str, Failure]:
        """A node that was dropped without a word counts as one that nothing can help."""
        assert self._extender is not None
        try:
            filtered = await self._extender.filter(pod, names)
        except ExtenderError as error:
            if not self._config.ignorable:
                raise
            fields = {"pod": str(name_of(pod)), "error": str(error)}
            logger.warning("extender ignored", extra=fields)
            return {}
        passed = set(filtered.passed)
        found: dict[str, Failure] = {}
        for name in names:
            if name in filtered.unresolvable:
                found[name] = Failure(EXTENDER, (filtered.unresolvable[name],))
            elif name in filtered.failed:
                found[name] = Failure(EXTENDER, (filtered.failed[name],), can_be_helped=True)
            elif name not in passed:
                found[name] = Failure(EXTENDER, ())
        return found

    async def _nominated_fits(self, candidate: Candidate, name: str) -> bool:
        """The one-node path: an extender's error is only logged, the full path follows."""
        around, node = self.cluster.neighbourhood(), self.cluster.nodes[name]
        if self._nominations.failure(candidate, node, around) is not None:
            return False
        if self._claims_failure(candidate.pod)(node.document) is not None:
            return False
        if self._extender is None:
            return True
        try:
            return name in (await self._extender.filter(candidate.pod, [name])).passed
        except ExtenderError as error:
            fields = {"pod": str(name_of(candidate.pod)), "error": str(error)}
            logger.info("nominated node not asked", extra=fields)
            return False

    def _plugin_failures(self, candidate: Candidate) -> dict[str, Failure]:
        pinned = affinity.pinned_nodes(candidate.pod)
        elsewhere = Failure("NodeAffinity", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
        around, of_claims = self.cluster.neighbourhood(), self._claims_failure(candidate.pod)
        found: dict[str, Failure] = {}
        for node in around.nodes:
            failure: Failure | None = elsewhere
            if pinned is None or node.name in pinned:
                failure = self._nominations.failure(candidate, node, around)
            failure = failure or of_claims(node.document)
            if failure is not None:
                found[node.name] = failure
        return found

    def _claims_failure(self, pod: Document) -> Callable[[Document], Failure | None]:
        """What the pod's claims, of volumes and of devices, say against a node."""
        volumes, devices = self._claims.look(pod), self._devices.look(pod)

        def failure(node: Document) -> Failure | None:
            reasons = volumes.failures(node) if volumes is not None else ()
            if reasons:
                return Failure(BINDING, reasons)
            why = devices.failure(node) if devices is not None else ""
            return Failure(DEVICES, (why,)) if why else None

        return failure

    async def _best(self, candidate: Candidate, feasible: list[str]) -> str:
        """Least used first, plus the extender's opinion; ties go to the first name."""
        opinions: dict[str, int] = {}
        if self._extender is not None and self._config.prioritizes:
            opinions = await self._extender.prioritize(candidate.pod, feasible)
        step = self._config.weight * _SCORE_STEP

        def score(name: str) -> float:
            node = self.cluster.nodes.get(name)
            free = _free_share(node) if node is not None else 0.0
            return free + opinions.get(name, 0) * step

        return min(feasible, key=lambda name: (-score(name), name))

    # Binding

    async def _bind(self, queued: QueuedPod, node: str, *, prepares: bool) -> None:
        """``prepares``: volumes are bound before the pod is."""
        pod = queued.pod
        try:
            if prepares:
                self._reporter.nominate(pod, node)
                await self._claims.bind(pod)
            self._devices.allocate(pod)
            if self._extender is not None:
                await self._extender.bind(pod, node)
            else:
                self._bind_directly(pod, node)
        except (ExtenderError, ApiError, UnboundError) as error:
            self._binding_failed(queued, str(error))
            return
        finally:
            self._claims.unreserve(pod)
            self._devices.unreserve(pod)
        note = f"Successfully assigned {name_of(pod)} to {node}"
        self._reporter.event(pod, kind="Normal", reason="Scheduled", note=note)

    def _bind_directly(self, pod: Document, node: str) -> None:
        name = name_of(pod)
        binding = {
            "metadata": {"name": name.name, "uid": uid_of(pod)},
            "target": {"kind": "Node", "name": node},
        }
        target = self._server.target("/pods", name, subresource="binding")
        bind(self._server.operations, target, binding)

    def _binding_failed(self, bound: QueuedPod, why: str) -> None:
        """Give the room back and try again later, unless the pod is bound all the same or gone."""
        pod = bound.pod
        current = self._server.store.get("/pods", name_of(pod))
        if current is None or uid_of(current) != uid_of(pod):
            self._tell_error(pod, why)
            return
        if section(current, "spec").get("nodeName"):
            self._tell_error(current, why)
            return
        self._feed.forget(pod)
        self.queue.wake(Wake.BOUND_POD_DELETED)
        self.queue.set(current)
        queued = self.queue.get(uid_of(pod))
        if queued is not None:
            queued.errors, queued.refusals = bound.errors, bound.refusals
            self._failed(queued, why)

    # When it does not work

    def _failed(self, queued: QueuedPod, why: str) -> None:
        self.queue.failed(queued)
        self._tell_error(queued.pod, why)

    def _tell_error(self, pod: Document, why: str) -> None:
        self._reporter.not_scheduled(pod, reason="SchedulerError", message=why, nominated="")

    async def _refused(self, queued: QueuedPod, candidate: Candidate, refusal: _Refusal) -> None:
        text, outcome = await self._outcome(candidate, refusal)
        rejectors = frozenset(failure.plugin for failure in refusal.failures.values())
        self.queue.refused(queued, rejectors)
        self._reporter.not_scheduled(
            queued.pod, reason="Unschedulable", message=text, nominated=outcome.node
        )
        for victim in outcome.victims:
            self._evict(victim, by=queued.pod)

    async def _outcome(self, candidate: Candidate, refusal: _Refusal) -> tuple[str, Outcome]:
        """The message of a refusal, and what preemption came to."""
        total = len(self.cluster.nodes)
        if total and refusal.everywhere:
            return messages.refused_everywhere(total, refusal.everywhere), Outcome()
        preempting = self._extender if self._config.preempts else None
        nodes = self.cluster.nodes  # one may have gone while the extender was asked
        failures = {name: why for name, why in refusal.failures.items() if name in nodes}
        outcome = await self._preemption.find(candidate, failures, extender=preempting)
        reasons = [reason for failure in failures.values() for reason in failure.reasons]
        text = messages.refusal(total, reasons, after=outcome.message) if total else _NO_NODES
        return text, outcome

    def _evict(self, victim: Document, *, by: Document) -> None:
        self._reporter.disruption(victim, by=by)
        try:
            options = DeleteOptions(uid=uid_of(victim))
            self._server.delete("/pods", name_of(victim), options)
        except ApiError as error:
            fields = {"pod": str(name_of(victim)), "error": str(error)}
            logger.info("victim is gone already", extra=fields)


_NO_NODES = "no nodes available to schedule pods"


def _free_share(node: NodeState) -> float:
    """0..100: how much of CPU and memory is free, as the default scoring prefers."""
    shares = [
        node.free(name) / node.allocatable[name]
        for name in ("cpu", "memory")
        if node.allocatable.get(name)
    ]
    return 100 * sum(shares) / len(shares) if shares else 0.0
