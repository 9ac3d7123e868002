"""Takes nominations back from pods that lost the place they were nominated to.

kube-scheduler keeps the room of a nominated pod against all others of equal or lower priority, so a
nomination that outlives its reservation blocks the pod that has the next one there. The scheduler
drops it itself when it refuses the pod, but not of a pod that never gets as far (a claim that does
not exist, a gate). Taking one back wakes all pods that wait in the scheduler's queue, hence only
after a moment in which the place may come back or the scheduler may do it.

Not nominations by kube-scheduler, which nominates pods that it evicts others for, pods that we had
nominated before among them, and pods that it is about to bind: of a pod in PreBind it keeps the
room anyway. Of the former, what stands on a pod says whose it is (:attr:`Pod.left_nomination`), so
that it does not matter which process of ours wrote it. Later ones that we do not know of are the
last leader's on pods behind a gate, which kube-scheduler has not tried, and on members of gangs,
for which it evicts no pod (:mod:`app.service.calls.preemption`).
"""

from collections.abc import Callable, Hashable, Iterator

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member, Stage, namespaces_in
from app.kit.workqueue import WorkQueue
from app.model.ids import NodeName, PodUid
from app.service.effects.failed_writes import again_unless_gone
from app.service.ports import PodWriter, WriteError
from app.wire import patches

PATIENCE_S = 2.0


class Nominations:
    """Remembers since when pods have been nominated for nothing."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        pods: PodWriter,
        failed: Callable[[Hashable, Exception], None],
    ) -> None:
        self._cache = cache
        self._pods = pods
        self._stale_since: dict[PodUid, float] = {}
        self._work: WorkQueue[PodUid] = WorkQueue(
            self._clear, failed=failed, lane_of=namespaces_in(cache.members)
        )

    async def run(self, workers: int) -> None:
        """Work for ever; cancel to stop."""
        await self._work.run(workers)

    def writes(self, member: Member, node: NodeName) -> None:
        """We nominate it."""
        self._cache.decisions.nominated(member, node)

    def stood_by(self) -> None:
        """Another replica leads: it nominates too, and what is stale is its business."""
        self._stale_since.clear()

    def look(self, now: float) -> None:
        """Find nominations that have been without a reservation for a moment."""
        self._stale_since = {m.pod.uid: self._since(m, now) for m in self._stale()}
        for uid, since in self._stale_since.items():
            if now - since >= PATIENCE_S:
                self._work.add(uid)

    def _since(self, member: Member, now: float) -> float:
        """From now on if it counts as ours only now: it may just be given another one."""
        before = member.hinted
        self._cache.decisions.nominated(member, member.pod.nominated)
        return self._stale_since.get(member.pod.uid, now) if before == member.hinted else now

    def _stale(self) -> Iterator[Member]:
        members = self._cache.members
        nominated = (members[uid] for uid in self._cache.pods.nominated_members if uid in members)
        return (member for member in nominated if self._is_stale(member))

    def _is_stale(self, member: Member) -> bool:
        if member.stage is not Stage.WAITING or not member.pod.nominated or member.pod.node:
            return False
        if member.in_prebind:
            return False
        if self._cache.groups[member.group].is_gang:
            return True
        return member.hinted == member.pod.nominated or bool(member.pod.gates)

    async def _clear(self, uid: PodUid) -> None:
        member = self._cache.members.get(uid)
        if member is None or not self._is_stale(member):
            return
        if member.hinted != member.pod.nominated:
            return  # it may evict others by now, and be nominated for that
        if uid not in self._stale_since:
            return  # another replica leads by now
        pod = member.pod
        try:
            await self._pods.patch_pod_status(
                pod.namespace, pod.name, patches.nomination(None), uid=uid
            )
        except WriteError as error:
            again_unless_gone(error)
