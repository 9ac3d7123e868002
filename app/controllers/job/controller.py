"""The controller of vcjobs.

A look at a job answers, in this order: a Command of a user; the first thing that happened and that
a policy wants answered now; what the phase wants (a sync, or the end of a kill). A job is looked at
when it, one of its pods, its PodGroup or a Command for it changes, and when a delay is over.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.controllers.job import answers, failures, machine, sync
from app.controllers.job.catching_up import CatchingUp
from app.controllers.job.commands import TARGET, Commands, Order, target_of
from app.controllers.job.extras import ReadPlugins
from app.controllers.job.fresh import CONTROLLER, OVERDUE_S, Fresh
from app.controllers.job.group_writer import GroupWriter
from app.controllers.job.job_writer import JobWriter
from app.controllers.job.killing import Killing
from app.controllers.job.known_jobs import KnownJobs
from app.controllers.job.machine import Keep, Kill, KillTarget, Step
from app.controllers.job.members import Member
from app.controllers.job.memory import Memories, Memory
from app.controllers.job.patience import patience_s
from app.controllers.job.pod_writer import PodWriter
from app.controllers.job.policies import Happening
from app.controllers.job.prepare import Preparation
from app.controllers.job.reader import Reader, Seen
from app.controllers.job.slots import SlotSource
from app.controllers.job.syncing import Syncing
from app.controllers.job.vocabulary import FAILURES, Action, Phase
from app.controllers.ports import Api, ApiError, Clock, Events, Failure
from app.controllers.runtime import ObjectChange, Stores
from app.controllers.store import Index, by_controller
from app.jobplugins import catalogue
from app.kit.durations import format_duration
from app.kit.workqueue import Again
from app.wire import unstructured
from app.wire.kinds import (
    COMMANDS,
    JOBS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    Resource,
)
from app.wire.unstructured import Key, Object, key_of

INDEXES: Final[Mapping[Resource, Mapping[str, Index]]] = {
    JOBS: {CONTROLLER: by_controller},
    PODS: {CONTROLLER: by_controller},
    POD_GROUPS: {CONTROLLER: by_controller},
    COMMANDS: {TARGET: target_of},
    QUEUES: {},
    PRIORITY_CLASSES: {},
}
"""The kinds that are followed, and how their objects are found."""

HELD_BACK_S: Final = 3.0
"""After how long a queue is asked again whether it can hold the pods that were not made."""
_EXECUTE: Final = "ExecuteAction"
_OWNED: Final = frozenset({PODS, POD_GROUPS})
_SYNCED: Final = frozenset({Phase.NEW, Phase.PENDING, Phase.RUNNING})


@dataclass(frozen=True, slots=True)
class JobOptions:
    """``schedulers``: ours, the default first; ``max_requeues``: ``--max-requeue-num``."""

    schedulers: Sequence[str] = ("volcano",)
    max_requeues: int = 15


class JobController:
    """Runs vcjobs."""

    def __init__(
        self,
        stores: Stores,
        *,
        api: Api,
        events: Events,
        slots: SlotSource,
        clock: Clock,
        options: JobOptions | None = None,
        read_plugins: ReadPlugins = catalogue.parse,
    ) -> None:
        options = options or JobOptions()
        fresh = {kind: Fresh(stores[kind], clock=clock) for kind in (JOBS, PODS, POD_GROUPS)}
        known = KnownJobs(fresh[JOBS], scheduler=options.schedulers[0])
        reader = Reader(stores, fresh=fresh, jobs=known)
        jobs, groups = JobWriter(api, known), GroupWriter(api, fresh[POD_GROUPS])
        pods = PodWriter(api, fresh[PODS], clock=clock)
        preparation = Preparation(
            api=api,
            reader=reader,
            jobs=jobs,
            groups=groups,
            read_plugins=read_plugins,
            clock=clock,
        )
        self._events = events
        self._clock = clock
        self._reader = reader
        self._catching_up = CatchingUp(api, fresh=fresh, jobs=known, reader=reader)
        self._commands = Commands(stores, api=api, jobs=jobs, events=events)
        self._killing = Killing(
            reader=reader,
            jobs=jobs,
            groups=groups,
            pods=pods,
            preparation=preparation,
            events=events,
            clock=clock,
        )
        self._syncing = Syncing(
            reader=reader,
            jobs=jobs,
            pods=pods,
            preparation=preparation,
            slots=slots,
            events=events,
            clock=clock,
            schedulers=frozenset(options.schedulers),
        )
        self._memories = Memories()
        self._patience_s = patience_s(options.max_requeues)

    @property
    def name(self) -> str:
        """As in ``--controllers``."""
        return "job-controller"

    @property
    def kinds(self) -> Sequence[Resource]:
        """The kinds that the controller follows."""
        return tuple(INDEXES)

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """The job that a change concerns."""
        fallen = self._reader.fallen(change)
        if fallen is not None:
            self._memories.fell(by_controller(fallen.item), fallen)
        self._reader.saw(change)
        if change.resource is JOBS:
            if change.new is None:
                self._memories.drop(unstructured.uid(change.item))
                self._reader.forget(unstructured.uid(change.item))
            return [key_of(change.item)]
        if change.resource is COMMANDS:
            return self._of_command(change)
        return _of_owner(change.item) if change.resource in _OWNED else ()

    async def reconcile(self, key: Key) -> None:
        """Bring a job nearer to what is wanted of it."""
        try:
            await self._reconcile(key)
        except ApiError as error:
            if error.failure not in {Failure.PASSING, Failure.CONFLICT}:
                raise
            raise Again(str(error)) from error

    async def _reconcile(self, key: Key) -> None:
        seen = self._reader.see(key)
        if seen is not None:
            seen = await self._catching_up.caught_up(seen)
        if seen is None or unstructured.is_deleting(seen.job.item):
            await self._commands.refuse(key, going="" if seen is None else seen.job.uid)
            return
        memory = self._memories.of(seen.job.uid)
        order = await self._commands.take(seen.job)
        if order is not None:
            await self._execute(order)
            memory.acted(order.action, None)
            raise Again("a command is executed", after_s=0.0)
        answer = answers.find(seen, memory, now=self._clock())
        for text in answer.refused:
            await self._events.record(seen.job.item, "Warning", "PolicyIgnored", text)
        for delayed in answer.announced:
            after = format_duration(delayed.timeout_s)
            text = f"Execute action {delayed.action.value} after {after}"
            await self._events.record(seen.job.item, "Normal", _EXECUTE, text)
        if answer.due is not None:
            due = answer.due
            await self._begin(seen, due.action, due.about, cause=due.about.text)
            memory.acted(due.action, due.about)
            raise Again("an action is under way", after_s=0.0)
        await self._go_on(seen, memory)
        later = [*self._pauses_s(seen, memory)]
        if answer.wait_s is not None:
            later.append(answer.wait_s)
        if later:
            raise Again("a delay goes on", after_s=min(later))

    def _pauses_s(self, seen: Seen, memory: Memory) -> Iterator[float]:
        """After how long to look again whatever happens."""
        members = self._reader.around(seen.job).members
        yield from memory.refusals.pauses_s(members, now=self._clock()).values()
        if self._reader.unseen_pods(seen.job):
            yield OVERDUE_S
        if memory.held_back:
            yield HELD_BACK_S

    async def _execute(self, order: Order) -> None:
        if not order.is_executed:
            seen = self._reader.around(order.job)
            if not await self._commands.refused(order):
                await self._begin(seen, order.action, None, cause=order.why)
        now = self._reader.see(order.job.key)
        if now is not None:
            await self._commands.done(now.job)

    async def _begin(
        self, seen: Seen, action: Action, about: Happening | None, *, cause: str
    ) -> None:
        """Begin what the action does in this phase; looking again does the rest."""
        if action is not Action.SYNC_JOB:
            text = f"Start to execute action {action.value} "
            await self._events.record(seen.job.item, "Normal", _EXECUTE, text)
        step = machine.step(seen.job, action)
        await self._tell_failures(seen, step, action, about)
        if isinstance(step, Kill):
            failure = about is not None and about.event in FAILURES
            await self._killing.begin(seen, step, action, cause=cause, failure=failure)
        elif isinstance(step, KillTarget) and about is not None:
            await self._killing.begin_target(seen, step, action, about=about)

    async def _tell_failures(
        self, seen: Seen, step: Step, action: Action, about: Happening | None
    ) -> None:
        """Tell of failed pods that the step takes away."""
        taken: Iterable[Member] = ()
        if isinstance(step, KillTarget) and about is not None:
            taken = sync.targets(seen.job, action, about, among=seen.members)
        elif isinstance(step, Kill) and step.keep is Keep.NONE:
            taken = seen.members
        for text in failures.last_of_tasks(m for m in taken if not m.marked and not m.deleting):
            await self._events.record(seen.job.item, "Warning", failures.REASON, text)

    async def _go_on(self, seen: Seen, memory: Memory) -> None:
        if seen.job.phase not in _SYNCED:
            memory.granted()
            await self._killing.go_on(seen)
            return
        problem = await self._syncing.sync(seen, memory)
        if problem is None or not problem.refused:
            memory.granted()
        elif memory.refused_s(self._clock()) >= self._patience_s:
            await self._give_up(seen.job.key)
        if problem is not None:
            raise Again(problem.message, after_s=problem.after_s)

    async def _give_up(self, key: Key) -> None:
        seen = self._reader.see(key)
        if seen is None:
            return
        text = "Job failed on action SyncJob for retry limit reached"
        await self._events.record(seen.job.item, "Warning", _EXECUTE, text)
        await self._killing.begin(
            seen, Kill(Keep.SOFT, Phase.TERMINATING), Action.TERMINATE_JOB, cause=text
        )

    def _of_command(self, change: ObjectChange) -> Iterable[Key]:
        if change.new is None:
            self._commands.gone(change.item)
            return
        namespace, _, name = target_of(change.new).partition("/")
        if name:
            yield Key(namespace, name)


def _of_owner(item: Object) -> Iterable[Key]:
    owner = unstructured.owner_of(item)
    if owner is not None and (owner.kind, owner.api_version) == (JOBS.kind, JOBS.api_version):
        yield Key(unstructured.namespace(item), owner.name)
