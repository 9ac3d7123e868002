"""The reason on the pods themselves, for those behind our gate.

A pod that waits behind the gate says ``PodScheduled=False, SchedulingGated`` and nothing else; the
condition ``pumice.sh/Placed`` says why, in the sentence that its group's condition and event carry;
so does an event of the pod (:mod:`app.service.effects.pod_events`). The condition is written when
the cause changes. Numbers that are wrong are put right after a few seconds, and later the more pods
wait, so that a backlog of whatever length costs a bounded number of writes. It is never written on
a pod that is in kube-scheduler's queue: there, any write makes the scheduler try the pod again.

What stands on a pod may have been written by another process. Its cause is believed until this one
writes, its numbers are not; and then what was written last, as the watch may be late.
"""

import asyncio
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, Stage, namespaces_in
from app.kit.workqueue import Again, WorkQueue
from app.model.ids import GroupKey, PodUid
from app.model.pod import PLACED_CONDITION, Pod
from app.model.reason import Cause, Refusal
from app.service.activity import Activity
from app.service.cycle.last_plan import LastPlan
from app.service.effects.failed_writes import again_unless_gone
from app.service.effects.pod_events import PodEvents
from app.service.ports import Clock, EventSink, PodWriter, WriteError
from app.service.telling.reasons import Reasons
from app.wire import patches, times

MISSING_AFTER_S = 3.0
_INSTANT_S = 0.001
TEXT_EVERY_S = 5.0
"""Two conditions of one pod that both say why it waits are so far apart at least."""
TEXTS_PER_S = 20.0
"""Of all waiting pods together, so many conditions a second are looked at for their numbers."""


@dataclass(frozen=True, slots=True)
class Said:
    """The cause that was written last, empty where it was taken back; the sentence; when.

    No sentence: what stands there is of another process.
    """

    cause: str
    text: str
    at: float


