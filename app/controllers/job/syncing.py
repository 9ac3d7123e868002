"""Syncs: what is missing is made, what is too much is taken away, and the status tells.

Pods are made only when the PodGroup is admitted, so that a backlog of jobs is no load for the
scheduler. Before pods are deleted, a status is written that counts them as terminating already.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from app.controllers.job import (
    beyond,
    completion,
    counts,
    group,
    machine,
    pods,
    status,
    sync,
)
from app.controllers.job.job_writer import JobWriter
from app.controllers.job.members import pinned_node, with_taken
from app.controllers.job.memory import Memory
from app.controllers.job.patience import LOOK_S, SOON_S
from app.controllers.job.pod_writer import PodWriter, first_of, texts_of
from app.controllers.job.pods import Seat
from app.controllers.job.prepare import Absent, Preparation, Unlisted, Unready
from app.controllers.job.reader import Reader, Seen, without
from app.controllers.job.slots import Dealer, Slots, SlotSource
from app.controllers.job.status import NOTHING, Why
from app.controllers.job.sync import Replica
from app.controllers.job.view import Job, moment
from app.controllers.job.vocabulary import Phase
from app.controllers.ports import ApiError, Clock, Events, Failure
from app.core.gangs.stranded import STRANDED_SINCE
from app.jobplugins.plugin import PodOfJob
from app.jobplugins.rules.problems import PluginError
from app.model.pod import TASK_SPEC
from app.wire import times, unstructured
from app.wire.findings import Findings
from app.wire.pod_types import check_types
from app.wire.unstructured import Object

MOST_PODS: Final = 150_000
"""What Kubernetes is made for, in a whole cluster. More would only fill this process's memory."""

