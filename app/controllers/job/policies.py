"""Which action a job's policies ask for when something happens.

The policies of the task that it happened in come first, then those of the job, each in their order;
the first that matches decides. ``*`` stands for what happens to pods, tasks and the group, not for
changes of the job itself: those are asked for by name. A pod that is pending only counts for a
policy that says for how long. What is to restart a partition does nothing where there is none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.controllers.job.view import Job, Policy
from app.controllers.job.vocabulary import ANY, TARGETED, Action, Event


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
        """The same for the same thing seen twice; an evicted pod is known by its place."""
        of_place = self.event is Event.POD_EVICTED or not self.uid
        return (self.event.value, self.task, self.pod if of_place else self.uid)

    @property
    def text(self) -> str:
        """For people."""
        if self.pod:
            return f"{self.event.value} of pod {self.pod}"
        return f"{self.event.value} of task {self.task}" if self.task else self.event.value


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


def are_there_any(job: Job) -> bool:
    """Whether anything that happens could matter to a policy."""
    return bool(job.policies) or any(task.policies for task in job.tasks)


def _policies(job: Job, name: str) -> Iterator[Policy]:
    task = job.task(name) if name else None
    if task is not None:
        yield from task.policies
    yield from job.policies


def _matches(policy: Policy, happening: Happening) -> bool:
    event = happening.event
    named = event.value in policy.events
    any_of_them = ANY in policy.events and event is not Event.JOB_UPDATED
    if named or any_of_them:
        return event is not Event.POD_PENDING or policy.timeout_s is not None
    return policy.exit_code is not None and policy.exit_code == happening.exit_code


def _decision(policy: Policy, happening: Happening) -> Decision | None:
    try:
        action = Action(policy.action)
    except ValueError:
        return None
    if action is Action.SYNC_JOB or (action in TARGETED and not happening.task):
        return None
    if action is Action.RESTART_PARTITION and not happening.partition:
        return None
    return Decision(action, policy.timeout_s)
