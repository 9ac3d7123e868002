"""The reason on the pods themselves, for those behind our gate.

A pod that waits behind the gate says ``PodScheduled=False, SchedulingGated`` and nothing else; the
condition ``pumice.sh/Placed`` says why, in the sentence that its group's condition and event carry.
It is written when the cause changes, not when its numbers do, and never on a pod that is in
kube-scheduler's queue: there, any write makes the scheduler try the pod again.

What stands on a pod may have been written by another process. It is believed until this one writes,
and then what was written last, as the watch may be late.
"""

from collections.abc import Callable, Collection, Hashable, Iterable

from app.cache.cluster import ClusterCache
from app.cache.groups import Group
from app.cache.members import Member, Stage
from app.core.texts import describe
from app.model.ids import GroupKey, PodUid
from app.model.pod import PLACED_CONDITION, Pod
from app.model.reason import Cause
from app.service.failed_writes import again_unless_gone
from app.service.planning import Planning
from app.service.ports import Clock, PodWriter, WriteError
from app.service.reasons import reason_of
from app.service.workqueue import Again, WorkQueue
from app.wire import patches, times

MISSING_AFTER_S = 3.0


class PodReasons:
    """Keeps the condition of gated pods up to date."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        planning: Planning,
        pods: PodWriter,
        clock: Clock,
        failed: Callable[[Hashable, Exception], None],
    ) -> None:
        self._cache = cache
        self._planning = planning
        self._pods = pods
        self._clock = clock
        self._said: dict[PodUid, str] = {}
        """The cause that was written last, empty where it was taken back."""
        self._work: WorkQueue[PodUid] = WorkQueue(self._write, failed=failed)

    async def run(self, workers: int) -> None:
        """Work for ever; cancel to stop."""
        await self._work.run(workers)

    def after_cycle(self, changed: Collection[GroupKey]) -> None:
        """Look at groups that changed or wait for something else now."""
        for key in changed:
            group = self._cache.groups.get(key)
            cause = None if group is None else self._cause(group)
            if group is not None and cause is not None:
                self._ask(group.waiting.values(), cause)
        if len(self._said) > 2 * len(self._cache.members):
            self._said = {u: c for u, c in self._said.items() if u in self._cache.members}

    def stood_by(self) -> None:
        """Another replica leads: what it writes stands on the pods."""
        self._said.clear()

    def placed(self, member: Member) -> patches.JsonObject | None:
        """The status patch that takes the reason back, None where none stands."""
        if not self._stands_on(member.pod):
            return None
        return self._patch("True", "Planned", f"planned on {member.node}")

    def taken_back(self, pod: Pod) -> None:
        """That patch was accepted."""
        if self._stands_on(pod):
            self._said[pod.uid] = ""

    def _stands_on(self, pod: Pod) -> str:
        """The cause that its condition names, empty where it names none."""
        return self._said.get(pod.uid, pod.refused_for)

    def _ask(self, waiting: Iterable[Member], cause: Cause) -> None:
        for member in waiting:
            if self._speaks_of(member) and self._stands_on(member.pod) != cause:
                self._work.add(member.pod.uid)

    def _speaks_of(self, member: Member) -> bool:
        """Whether it waits behind a gate, and goes on doing so."""
        return member.pod.gated and member.pod.uid not in self._planning.shown

    async def _write(self, uid: PodUid) -> None:
        member = self._cache.members.get(uid)
        if member is None or not self._speaks_of(member) or member.stage is not Stage.WAITING:
            return
        pod, group = member.pod, self._cache.groups[member.group]
        cause, told = self._cause(group), reason_of(self._cache, self._planning, group)
        if cause is None or told is None or self._stands_on(pod) == cause:
            return
        if not self._planning.activity.active:
            return  # a missing group is known to a replica that stands by, too
        if cause is Cause.GROUP_MISSING:
            self._wait_for_group(member)
        self._said[uid] = cause  # from now on: it may get its place while this is written
        try:
            await self._pods.patch_pod_status(
                pod.namespace, pod.name, self._patch("False", told.cause, describe(told)), uid=uid
            )
        except WriteError as error:
            self._said.pop(uid, None)
            again_unless_gone(error)

    def _cause(self, group: Group) -> Cause | None:
        if not group.known:
            return Cause.GROUP_MISSING
        refusal = self._planning.refusals.get(group.key)
        return None if refusal is None else refusal.cause

    def _wait_for_group(self, member: Member) -> None:
        """Operators create pods and PodGroup in any order; raises `Again` while that may be.

        Of a pod that was not known before, or has been told of a group just now, this process may
        not have seen the group yet, nor have asked the owner whether it wants one.
        """
        since = max(member.pod.created, member.since)
        pause = since + MISSING_AFTER_S - self._clock()
        if pause > 0:
            raise Again("the PodGroup may be on its way", after_s=pause)

    def _patch(self, status: str, reason: str, message: str) -> patches.JsonObject:
        return patches.pod_condition(
            PLACED_CONDITION,
            status,
            reason=reason,
            message=message,
            at=times.seconds(self._clock()),
        )
