"""Carries out what was decided; the one place with effects on pods, groups and queues.

Work is asked for by key (a pod, a group, a queue) and read off the cache when its turn comes, so
doing it twice or late does no harm: a pod that lost its place meanwhile is left alone, a group's
status is written as it is now. Failures come back with a growing pause; what the API server refuses
for good is counted and left.

A pod that got its place is told in the cheapest way that reaches it (design §4):

* behind our gate: the gate is removed, with a pin (one write), after a nomination (two) or with
  nothing said (:mod:`app.service.effects.placement_hints`);
* without a gate, and its place is exchanged with no other: nominated, which wakes it too;
* refused by Filter before: woken by an annotation, which wakes no other pod;
* otherwise nothing: kube-scheduler will ask.

Members that must be near others of their gang are told after these
(:mod:`app.service.effects.affinity_followers`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator
from contextlib import contextmanager

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member, Stage, namespaces_in
from app.kit.workqueue import Again, WorkQueue
from app.model.ids import NO_NODE, GroupKey, NodeName, PodUid, QueueName, namespace_of
from app.model.plan import GangPlacement
from app.service.effects.affinity_followers import AffinityFollowers
from app.service.effects.corrections import Corrections
from app.service.effects.failed_writes import again_unless_gone
from app.service.effects.gates import REPEAT_S, Gates
from app.service.effects.nominations import Nominations
from app.service.effects.placement_hints import hint_for, lacks_nomination
from app.service.effects.pod_reasons import PodReasons
from app.service.effects.queue_allocation_gates import QueueAllocationGates
from app.service.effects.statuses import StatusWriter
from app.service.limits import Limits, PlacementHint
from app.service.ports import Clock, PodWriter, WriteError
from app.service.telling.affinity_followers import follows
from app.telemetry import metrics
from app.wire import patches

log = logging.getLogger(__name__)


class Actuator:
    """Tells pods their places and keeps statuses up to date."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        pods: PodWriter,
        status: StatusWriter,
        reasons: PodReasons,
        corrections: Corrections,
        showing: QueueAllocationGates,
        gates: Gates,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._pods = pods
        self._status = status
        self._reasons = reasons
        self._corrections = corrections
        self._showing = showing
        self._gates = gates
        self._limits = limits
        self._clock = clock
        self._nominations = Nominations(cache, pods=pods, failed=log_failure)
        self._following = AffinityFollowers(cache, tell=self._tell_soon, failed=log_failure)
        self._told: dict[PodUid, float] = {}
        self._next_look = 0.0
        self._pod_work: WorkQueue[PodUid] = WorkQueue(
            self._tell, failed=log_failure, lane_of=namespaces_in(cache.members)
        )
        self._group_work: WorkQueue[GroupKey] = WorkQueue(
            status.write_group, failed=log_failure, lane_of=namespace_of
        )
        self._queue_work: WorkQueue[QueueName] = WorkQueue(status.write_queue, failed=log_failure)

    async def run(self) -> None:
        """Work for ever; cancel to stop."""
        workers = self._limits.writes_in_flight
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pod_work.run(workers))
            group.create_task(self._group_work.run(max(workers // 4, 1)))
            group.create_task(self._queue_work.run(2))
            group.create_task(self._nominations.run(2))
            group.create_task(self._following.run())
            group.create_task(self._reasons.run(max(workers // 4, 1)))
            group.create_task(self._corrections.run(1))
            group.create_task(self._showing.run(max(workers // 4, 1)))

    def placed(self, decided: GangPlacement) -> None:
        """Placements took effect: tell the pods that must be told."""
        for placement in decided.placements:
            self._ask(placement.task.uid)
        self._following.look_again(decided.gang)

    def housed(self) -> None:
        """Members may have come into slots that were kept for them: tell these."""
        housed, self._cache.reservations.housed = self._cache.reservations.housed, []
        for uid in housed:
            self._ask(uid)

    def arrived(self, key: GroupKey) -> None:
        """A member of the group has come to Bind: it may be the turn of others."""
        self._following.look_again(key)

    def _ask(self, uid: PodUid) -> None:
        member = self._cache.members.get(uid)
        if member is None:
            return
        if follows(member):
            self._following.look(member.group)
        else:
            self._tell_soon(member)

    def _tell_soon(self, member: Member) -> None:
        if self._must_be_told(member):
            self._pod_work.add(member.pod.uid)

    def after_cycle(self, changed: Collection[GroupKey]) -> None:
        """A cycle ended: bring up to date what is said of groups that changed, or why they wait."""
        for key in changed:
            group = self._cache.groups.get(key)
            if group is None or not group.solo:
                self._group_work.add(key)
        self._reasons.after_cycle(changed)
        self._following.after_cycle(changed)
        self._showing.after_cycle(changed)
        now = self._clock()
        if now >= self._next_look:
            self._next_look = now + self._limits.cycle_idle_s
            for name in self._status.stale_queues():
                self._queue_work.add(name)
            self._nominations.look(now)
            self._corrections.look(now)
            self._retell(now - REPEAT_S)

    def stood_by(self) -> None:
        """Another replica leads: pods have heard from it what this one cannot know."""
        self._nominations.stood_by()
        self._reasons.stood_by()

    def _retell(self, before: float) -> None:
        """Look for planned pods that still wait to be told (an effect was lost)."""
        for group in self._cache.registry.reserved.values():
            for member in group.members.values():
                uid = member.pod.uid
                if self._must_be_told(member) and self._told.get(uid, 0.0) < before:
                    self._ask(uid)
        self._told = {uid: at for uid, at in self._told.items() if at >= before}
        self._gates.tidy()

    async def _tell(self, uid: PodUid) -> None:
        member = self._cache.members.get(uid)
        if member is None or not self._must_be_told(member):
            return
        if member.pod.gated and self._gates.is_open(uid):
            raise Again("the watch has not shown that its gate is open")
        self._told[uid] = self._clock()  # tried: until this is long ago the queue knows better when
        kind, tell = self._way(member)
        try:
            await tell(member)
        except WriteError as error:
            metrics.WRITES.labels(kind, error.reaction.value).inc()
            again_unless_gone(error)
        else:
            now = self._clock()
            self._told[uid] = now
            self._cache.decisions.start_time(member, now=now)

    def _must_be_told(self, member: Member) -> bool:
        """Whether the member has a place that it, or kube-scheduler, does not know."""
        pod = member.pod
        if member.stage is not Stage.PLANNED or pod.node or pod.deleting:
            return False
        if pod.gates:
            return pod.gated and not pod.foreign_gates
        return member.refused or lacks_nomination(member, self._cache.groups[member.group])

    def _way(self, member: Member) -> tuple[str, Callable[[Member], Awaitable[None]]]:
        """What is written to tell a member, by the metric's word, and how."""
        if member.pod.gated:
            return "gate", self._open_gate
        if lacks_nomination(member, self._cache.groups[member.group]):
            return "nomination", self._nominate
        return "wake", self._wake

    async def _open_gate(self, member: Member) -> None:
        pod, node = member.pod, member.node
        group = self._cache.groups[member.group]
        hint = hint_for(member, group, configured=self._limits.hint)
        self._cache.decisions.tell(member, told=hint is not PlacementHint.GUIDE)
        status = self._reasons.placed(member)
        if hint is PlacementHint.NOMINATE and not pod.pinned and pod.nominated != node:
            status = patches.merged(status, patches.nomination(node))
            self._nominations.writes(member, node)
        if status is not None:
            await self._pods.patch_pod_status(pod.namespace, pod.name, status, uid=pod.uid)
            self._reasons.taken_back(pod)
            if not self._keeps_place(member, node):
                return  # what gives it another one asks for it to be told
        pin = node if hint is PlacementHint.PIN and not pod.pinned else NO_NODE
        await self._gates.open(pod, pin=pin)

    def _keeps_place(self, member: Member, node: NodeName) -> bool:
        """Whether the member is still to be told of that place; it may be lost during a write."""
        present = self._cache.members.get(member.pod.uid)
        return present is member and member.node == node and self._must_be_told(member)

    async def _nominate(self, member: Member) -> None:
        pod, node = member.pod, member.node
        self._nominations.writes(member, node)
        with self._waking(member):
            await self._pods.patch_pod_status(
                pod.namespace, pod.name, patches.nomination(node), uid=pod.uid
            )
        metrics.WRITES.labels("nomination", "done").inc()

    async def _wake(self, member: Member) -> None:
        pod = member.pod
        with self._waking(member):
            token = f"{self._clock():.3f}"
            # A pod that kube-scheduler's own rule refused is woken by no annotation.
            await self._pods.wake_pod(
                pod.namespace, pod.name, uid=pod.uid, token=token, by_label=follows(member)
            )
        metrics.WRITES.labels("wake", "done").inc()

    @contextmanager
    def _waking(self, member: Member) -> Iterator[None]:
        """A write wakes a member: kube-scheduler may ask, and be refused, before its answer."""
        before = member.refused
        self._cache.decisions.woken(member)
        try:
            yield
        except Exception:
            if before:
                self._cache.decisions.refused(member)
            raise


def log_failure(key: Hashable, error: Exception) -> None:
    """Log an effect that failed in an unforeseen way; it comes back."""
    metrics.WRITES.labels("effect", "failed").inc()
    log.error("effect failed", extra={"key": key}, exc_info=error)