class PodReasons:
    """Keeps the condition of gated pods up to date."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        activity: Activity,
        last_plan: LastPlan,
        reasons: Reasons,
        pods: PodWriter,
        events: EventSink,
        clock: Clock,
        failed: Callable[[Hashable, Exception], None],
    ) -> None:
        self._cache = cache
        self._activity = activity
        self._last_plan = last_plan
        self._reasons = reasons
        self._pods = pods
        self._clock = clock
        self._said: dict[PodUid, Said] = {}
        self._followed: set[PodUid] = set()
        """Pods whose condition is looked at again."""
        namespace_of = namespaces_in(cache.members)
        self._work: WorkQueue[PodUid] = WorkQueue(self._follow, failed=failed, lane_of=namespace_of)
        self._events = PodEvents(
            self._reason_on,
            wording=reasons.wording,
            events=events,
            clock=clock,
            failed=failed,
            namespace_of=namespace_of,
        )

    async def run(self, workers: int) -> None:
        """Work for ever; cancel to stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._work.run(workers))
            group.create_task(self._events.run())

    def after_cycle(self, changed: Collection[GroupKey]) -> None:
        """Look at groups that changed or wait for something else now."""
        for key in changed:
            group = self._cache.groups.get(key)
            cause = None if group is None else self._cause(group)
            if group is not None and cause is not None:
                self._ask(group, cause)
        members = self._cache.members
        if len(self._said) > 2 * len(members):
            self._said = {uid: said for uid, said in self._said.items() if uid in members}
        if len(self._events) > 2 * len(members):
            self._events.forget(all_but=members)

    def stood_by(self) -> None:
        """Another replica leads: what it writes stands on the pods."""
        self._said.clear()
        self._events.forget()

    def placed(self, member: Member) -> patches.JsonObject | None:
        """The status patch that takes the reason back, None where none stands."""
        if not self._stands_on(member.pod):
            return None
        return self._patch("True", "Planned", f"planned on {member.node}")

    def taken_back(self, pod: Pod) -> None:
        """Note that the patch was accepted."""
        if self._stands_on(pod):
            self._said[pod.uid] = Said("", "", self._clock())

    def _stands_on(self, pod: Pod) -> str:
        """The cause that its condition names, empty where it names none."""
        said = self._said.get(pod.uid)
        return pod.refused_for if said is None else said.cause

    def _ask(self, group: Group, cause: Cause) -> None:
        for rank, (uid, member) in enumerate(group.waiting.items()):
            if not self._speaks_of(member):
                continue
            if self._stands_on(member.pod) != cause:
                self._work.add(uid)
                self._events.ask(uid, rank=rank)
            elif uid not in self._followed:
                self._work.add(uid)

    def _speaks_of(self, member: Member) -> bool:
        """Whether the member waits behind a gate, and goes on doing so."""
        return member.pod.gated and member.pod.uid not in self._last_plan.shown

    async def _follow(self, uid: PodUid) -> None:
        """Write what is to stand on the pod; raises `Again` while it waits, to look again."""
        self._followed.discard(uid)
        found = self._waits(uid)
        if found is None:
            return
        group, pod = found
        member = self._cache.members[uid]
        cause, told = self._cause(group), self._reasons.of_member(group, member)
        if cause is None or told is None or not self._activity.active:
            return  # a missing group is known to a replica that stands by, too
        self._followed.add(uid)
        text = self._reasons.wording.describe(told, namespace=pod.namespace)
        now = self._clock()
        said = self._said.get(uid)
        if said is None and pod.refused_for == cause:
            said = self._said[uid] = Said(cause, "", now)
        if said is not None and said.cause:
            if said.text == text and said.cause == cause:
                raise Again("look again", after_s=self._pause())
            pause = said.at + (TEXT_EVERY_S if said.cause != cause else self._pause()) - now
            if pause > _INSTANT_S:
                raise Again("said a moment ago", after_s=pause)
        if cause is Cause.GROUP_MISSING:
            self._wait_for_group(pod)
        await self._write(pod, Said(cause, text, now), told)
        if uid not in self._said:
            self._followed.discard(uid)
            return
        raise Again("look again", after_s=self._pause())

    async def _write(self, pod: Pod, says: Said, told: Refusal) -> None:
        self._said[pod.uid] = says  # from now on: it may get its place while this is written
        try:
            await self._pods.patch_pod_status(
                pod.namespace, pod.name, self._patch("False", told.cause, says.text), uid=pod.uid
            )
        except WriteError as error:
            self._said.pop(pod.uid, None)
            again_unless_gone(error)

    def _pause(self) -> float:
        """Seconds between two looks at the numbers of one pod."""
        return max(TEXT_EVERY_S, len(self._followed) / TEXTS_PER_S)

    def _waits(self, uid: PodUid) -> tuple[Group, Pod] | None:
        """The group and the pod, if that waits behind a gate and goes on doing so."""
        member = self._cache.members.get(uid)
        if member is None or not self._speaks_of(member) or member.stage is not Stage.WAITING:
            return None
        return self._cache.groups[member.group], member.pod

    def _reason_on(self, uid: PodUid) -> tuple[Pod, Refusal] | None:
        """Why the pod waits, for its event."""
        found = self._waits(uid)
        if found is None or not self._activity.active:
            return None
        group, pod = found
        if self._cause(group) is Cause.GROUP_MISSING:
            self._wait_for_group(pod)
        told = self._reasons.of_member(group, self._cache.members[uid])
        return None if told is None else (pod, told)

    def _cause(self, group: Group) -> Cause | None:
        if not group.known:
            return Cause.GROUP_MISSING
        refusal = self._last_plan.refusals.get(group.key)
        return None if refusal is None else refusal.cause

    def _wait_for_group(self, pod: Pod) -> None:
        """Operators create pods and PodGroup in any order; raises `Again` while that may be.

        Of a pod that was not known before, or has been told of a group just now, this process may
        not have seen the group yet, nor have asked the owner whether it wants one.
        """
        since = max(pod.created, self._cache.members[pod.uid].since)
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
