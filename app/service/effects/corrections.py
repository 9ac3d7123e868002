"""Has kube-scheduler ask again for pods of which it tells an outdated reason.

The condition of an ungated pod repeats what Filter answered last. While anything is bound or
deleted the scheduler asks again all the time; in a cluster where nothing happens only after five
minutes, and till then a pod seems to wait for a PodGroup, say, that has long been there. Such a pod
is woken: once that has lasted for a while, few at a time, and none while so many wait that they are
brought again by back-off alone.
"""

from collections.abc import Callable, Hashable
from itertools import islice

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import namespaces_in
from app.kit.workqueue import WorkQueue
from app.model.ids import PodUid
from app.service.calls.filtering import Filtering
from app.service.ports import Clock, PodWriter, WriteError
from app.telemetry import metrics

PATIENCE_S = 5.0
_AT_ONCE = 8
"""How many pods at most are woken at each look."""


class Corrections:
    """Remembers since when which pods were told something else than holds."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        filtering: Filtering,
        pods: PodWriter,
        clock: Clock,
        failed: Callable[[Hashable, Exception], None],
    ) -> None:
        self._cache = cache
        self._filtering = filtering
        self._pods = pods
        self._clock = clock
        self._since: dict[PodUid, float] = {}
        self._work: WorkQueue[PodUid] = WorkQueue(
            self._wake, failed=failed, lane_of=namespaces_in(cache.members)
        )

    async def run(self, workers: int) -> None:
        """Work for ever; cancel to stop."""
        await self._work.run(workers)

    def look(self, now: float) -> None:
        """Find pods that were told something else for long enough."""
        self._since = {
            uid: self._since.get(uid, now) for uid in self._filtering.told_something_else()
        }
        late = (uid for uid, since in self._since.items() if now - since >= PATIENCE_S)
        for uid in list(islice(late, _AT_ONCE)):
            self._since[uid] = now
            self._work.add(uid)

    async def _wake(self, uid: PodUid) -> None:
        """Wake the pod; if kube-scheduler does not ask for it then, it has its turn again."""
        member = self._cache.members.get(uid)
        if member is None or member.pod.node:
            return
        pod = member.pod
        try:
            token = f"{self._clock():.3f}"
            await self._pods.wake_pod(pod.namespace, pod.name, uid=pod.uid, token=token)
        except WriteError as error:
            metrics.WRITES.labels("wake", error.reaction.value).inc()
        else:
            metrics.WRITES.labels("wake", "done").inc()
