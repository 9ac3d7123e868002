"""The event of a pod that waits behind our gate: what ``kubectl describe pod`` shows of the reason.

Stock kube-scheduler writes a ``FailedScheduling`` event for every attempt; behind the gate there
are no attempts. Here one is written when the cause is new, and again when half an hour has passed,
as the API server forgets events. The members of a gang are told one after another, the first of
each gang first, and all pods together not more often than a few times a second: a pod whose cause
has gone when its turn comes is not told.
"""

import asyncio
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Protocol

from app.kit.workqueue import Again, WorkQueue
from app.model.ids import PodUid
from app.model.pod import Pod
from app.model.reason import Cause, Refusal
from app.service.effects.failed_writes import again_unless_gone
from app.service.ports import Clock, EventSink, WriteError
from app.service.telling.hiding import Wording

FAILED = "FailedScheduling"
FIRST_AFTER_S = 2.0
"""A reason that is over sooner (the pods were just being created) is not worth an event."""
NEXT_MEMBER_S = 0.1
"""So much later than one member of a gang the next one is told."""
PER_S = 20.0
"""Events of all pods together."""
CHANGED_EVERY_S = 15.0
"""Two events of one pod are so far apart, however often its cause changes."""
AGAIN_EVERY_S = 1800.0


class Reasons(Protocol):
    """Tells why a pod waits."""

    def __call__(self, uid: PodUid) -> tuple[Pod, Refusal] | None:
        """The pod and its reason while it waits behind the gate; raises `Again` if it may go."""


@dataclass(frozen=True, slots=True)
class _Told:
    cause: Cause
    at: float


class PodEvents:
    """Writes the events, one by one."""

    def __init__(
        self,
        reasons: Reasons,
        *,
        wording: Wording,
        events: EventSink,
        clock: Clock,
        failed: Callable[[Hashable, Exception], None],
        namespace_of: Callable[[PodUid], str],
    ) -> None:
        self._reasons = reasons
        self._wording = wording
        self._events = events
        self._clock = clock
        self._told: dict[PodUid, _Told] = {}
        self._work: WorkQueue[PodUid] = WorkQueue(self._tell, failed=failed, lane_of=namespace_of)

    async def run(self) -> None:
        """Work for ever; cancel to stop."""
        await self._work.run(1)

    def ask(self, uid: PodUid, *, rank: int) -> None:
        """The cause of the pod is another one; it is number ``rank`` of its gang."""
        self._work.add_later(uid, FIRST_AFTER_S + NEXT_MEMBER_S * rank)

    def forget(self, *, all_but: Collection[PodUid] = ()) -> None:
        """Forget pods that are gone; or all, as another replica has told them since."""
        self._told = {uid: told for uid, told in self._told.items() if uid in all_but}

    def __len__(self) -> int:
        return len(self._told)

    async def _tell(self, uid: PodUid) -> None:
        found = self._reasons(uid)
        if found is None:
            return
        pod, refusal = found
        last, now = self._told.get(uid), self._clock()
        if last is not None:
            every_s = AGAIN_EVERY_S if last.cause is refusal.cause else CHANGED_EVERY_S
            if now - last.at < every_s:
                raise Again("told a while ago", after_s=every_s - (now - last.at))
        await self._write(pod, self._wording.describe(refusal, namespace=pod.namespace))
        self._told[uid] = _Told(refusal.cause, now)
        await asyncio.sleep(1 / PER_S)
        raise Again("the API server forgets events", after_s=AGAIN_EVERY_S)

    async def _write(self, pod: Pod, message: str) -> None:
        try:
            await self._events.record_event(
                kind="Pod",
                api_version="v1",
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                event_type="Warning",
                reason=FAILED,
                message=message,
            )
        except WriteError as error:
            again_unless_gone(error)
