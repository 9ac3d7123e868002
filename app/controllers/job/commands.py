"""Commands: one-off requests of users, executed once.

A Command is noted on the job, deleted, executed, and the note is removed. A controller that finds a
note executes it; the status that comes of it names the Command, so that it is not executed again
when only the note was left. A controller that dies in between loses no Command and repeats none. A
Command for a job that the watch has not shown yet waits for it. A Command that cannot be executed,
in this phase of the job or at all, is refused with an event; of one that is being deleted nothing
is said, as a finalizer can keep it for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.controllers.job import machine
from app.controllers.job.job_writer import JobWriter
from app.controllers.job.machine import KillTarget, Refuse
from app.controllers.job.view import Job
from app.controllers.job.vocabulary import ACCEPTED_COMMAND, Action
from app.controllers.ports import Api, ApiError, Events, Failure
from app.controllers.requests import unless
from app.controllers.runtime import Stores
from app.kit.workqueue import Again
from app.wire import unstructured
from app.wire.kinds import COMMANDS, JOBS
from app.wire.unstructured import Key, Object, key_of

TARGET: Final = "target"
"""The index of Commands by the job they are for."""


@dataclass(frozen=True, slots=True)
class Order:
    """A Command to be executed; ``job`` carries the note."""

    job: Job
    action: Action
    uid: str

    @property
    def why(self) -> str:
        """What the status says of its cause."""
        return f"Command {self.uid}"

    @property
    def is_executed(self) -> bool:
        """Whether only the note is left of the order."""
        return self.job.state.get("message") == self.why


def target_of(command: Mapping[str, Any]) -> str:
    """``namespace/name`` of the job it is for; empty when it is for something else."""
    target = command.get("target") or {}
    group = str(target.get("apiVersion") or "").partition("/")[0]
    if target.get("kind") != JOBS.kind or group != JOBS.api_version.partition("/")[0]:
        return ""
    return f"{unstructured.namespace(command)}/{target.get('name')}"


class Commands:
    """Takes Commands for jobs."""

    def __init__(self, stores: Stores, *, api: Api, jobs: JobWriter, events: Events) -> None:
        self._store = stores[COMMANDS]
        self._api = api
        self._jobs = jobs
        self._events = events
        self._deleted: set[str] = set()

    def gone(self, command: Object) -> None:
        """The watch showed that it is deleted."""
        self._deleted.discard(unstructured.uid(command))

    async def take(self, job: Job) -> Order | None:
        """The next Command for the job, deleted and noted."""
        noted = _noted(job)
        if noted is not None:
            return noted
        for command in self._waiting(job.key):
            action = _action(command)
            other = _other_job(command, job)
            why = _refusal(job, action, other)
            if action is not None and not why:
                return await self._accept(job, command, action)
            if other:
                await self._await_job(command, job.key, known=job.uid)
            name = f"{command.get('action')} of command {unstructured.name(command)}"
            await self._ignored(job, name, why)
            await self._delete(command)
        return None

    async def refused(self, order: Order) -> bool:
        """Whether a noted order can no longer be executed, of which people are told."""
        why = _refusal(order.job, order.action, "")
        if why:
            await self._ignored(order.job, order.action.value, why)
        return bool(why)

    async def refuse(self, key: Key, *, going: str) -> None:
        """There is no such job, or only one that is ``going``: its Commands are never executed."""
        for command in self._waiting(key):
            await self._await_job(command, key, known=going)
            await self._events.record(
                command,
                "Warning",
                "CommandIgnored",
                f"{command.get('action')} of command {unstructured.name(command)} is not executed:"
                f" job {key} {'is being deleted' if going else 'is not there'}",
            )
            await self._delete(command)

    async def done(self, job: Job) -> None:
        """The order is executed."""
        await self._jobs.write(job, {"metadata": {"annotations": {ACCEPTED_COMMAND: None}}})

    async def _accept(self, job: Job, command: Object, action: Action) -> Order | None:
        note = f"{action.value}/{unstructured.uid(command)}"
        noted = await self._jobs.write(job, {"metadata": {"annotations": {ACCEPTED_COMMAND: note}}})
        await self._delete(command)
        await self._events.record(
            noted.item,
            "Normal",
            "CommandIssued",
            f"Start to execute command {action.value}, and clean it up to make sure executed not"
            " more than once.",
        )
        return _noted(noted)

    async def _await_job(self, command: Object, key: Key, *, known: str) -> None:
        """Raise :class:`Again` if it is for a job after the one ``known``."""
        with unless(Failure.NOT_FOUND):
            job = await self._api.get(JOBS, key)
            uid = unstructured.uid(job)
            wanted = str((command.get("target") or {}).get("uid") or uid)
            if known != uid == wanted and not unstructured.is_deleting(job):
                raise Again("the watch has not shown the job yet")

    async def _ignored(self, job: Job, what: str, why: str) -> None:
        await self._events.record(
            job.item, "Warning", "CommandIgnored", f"{what} is not executed: {why}"
        )

    async def _delete(self, command: Object) -> None:
        uid = unstructured.uid(command)
        try:
            await self._api.delete(COMMANDS, key_of(command), uid=uid)
        except ApiError as error:
            if error.failure is not Failure.NOT_FOUND:
                raise
        if self._store.get(key_of(command)) is not None:
            self._deleted.add(uid)

    def _waiting(self, key: Key) -> list[Object]:
        found = self._store.by(TARGET, str(key))
        waiting = [
            item
            for item in found
            if unstructured.uid(item) not in self._deleted and not unstructured.is_deleting(item)
        ]
        return sorted(waiting, key=unstructured.age)


def _noted(job: Job) -> Order | None:
    action, _, uid = unstructured.annotations(job.item).get(ACCEPTED_COMMAND, "").partition("/")
    try:
        return Order(job, Action(action), uid) if uid else None
    except ValueError:
        return None


def _action(command: Object) -> Action | None:
    try:
        return Action(str(command.get("action") or ""))
    except ValueError:
        return None


def _other_job(command: Object, job: Job) -> str:
    """The UID of the job that it is for, if that is another of the same name."""
    uid = str((command.get("target") or {}).get("uid") or "")
    return "" if uid == job.uid else uid


def _refusal(job: Job, action: Action | None, other: str) -> str:
    """Why a Command is not executed; ``other``: the UID of the job it is for, if not this."""
    if other:
        return f"it is for another job of this name, with the UID {other}"
    if action is None:
        return "jobs know no such action"
    step = machine.step(job, action)
    if isinstance(step, Refuse):
        phase = job.phase.value or "new"
        return f"the job is {phase}: it {step.why}"
    if isinstance(step, KillTarget):
        return "a Command names no task and no pod; RestartJob is possible"
    return ""
