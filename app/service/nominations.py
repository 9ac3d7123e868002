"""Takes nominations back from pods that lost the place they were nominated to.

kube-scheduler keeps the room of a nominated pod against all others of equal or lower priority, so a
nomination that outlives its promise blocks whoever was promised the room next. The scheduler drops
it itself when it refuses the pod, but not of a pod that never gets as far (a claim that does not
exist, a gate). Taking one back wakes all pods that wait in the scheduler's queue, hence only after
a moment in which the place may come back or the scheduler may do it.

Only our own are taken back: the stock preemption nominates too, pods that we had nominated before
among them. It never nominates a member of a gang (see :mod:`app.service.preemption`), so when this
replica begins to lead those of gangs are known to be ours, or of the replica that led before.
"""

from collections.abc import Callable, Hashable

from app.cache.cluster import ClusterCache
from app.cache.members import Member, Stage
from app.model.ids import NodeName, PodUid
from app.service.failed_writes import again_unless_gone
from app.service.ports import PodWriter, WriteError
from app.service.workqueue import WorkQueue
from app.wire import patches

PATIENCE_S = 2.0


class Nominations:
    """Remembers which pods we nominated, until they are bound or gone."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        pods: PodWriter,
        failed: Callable[[Hashable, Exception], None],
    ) -> None:
        self._cache = cache
        self._pods = pods
        self._ours: set[PodUid] = set()
        self._stale_since: dict[PodUid, float] = {}
        self._begun = False
        self._work: WorkQueue[PodUid] = WorkQueue(self._clear, failed=failed)

    async def run(self, workers: int) -> None:
        """Work for ever; cancel to stop."""
        await self._work.run(workers)

    def writes(self, member: Member, node: NodeName) -> None:
        """We nominate it."""
        member.hinted = node
        self._ours.add(member.pod.uid)

    def stood_by(self) -> None:
        """Another replica leads: it nominates too, and what is stale is its business."""
        self._begun = False
        self._stale_since.clear()

    def look(self, now: float) -> None:
        """Find nominations that have been without a promise for a moment."""
        if not self._begun:
            self._begun = True
            for member in self._found():
                self.writes(member, member.pod.nominated)
        members = self._cache.members
        known = {uid: members[uid] for uid in self._ours if uid in members}
        self._ours = {uid for uid, member in known.items() if not member.pod.node}
        stale = [uid for uid in self._ours if _is_stale(known[uid])]
        self._stale_since = {uid: self._stale_since.get(uid, now) for uid in stale}
        for uid, since in self._stale_since.items():
            if now - since >= PATIENCE_S:
                self._work.add(uid)

    def _found(self) -> list[Member]:
        """Members of gangs that whoever led before nominated."""
        groups = self._cache.groups
        return [
            member
            for member in self._cache.members.values()
            if member.pod.nominated and groups[member.group].min_member > 1
        ]

    async def _clear(self, uid: PodUid) -> None:
        member = self._cache.members.get(uid)
        if member is None or member.pod.node or not _is_stale(member):
            return
        if uid not in self._stale_since:
            return  # another replica leads by now
        pod = member.pod
        try:
            await self._pods.patch_pod_status(
                pod.namespace, pod.name, patches.nomination(None), uid=uid
            )
        except WriteError as error:
            again_unless_gone(error)


def _is_stale(member: Member) -> bool:
    ours = bool(member.hinted) and member.pod.nominated == member.hinted
    return ours and member.stage is Stage.WAITING
