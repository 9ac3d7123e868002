"""Which action a job's policies ask for when something happens.

The policies of the task that it happened in come first, then those of the job, each in their order;
the first that matches decides. ``*`` stands for what happens to pods, tasks and the group, not for
changes of the job itself: those are asked for by name. A pod that is pending only counts for a
policy that says for how long. What a policy asks for and cannot have, it is told (`refusal`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.controllers.job.view import Job, Policy
from app.controllers.job.vocabulary import ANY, TARGETED, Action, Event

_BY_NAME: Final = frozenset({Event.JOB_UPDATED, Event.STRANDED})
"""Happenings that ``*`` does not stand for."""
_ENDING: Final = frozenset(
    {Action.RESTART_JOB, Action.ABORT_JOB, Action.TERMINATE_JOB, Action.COMPLETE_JOB}
)
"""Actions that end all pods of a job."""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened; ``at`` is when, 0 when nothing tells."""

    event: Event
    at: float = 0.0
    task: str = ""
    pod: str = ""
    uid: str = ""
    partition: str = ""
    exit_code: int | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        """An identity, equal for one happening seen twice; an evicted pod is known by its place."""
        of_place = self.event is Event.POD_EVICTED or not self.uid
        return (self.event.value, self.task, self.pod if of_place else self.uid)

    @property
    def of_task(self) -> str:
        """For people: where the pod is of no interest."""
        return f"{self.event.value} of task {self.task}" if self.task else self.event.value

    @property
    def text(self) -> str:
        """For people."""
        if self.pod:
            return f"{self.event.value} of pod {self.pod}"
        return self.of_task


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy asks for; ``timeout_s`` None: at once."""

    action: Action
    timeout_s: float | None = None


def decide(job: Job, happening: Happening) -> Decision | None:
    """The action asked for; None when it is only to be synchronised."""
    for policy in _policies(job, happening.task):
        if _matches(policy, happening):
            return _decision(policy, happening)
    return None


def ends_with_a_pod(job: Job) -> bool:
    """Whether the eviction of a pod of some task ends all pods of the job, now or later."""
    decided = (decide(job, Happening(Event.POD_EVICTED, task=task.name)) for task in job.tasks)
    return any(each is not None and each.action in _ENDING for each in decided)


def refusal(job: Job, happening: Happening) -> str:
    """Why what a policy asks for cannot be done, wherever the job is in its life; else empty."""
    for policy in _policies(job, happening.task):
        if _matches(policy, happening):
            why = _impossible(policy, happening)
            return f"{policy.action} on {happening.of_task} is not executed: {why}" if why else ""
        if happening.event is Event.POD_PENDING and happening.event.value in policy.events:
            return (
                f"{policy.action} on {happening.of_task} is not executed: every pod is pending at"
                " first, so the policy needs a timeout"
            )
    return ""


def are_there_any(job: Job) -> bool:
    """Whether anything that happens could matter to a policy."""
    return job.has_policies or job.stranded is not None


def _policies(job: Job, name: str) -> Iterator[Policy]:
    task = job.task(name) if name else None
    if task is not None:
        yield from task.policies
    yield from job.policies
    if job.stranded is not None:
        yield job.stranded


def _matches(policy: Policy, happening: Happening) -> bool:
    event = happening.event
    named = event.value in policy.events
    any_of_them = ANY in policy.events and event not in _BY_NAME
    if named or any_of_them:
        return event is not Event.POD_PENDING or policy.timeout_s is not None
    return policy.exit_code is not None and policy.exit_code == happening.exit_code


def _impossible(policy: Policy, happening: Happening) -> str:
    action = _action(policy)
    if action is None:
        return "there is no such action"
    if action in TARGETED and not happening.task:
        return "it happens to no task, so no pods are meant; RestartJob is possible"
    if action is Action.RESTART_PARTITION and not happening.partition:
        return "the task has no partitions; RestartTask and RestartPod are possible"
    return ""


def _decision(policy: Policy, happening: Happening) -> Decision | None:
    action = _action(policy)
    if action is None or action is Action.SYNC_JOB or _impossible(policy, happening):
        return None
    return Decision(action, policy.timeout_s)


def _action(policy: Policy) -> Action | None:
    try:
        return Action(policy.action)
    except ValueError:
        return None
