"""Makes the jobs of JobFlows, each when what it depends on is there.

A job has one name per step, so it is made once; which steps are done is told by the jobs and, for
those that have been deleted since, by the status. A job that goes before the status tells of its
end is remembered until it does. The status is written for the version that was read: two writers
cannot undo each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.controllers.garbage import is_finished
from app.controllers.jobflow import probes
from app.controllers.jobflow.machine import Phase
from app.controllers.jobflow.probes import Prober, Why
from app.controllers.jobflow.report import COMPLETED, ended, job_phase, phase_of, report
from app.controllers.jobflow.steps import Step, job_of, problem, steps_of
from app.controllers.ports import Api, ApiError, Clock, Events, Failure
from app.controllers.requests import GONE, unless
from app.controllers.runtime import ObjectChange
from app.controllers.store import Index, Store, by_controller
from app.kit.workqueue import Again
from app.wire import times
from app.wire.kinds import JOB_FLOWS, JOB_TEMPLATES, JOBS, PODS, Resource
from app.wire.unstructured import (
    Key,
    Object,
    is_deleting,
    key_of,
    name,
    namespace,
    owner_of,
    spec,
    status,
    uid,
)

INDEXES: Final[Mapping[Resource, Mapping[str, Index]]] = {
    JOB_FLOWS: {"namespace": namespace},
    JOB_TEMPLATES: {},
    JOBS: {"controller": by_controller},
    PODS: {"controller": by_controller},
}
"""How this controller finds objects in the stores."""

_KIND: Final = (JOB_FLOWS.api_version, JOB_FLOWS.kind)
_PROBE_S: Final = 5.0
"""Pods are asked again after that long."""
_REFUSED_S: Final = 30.0
"""The pause after a job was refused; what refuses it (a closed queue, a quota) may change."""
_SOON_S: Final = 3.0
"""Templates that are applied together with a flow, after it, are there by then."""


@dataclass(slots=True)
class _Memory:
    """What there is to remember of a flow.

    By step: ``asked`` is when pods were asked, ``told`` what was said last about why it does not
    start, ``missed`` since when there is no template. By name: ``gone`` are jobs that went after
    their end.
    """

    asked: dict[str, float] = field(default_factory=dict)
    told: dict[str, Why] = field(default_factory=dict)
    missed: dict[str, float] = field(default_factory=dict)
    gone: dict[str, Object] = field(default_factory=dict)


class JobFlowController:
    """See the module."""

    name = "jobflow-controller"
    kinds = (JOB_FLOWS, JOB_TEMPLATES, JOBS)

    def __init__(
        self,
        stores: Mapping[Resource, Store],
        *,
        api: Api,
        events: Events,
        prober: Prober,
        clock: Clock,
    ) -> None:
        self._stores = stores
        self._api = api
        self._events = events
        self._prober = prober
        self._clock = clock
        self._memories: dict[Key, _Memory] = {}

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """The flow; of a template those that use it."""
        item = change.item
        if change.resource is JOB_FLOWS:
            if change.new is None:
                self._memories.pop(key_of(item), None)
            return (key_of(item),)
        if change.resource is JOB_TEMPLATES:
            flows = self._stores[JOB_FLOWS].by("namespace", namespace(item))
            return [key_of(flow) for flow in flows if name(item) in steps_of(flow)]
        owner = owner_of(item)
        if owner is None or (owner.api_version, owner.kind) != _KIND:
            return ()
        key = Key(namespace(item), owner.name)
        if change.new is None and is_finished(item) and self._stores[JOB_FLOWS].get(key):
            self._memory(key).gone[name(item)] = item
        return (key,)

    async def reconcile(self, key: Key) -> None:
        """Make the jobs whose turn it is, and tell how far the flow is."""
        flow = self._stores[JOB_FLOWS].get(key)
        if flow is None or is_deleting(flow):
            self._memories.pop(key, None)
            return
        phase = phase_of(flow)
        if phase is Phase.SUCCEED:
            await self._tell_added(flow)
            if spec(flow).get("jobRetainPolicy") == "delete":
                await self._delete_jobs(flow)
            return
        steps = steps_of(flow)
        if phase.is_open and (why := problem(steps)):
            await self._events.record(flow, "Warning", "InvalidJobFlow", why)
            await self._note(flow, {**status(flow), "state": {"phase": Phase.FAILED.value}})
            return
        jobs = self._jobs(flow)
        pause, failure = None, None
        try:
            pause = await self._advance(flow, steps, jobs) if phase.is_open else None
        except ApiError as error:
            # What has ended is told all the same.
            failure = error
        now = times.seconds(self._clock())
        names = frozenset(step.job.name for step in steps.values())
        await self._note(flow, report(flow, jobs, steps=names, now=now))
        if failure is not None:
            raise failure
        if pause is not None:
            raise Again("a step waits", after_s=pause)

    async def _tell_added(self, flow: Object) -> None:
        """Say of flows that admission did not keep from being added that they do not run.

        Those of a JobFlow whose status knows of no end are left out: it may be Volcano's, where
        jobs that are deleted leave nothing.
        """
        done = ended(flow)
        added = [step for step in steps_of(flow).values() if step.job.name not in done]
        if not added or not done:
            self._memories.pop(key_of(flow), None)
            return
        self._memory(key_of(flow)).gone.clear()
        for step in added:
            why = f"{step.name} does not run: the JobFlow has ended, create another one for it"
            await self._tell(flow, step, why, reason="FlowIgnored")

    def _memory(self, flow: Key) -> _Memory:
        return self._memories.setdefault(flow, _Memory())

    def _jobs(self, flow: Object) -> dict[str, Object]:
        """The jobs that count: those that exist, and those whose end is not noted yet."""
        found = self._stores[JOBS].by("controller", uid(flow))
        there = {name(job): job for job in found if not is_deleting(job) or is_finished(job)}
        memory = self._memory(key_of(flow))
        noted = ended(flow)
        memory.gone = {
            job: each
            for job, each in memory.gone.items()
            if by_controller(each) == uid(flow) and job not in noted
        }
        return memory.gone | there

    async def _advance(
        self, flow: Object, steps: Mapping[str, Step], jobs: dict[str, Object]
    ) -> float | None:
        """Add to ``jobs`` what can be made; returns after how long to look again, if so."""
        done = ended(flow)
        pauses: list[float] = []
        for step in steps.values():
            if step.job.name in jobs or step.job.name in done:
                continue
            targets = [steps[target].job.name for target in step.targets]
            there = [jobs[target] for target in targets if target in jobs]
            if len(there) + sum(t in done and t not in jobs for t in targets) < len(targets):
                continue
            if not step.probes:
                ready = all(job_phase(job) == COMPLETED for job in there)
                pause = None
            else:
                ready, pause = await self._probe(flow, step, there)
            if ready:
                pause = await self._make(flow, step, jobs)
            pauses += [pause] if pause is not None else []
        return min(pauses, default=None)

    async def _probe(
        self, flow: Object, step: Step, targets: Sequence[Object]
    ) -> tuple[bool, float | None]:
        """Whether the probes hold; if not, after how long to try again.

        ``targets`` are those that exist.
        """
        if all(job_phase(job) == COMPLETED for job in targets):
            return True, None
        unknown = probes.unknown_tasks(step.probes, targets)
        # One that is complete and deleted by now may have had it.
        if unknown and len(targets) == len(step.targets):
            await self._tell(flow, step, f"no target of {step.name} has a task {unknown[0]}")
            return False, None
        if any(probes.statuses(probe, targets) for probe in step.probes):
            return False, None
        asking = [probe for probe in step.probes if probes.asks_pods(probe)]
        asked = self._memory(key_of(flow)).asked
        left = asked.get(step.name, 0.0) + _PROBE_S - self._clock()
        if asking and left > 0:
            return False, left
        asked[step.name] = self._clock()
        for probe in asking:
            why = await probes.answers(probe, targets, pods=self._pods, prober=self._prober)
            if why:
                await self._tell(flow, step, f"{step.name} waits: {why}", reason="ProbeFailed")
                return False, _PROBE_S
        return True, None

    def _pods(self, job: Object) -> Iterable[Object]:
        return self._stores[PODS].by("controller", uid(job))

    async def _make(self, flow: Object, step: Step, jobs: dict[str, Object]) -> float | None:
        """Make the job; returns after how long to try again if it could not be made."""
        template = self._stores[JOB_TEMPLATES].get(Key(namespace(flow), step.name))
        missed = self._memory(key_of(flow)).missed
        if template is None:
            left = missed.setdefault(step.name, self._clock()) + _SOON_S - self._clock()
            if left > 0:
                return left
            await self._tell(flow, step, f"there is no JobTemplate {step.name}")
            return None
        missed.pop(step.name, None)
        try:
            job = await self._api.create(JOBS, job_of(step, flow, template))
        except ApiError as error:
            if error.failure is Failure.EXISTS:
                return await self._existing(flow, step, jobs)
            if error.failure is not Failure.REFUSED:
                raise
            await self._tell(flow, step, f"cannot create a job named {step.job.name}: {error}")
            return _REFUSED_S
        jobs[step.job.name] = job
        self._memory(key_of(flow)).told.pop(step.name, None)
        said = f"create a job named {step.job.name}!"
        await self._events.record(flow, "Normal", "Created", said)
        return None

    async def _existing(self, flow: Object, step: Step, jobs: dict[str, Object]) -> float | None:
        """What to do about a job that exists under the step's name.

        The job is ours, not shown by the watch yet, or a foreign one.
        """
        job = await self._api.get(JOBS, step.job)
        owner = owner_of(job)
        if owner is None or owner.uid != uid(flow):
            await self._tell(flow, step, f"job {step.job.name} does not belong to this JobFlow")
            return _REFUSED_S
        if is_deleting(job):
            return _PROBE_S
        jobs[step.job.name] = job
        return None

    async def _tell(
        self, flow: Object, step: Step, why: Why, *, reason: str = "FailedCreate"
    ) -> None:
        """Say once why a step does not start."""
        told = self._memory(key_of(flow)).told
        if told.get(step.name) != why:
            told[step.name] = why
            await self._events.record(flow, "Warning", reason, why)

    async def _note(self, flow: Object, wanted: Object) -> None:
        """Write the status if it says something else than before."""
        if wanted == status(flow):
            return
        try:
            stored = await self._api.update(
                JOB_FLOWS, {**flow, "status": wanted}, subresource="status"
            )
        except ApiError as error:
            if error.failure is Failure.CONFLICT:
                raise Again("the watch is behind") from error
            if error.failure is not Failure.NOT_FOUND:
                raise
            return
        self._stores[JOB_FLOWS].renew(stored)

    async def _delete_jobs(self, flow: Object) -> None:
        for job in self._stores[JOBS].by("controller", uid(flow)):
            if is_deleting(job):
                continue
            with unless(*GONE):
                await self._api.delete(JOBS, key_of(job), uid=uid(job))