EARLIER: Final = "EarlierPods"
"""The reason of jobs that wait for pods of an earlier job of their name to go."""
_EARLIER_S: Final = 3.0
"""How often it is looked whether these are gone, beside each time that the watch shows it."""
_FAILED_DELETE: Final = ("FailedDelete", "Error deleting pods")
_TOLD_BEFORE: Final = frozenset({"FailedCreate", "FailedDelete", EARLIER})
"""Reasons that have had their event when a sync concludes."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What kept a sync from its end.

    ``refused``: the same again will be refused again; ``after_s``: when to look again,
    where it may be over so soon that the user need not be told.
    """

    reason: str
    message: str
    refused: bool
    after_s: float | None = None

    @property
    def told(self) -> bool:
        """Whether the user is to know of it."""
        return self.after_s is None or self.reason == EARLIER


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Syncing:
    """Brings jobs and their pods together."""

    reader: Reader
    jobs: JobWriter
    pods: PodWriter
    preparation: Preparation
    slots: SlotSource
    events: Events
    clock: Clock
    schedulers: Collection[str]
    """Names under which our gate is known to be taken away again."""

    async def sync(self, seen: Seen, memory: Memory) -> Problem | None:
        """One round; what it could not do."""
        why = _hopeless(seen.job)
        if why is not None:
            await self._fail(seen, why)
            return None
        await self.pods.settle(completion.to_settle(seen.job, seen.members))
        try:
            job = await self._initiate(seen, memory)
        except PluginError as error:
            await self._fail(seen, Why("PluginError", str(error)))
            return None
        problem, found = None, None
        try:
            job, found = await self.preparation.prepare(self.reader.around(job), memory)
            memory.all_there()
        except Unlisted as unlisted:
            if unlisted.hopeless and not seen.members:
                await self._fail(self.reader.around(job), Why(unlisted.reason, str(unlisted)))
                return None
            problem = _problem_of(unlisted)
            await self._conclude(self.reader.still(job, seen), (), problem)
            return problem
        except Unready as unready:
            problem = replace(_problem_of(unready), after_s=self._may_come(unready, memory))
        seen, failed = await self._remove(self.reader.still(job, seen), memory)
        problem = problem or failed
        made: Sequence[Object] = ()
        if found is not None:
            await self._tell_of_group(job, found, memory)
            if group.is_admitted(found):
                made, failed = await self._create(seen, found, memory)
                problem = failed if failed is not None and failed.told else problem or failed
        await self._conclude(seen, made, problem if problem is None or problem.told else None)
        return problem

    def _may_come(self, unready: Unready, memory: Memory) -> float | None:
        """When to look again for what may be applied together with the job, a moment later."""
        absent = isinstance(unready, Absent)
        return LOOK_S if absent and memory.absent_s(self.clock()) < SOON_S else None

    async def _initiate(self, seen: Seen, memory: Memory) -> Job:
        """Say what will be made before it is; the rest is told when it is done."""
        job = seen.job
        if memory.prepared == (job.generation, job.version) and job.phase is not Phase.NEW:
            return job
        resources = self.preparation.resources(job)
        told = job.status.get("controlledResources") or {}
        if job.phase is not Phase.NEW and resources == told:
            return job
        made = status.status(
            job,
            sync.count_without_surplus(job, seen.members),
            phase=Phase.PENDING if job.phase is Phase.NEW else job.phase,
            now=self.clock(),
            resources=resources,
        )
        return await self.jobs.write_status(job, made)

    async def _fail(self, seen: Seen, why: Why) -> None:
        job, now = seen.job, self.clock()
        made = status.status(job, counts.count(seen.members), phase=Phase.FAILED, now=now, why=why)
        await self.jobs.write_status(job, made)
        await self.events.record(job.item, "Warning", why.reason, why.message)

    async def _remove(self, seen: Seen, memory: Memory) -> tuple[Seen, Problem | None]:
        """Take away what is too much; what there is besides, and what could not be done."""
        spared = memory.refusals.pauses_s(seen.members, now=self.clock())
        refused = sync.refused(seen.members, spared=spared)
        if refused:
            # Before a status is written that does not count them: what another process has taken by
            # then was evicted, though the watch may not have shown it.
            errors = await self.pods.claim(refused)
            if errors:
                return seen, await self._problem(seen.job, *_FAILED_DELETE, errors)
            seen = self.reader.still(seen.job, seen)
        job, surplus = seen.job, sync.too_much(seen.job, seen.members)
        if not surplus:
            return seen, None
        counted = sync.count_without_surplus(job, seen.members)
        made = status.status(job, counted, phase=job.phase, now=self.clock())
        job = await self.jobs.write_status(job, made)
        for member in surplus:
            if member.refused_node:
                memory.refusals.add(member.name)
        # Those of an older version are no eviction anyway.
        unclear = [member for member in surplus if member.version >= job.version]
        errors = await self.pods.mark(unclear) or await self.pods.delete(surplus)
        problem = await self._problem(job, *_FAILED_DELETE, errors)
        return replace(without(seen, surplus), job=job), problem

    async def _create(
        self, seen: Seen, found: Object, memory: Memory
    ) -> tuple[Sequence[Object], Problem | None]:
        """Make what is missing; the pods as made, and what was not done."""
        job = seen.job
        missing = sync.missing(job, self.reader.still(job, seen).members)
        names = {sync.pod_name(job, replica): replica for replica in missing}
        earlier = {name for name in names if self.reader.is_left_over(job, name)}
        missing = [replica for name, replica in names.items() if name not in earlier]
        if not missing:
            memory.held_back = 0
            return (), await self._wait_for(job, earlier, memory)
        slots = await self._ask_for_slots(job, missing, found)
        due = await self._made_now(seen, missing, slots, memory)
        seats = self._seats(job, due, slots, memory)
        plugins = self.preparation.plugins(job)

        def make(replica: Replica, seat: Seat) -> Object:
            name = sync.pod_name(job, replica)
            evicted = evicted_at.get(name, 0.0)
            bare = pods.pod(job, replica, group=group_name, seat=seat, evicted=evicted)
            return plugins.pod(bare, PodOfJob(replica.task.name, replica.index))

        group_name = unstructured.name(found)
        evicted_at = memory.evicted_at
        makes = [partial(make, replica, seat) for replica, seat in zip(due, seats, strict=True)]
        made, errors, in_the_way = await self.pods.create(job, makes)
        earlier.update(key.name for key in in_the_way)
        problem = await self._problem(job, "FailedCreate", "Error creating pods", errors)
        waits = await self._wait_for(job, earlier, memory)
        left = len(due) - len(made) - len(in_the_way)
        return made, problem or _unfinished(left) or waits

    async def _wait_for(self, job: Job, earlier: Collection[str], memory: Memory) -> Problem | None:
        """Say that pods of an earlier job of this name have to go first, if there are any."""
        was_told, memory.waits_for_earlier = memory.waits_for_earlier, bool(earlier)
        if not earlier:
            return None
        text = (
            f"{len(earlier)} pods wait to be created until those of an earlier job of this name are"
            f" gone: {first_of(sorted(earlier))}"
        )
        if not was_told:
            await self.events.record(job.item, "Normal", EARLIER, text)
        return Problem(EARLIER, text, refused=False, after_s=_EARLIER_S)

    async def _ask_for_slots(
        self, job: Job, missing: Sequence[Replica], found: Object
    ) -> Slots | None:
        if not any(self._is_ours(job, replica) for replica in missing):
            return None
        return await self.slots.get(job.key.namespace, unstructured.name(found))

    async def _made_now(
        self, seen: Seen, missing: Sequence[Replica], slots: Slots | None, memory: Memory
    ) -> Sequence[Replica]:
        """The part of ``missing`` that is made now; says when the first of the others are not."""
        job = seen.job
        bearable = slots.bearable if slots is not None else {} if memory.held_back else None
        due = missing
        if bearable is not None:
            due = beyond.made_now(
                job,
                missing,
                self.reader.still(job, seen).members,
                priorities=self.reader.priorities(),
                bearable=bearable,
                is_ours=partial(self._is_ours, job),
            )
        before, memory.held_back = memory.held_back, len(missing) - len(due)
        if memory.held_back and not before:
            text = (
                f"{memory.held_back} pods beyond the minimum wait to be created: queue {job.queue}"
                " cannot hold them now, and a ResourceQuota of the namespace would count them"
            )
            await self.events.record(job.item, "Normal", "PodsHeldBack", text)
        return due

    def _seats(
        self, job: Job, missing: Sequence[Replica], slots: Slots | None, memory: Memory
    ) -> list[Seat]:
        ours = [self._is_ours(job, replica) for replica in missing]
        dealer = Dealer(slots, taken=_taken(self.reader.unseen_pods(job)))

        def seat(replica: Replica) -> Seat:
            again = sync.pod_name(job, replica) in memory.refusals
            node = "" if again else dealer.deal(replica.task.name)
            return Seat(node, gate=True, generation=dealer.generation, second_try=again)

        return [
            seat(replica) if is_ours else Seat()
            for replica, is_ours in zip(missing, ours, strict=True)
        ]

    def _is_ours(self, job: Job, replica: Replica) -> bool:
        spec = replica.task.template.get("spec") or {}
        return (spec.get("schedulerName") or job.scheduler) in self.schedulers

    async def _tell_of_group(self, job: Job, found: Object, memory: Memory) -> None:
        """Tell why the group waits, and since when it is stranded, where that is news."""
        text = group.waiting_message(job, found)
        if memory.tells(text, self.clock()):
            await self.events.record(job.item, "Warning", "PodGroupPending", text)
        why = _stranded(job, found)
        if why is not None and memory.strands(why.message):
            await self.events.record(job.item, "Warning", why.reason, why.message)

    async def _conclude(
        self, seen: Seen, created: Sequence[Object], problem: Problem | None
    ) -> None:
        job = seen.job
        seen = self.reader.still(job, seen)
        counted = sync.count_without_surplus(job, with_taken(seen.members, created))
        phase = machine.after_sync(job, job.phase, counted)
        why = _stranded(job, seen.group) or NOTHING
        if problem is not None:
            why = Why(problem.reason, problem.message)
        if phase is Phase.FAILED:
            text = (
                f"{counted.succeeded} of {job.replicas} pods succeeded, {counted.failed} failed;"
                f" {job.min_success or job.min_available} are needed"
            )
            why = Why("TooFewSucceeded", text)
        made = status.status(job, counted, phase=phase, now=self.clock(), why=why)
        await self.jobs.write_status(job, made)
        if problem is not None and problem.reason not in _TOLD_BEFORE:
            await self.events.record(job.item, "Warning", problem.reason, problem.message)

    async def _problem(
        self, job: Job, reason: str, what: str, errors: Sequence[ApiError]
    ) -> Problem | None:
        if not errors:
            return None
        text = f"{what}: {texts_of(errors)}"
        await self.events.record(job.item, "Warning", reason, text)
        refused = any(error.failure is Failure.REFUSED for error in errors)
        return Problem(reason, text, refused=refused)


