"""Opens the gates of pods that only lack a node (:mod:`app.core.actions.queue_allocation_gates`).

kube-scheduler then asks Filter, is told to wait and calls the pod unschedulable, which is what
autoscalers look for. ``pumice.sh/Placed`` goes from the pod first: its ``PodScheduled`` has the
reason from now on.
"""

from collections.abc import Callable, Collection, Hashable

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Stage, namespaces_in
from app.kit.workqueue import WorkQueue
from app.model.ids import GroupKey, PodUid
from app.model.pod import PLACED_CONDITION
from app.service.cycle.last_plan import LastPlan
from app.service.effects.failed_writes import again_unless_gone
from app.service.effects.gates import Gates
from app.service.effects.pod_reasons import PodReasons
from app.service.ports import PodWriter, WriteError
from app.telemetry import metrics
from app.wire import patches


class QueueAllocationGates:
    """Lets kube-scheduler see what the plan shows."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        last_plan: LastPlan,
        pods: PodWriter,
        reasons: PodReasons,
        gates: Gates,
        failed: Callable[[Hashable, Exception], None],
    ) -> None:
        self._cache = cache
        self._last_plan = last_plan
        self._pods = pods
        self._reasons = reasons
        self._gates = gates
        self._work: WorkQueue[PodUid] = WorkQueue(
            self._open, failed=failed, lane_of=namespaces_in(cache.members)
        )

    async def run(self, workers: int) -> None:
        """Work for ever; cancel to stop."""
        await self._work.run(workers)

    def after_cycle(self, _changed: Collection[GroupKey]) -> None:
        """Ask for the gates of all that are shown and still have one."""
        for uid in self._last_plan.shown:
            if not self._gates.is_open(uid):
                self._work.add(uid)

    async def _open(self, uid: PodUid) -> None:
        member = self._cache.members.get(uid)
        if member is None or uid not in self._last_plan.shown:
            return
        pod = member.pod
        if member.stage is not Stage.WAITING or not pod.gated or pod.foreign_gates:
            return
        try:
            await self._pods.patch_pod_status(
                pod.namespace, pod.name, patches.without_condition(PLACED_CONDITION), uid=uid
            )
            self._reasons.taken_back(pod)
            await self._gates.open(pod)
        except WriteError as error:
            metrics.WRITES.labels("gate", error.reaction.value).inc()
            again_unless_gone(error)
