"""Kills: begun by a write of the status, carried out as long as the phase wants it.

The write that begins a kill counts the pods it will take as terminating already. From then on the
stored phase, version and reason, and the marks on pods, say all that is to be done; so it is the
same whether the controller that began it goes on or another. A kill of some pods marks those that
did not cause it before that write, and the one that did after it: until then the cause is found
again. All pods are marked before they are deleted, which tells every reader that this was no
eviction.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.controllers.job import counts, extras, machine, status, sync
from app.controllers.job.group_writer import GroupWriter
from app.controllers.job.job_writer import JobWriter
from app.controllers.job.machine import Kill, KillTarget
from app.controllers.job.members import Member
from app.controllers.job.pod_writer import PodWriter, texts_of
from app.controllers.job.policies import Happening
from app.controllers.job.prepare import Preparation
from app.controllers.job.reader import Reader, Seen, without
from app.controllers.job.status import NOTHING, Why
from app.controllers.job.view import Job
from app.controllers.job.vocabulary import FAILURES, Action, Phase
from app.controllers.ports import ApiError, Clock, Events
from app.jobplugins.rules.problems import PluginError
from app.kit.workqueue import Again
from app.wire.unstructured import Object


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Killing:
    """Takes pods of jobs away."""

    reader: Reader
    jobs: JobWriter
    groups: GroupWriter
    pods: PodWriter
    preparation: Preparation
    events: Events
    clock: Clock

    async def begin(
        self, seen: Seen, step: Kill, action: Action, *, cause: str, failure: bool = False
    ) -> None:
        """Enter the phase that takes all pods away; ``failure``: it is the job's own."""
        job = seen.job
        phase = step.to or job.phase
        restarted = _of_the_restart(seen) if step.to is not None else []
        await self._told(job, await self.pods.mark(restarted))
        made = self._begun(
            job, phase, Why(action.value, cause), retry=step.retry, failure=failure, whole=True
        )
        doomed = sync.killed(_with(job, made), seen.members)
        await self._commit(seen, made, [*doomed, *restarted])

    async def begin_target(
        self, seen: Seen, step: KillTarget, action: Action, *, about: Happening
    ) -> None:
        """Enter the phase that restarts the pods that the action is about."""
        job = seen.job
        found = sync.targets(job, action, about, among=seen.members)
        causes = [member for member in found if member.name == about.pod]
        others = [member for member in found if member.name != about.pod]
        await self._told(job, await self.pods.mark(others))
        if step.to is not None or sync.is_targeted(job):
            why = Why(action.value, about.text)
        else:
            why = Why(str(job.state.get("reason") or ""), about.text)
        phase = step.to or job.phase
        failure = about.event in FAILURES
        made = self._begun(job, phase, why, retry=step.retry, failure=failure, whole=False)
        job = await self._commit(seen, made, [member for member in found if not member.deleting])
        await self._told(job, await self.pods.mark(causes))

    async def go_on(self, seen: Seen) -> None:
        """Carry out what the phase wants, and leave it when that is done."""
        job, now = seen.job, self.clock()
        doomed = sync.killed(job, seen.members)
        if doomed:
            counted = counts.count(seen.members, leaving=sync.uids(doomed))
            made = status.status(job, counted, phase=job.phase, now=now)
            job = await self.jobs.write_status(job, made)
            # For others: that it is no eviction, the version tells us. So it may fail.
            await self.pods.mark(doomed)
            await self._told(job, await self.pods.delete(doomed))
        resources = await self._clear(seen, job)
        seen = self.reader.still(job, without(seen, doomed))
        counted = counts.count(seen.members)
        if job.phase is Phase.RESTARTING:
            phase = machine.after_sync(job, job.phase, counted)
        else:
            phase = machine.after_drain(job.phase, counted)
        why = None if phase is job.phase else _why(job, phase)
        made = status.status(job, counted, phase=phase, now=now, why=why, resources=resources)
        await self.jobs.write_status(job, made)

    def _begun(
        self, job: Job, phase: Phase, why: Why, *, retry: bool, failure: bool, whole: bool
    ) -> Object:
        now = self.clock()
        made = status.status(job, counts.count(()), phase=phase, now=now, why=why)
        return status.killed(job, made, retry=retry, failure=failure, new_version=whole, now=now)

    async def _commit(self, seen: Seen, made: Object, doomed: Sequence[Member]) -> Job:
        counted = counts.count(seen.members, leaving=sync.uids(doomed))
        return await self.jobs.write_status(seen.job, status.counted(made, counted))

    async def _clear(self, seen: Seen, job: Job) -> dict[str, str] | None:
        """Take away what is not pods, unless only some of those are restarted."""
        if job.phase is Phase.RESTARTING and sync.is_targeted(job):
            return None
        if seen.group is not None:
            await self.groups.delete(seen.group)
        if not extras.are_left(job):
            return None
        try:
            return await self.preparation.remove(job)
        except PluginError:
            return None

    async def _told(self, job: Job, errors: Sequence[ApiError]) -> None:
        if errors:
            text = texts_of(errors)
            await self.events.record(
                job.item, "Warning", "FailedDelete", f"Error deleting pods: {text}"
            )
            raise Again(text)


def _of_the_restart(seen: Seen) -> Sequence[Member]:
    """The pods that a restart has yet to take: they go whatever takes its place."""
    return sync.killed(seen.job, seen.members) if seen.job.phase is Phase.RESTARTING else ()


def _with(job: Job, made: Object) -> Job:
    return job.as_now({**job.item, "status": made})


def _why(job: Job, phase: Phase) -> Why | None:
    if phase is Phase.PENDING:
        return NOTHING
    if phase is Phase.FAILED:
        count, most = job.failures, job.max_retry
        return Why("MaxRetry", f"failures that asked for a restart: {count}, maxRetry is {most}")
    return None