def _stranded(job: Job, group: Object | None) -> Why | None:
    """Since when the gang has run below its minimum, and what follows; None: it does not."""
    since = moment(unstructured.annotations(group or {}).get(STRANDED_SINCE))
    if not since or job.stranded is None:
        return None
    due = times.seconds(since + (job.stranded.timeout_s or 0.0))
    text = f"the gang has run below its minimum since {times.seconds(since)}"
    return Why("Stranded", f"{text}; {job.stranded.action} follows at {due}")


def _problem_of(unready: Unready) -> Problem:
    refused = unready.failure is Failure.REFUSED
    return Problem(unready.reason, str(unready), refused=refused)


def _unfinished(left: int) -> Problem | None:
    if not left:
        return None
    return Problem("", f"{left} pods are still to be made", refused=False, after_s=0.0)


def _hopeless(job: Job) -> Why | None:
    """Why the job cannot run, whatever happens; its templates are looked at before it is begun."""
    if job.replicas > MOST_PODS:
        text = f"{job.replicas} pods are more than the {MOST_PODS} that a cluster can run"
        return Why("TooManyPods", text)
    text = _template_problems(job) if job.phase is Phase.NEW else ""
    return Why("TemplateError", text) if text else None


def _template_problems(job: Job) -> str:
    """Why no pod can be made of a template, in the words of admission; empty: of all one can.

    The schema of stored jobs takes any object for a template.
    """
    findings = Findings()
    for number, task in enumerate(job.tasks):
        check_types(task.template, f"spec.tasks[{number}].template", findings)
    return findings.message()


def _taken(created: Sequence[Object]) -> list[tuple[str, str]]:
    return [
        (unstructured.annotations(pod).get(TASK_SPEC, ""), pinned_node(unstructured.spec(pod)))
        for pod in created
    ]
