"""Whether the owner of a pod makes a gang of its pods.

A ReplicaSet asks for a gang by an annotation; its pods name no PodGroup until the controller of
PodGroups has made one and told them. Until then only the owner knows, so it is asked, once for all
of its pods: those of an owner that wants no gang are scheduled at once, the others wait for their
PodGroup, however long that takes.
"""

import logging
from collections.abc import Callable, Collection, Hashable

from app.cache.cluster import ClusterCache
from app.kit.workqueue import Again, WorkQueue
from app.model.ids import GroupKey
from app.service.ports import Clock, OwnerReader, Reaction, WriteError

log = logging.getLogger(__name__)

AGAIN_AFTER_S = 60.0
"""An owner of waiting pods may be told later that it wants no gang."""


class Owners:
    """Asks about the owners that the cache waits for."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        reader: OwnerReader,
        clock: Clock,
        settled: Callable[[], None],
        failed: Callable[[Hashable, Exception], None],
    ) -> None:
        """``settled`` is told when pods need not wait any more."""
        self._cache = cache
        self._reader = reader
        self._clock = clock
        self._settled = settled
        self._asked: dict[str, float] = {}
        self._work: WorkQueue[str] = WorkQueue(self._ask, failed=failed, lane_of=self._namespace_of)

    async def run(self, workers: int) -> None:
        """Work for ever; cancel to stop."""
        await self._work.run(workers)

    def after_cycle(self, _changed: Collection[GroupKey]) -> None:
        """Ask about owners that were not asked lately."""
        now, awaited = self._clock(), self._cache.pods.awaited.by_owner
        self._asked = {uid: at for uid, at in self._asked.items() if uid in awaited}
        for uid in awaited:
            if now - self._asked.get(uid, float("-inf")) >= AGAIN_AFTER_S:
                self._asked[uid] = now
                self._work.add(uid)

    def _namespace_of(self, uid: str) -> str:
        pod = next(iter(self._cache.pods.awaited.by_owner.get(uid, {}).values()), None)
        return "" if pod is None else pod.namespace

    async def _ask(self, uid: str) -> None:
        pod = next(iter(self._cache.pods.awaited.by_owner.get(uid, {}).values()), None)
        if pod is None or pod.owner is None:
            return
        try:
            least = await self._reader.read_least_members(pod.owner, namespace=pod.namespace)
        except WriteError as error:
            if error.reaction is Reaction.REFUSED:
                log.warning(
                    "owner of pods cannot be read, they wait for a PodGroup",
                    extra={"pod": pod.key, "owner": pod.owner.kind, "error": str(error)},
                )
                return
            raise Again(str(error)) from error
        if least <= 1:
            self._cache.pods.await_no_group(uid)
            self._settled()
