r"""The life of a job as data: what to do in a phase about an action, and where a sync leads.

::

    Pending <-> Running -> Completed | Failed
       |  \        | \ \
       |   \       |  \ `-> Completing  -> Completed
       |    \      |   `--> Terminating -> Terminated
       |     \     `------> Aborting    -> Aborted --.
       |      `-> Restarting -> Pending              | ResumeJob
       |              |  ^---------------------------'
       |              `-> Failed, when the retries are used up
       `--> whatever Running goes to on an action

Entering a phase is a write of the status; what the phase wants is then derived from the stored
status and the pods, as often as need be. So a controller that dies anywhere is continued by the
next one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from app.controllers.job.counts import Counts
from app.controllers.job.view import Job
from app.controllers.job.vocabulary import FINISHED, TARGETED, Action, Phase


class Keep(Enum):
    """Which pods a kill leaves."""

    NONE = "none"
    SOFT = "soft"
    """Those that have ended."""


@dataclass(frozen=True, slots=True)
class Sync:
    """Make what is missing, take away what is too much, and see where that leads."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Begin a new version without pods; ``to`` None: the phase stays."""

    keep: Keep
    to: Phase | None = None
    retry: bool = False


@dataclass(frozen=True, slots=True)
class KillTarget:
    """Take away the pods that the action is about."""

    to: Phase | None = None
    retry: bool = False


@dataclass(frozen=True, slots=True)
class Drain:
    """Take away what has not ended; when nothing is left, go on to ``to``."""

    to: Phase | None = None


Step = Sync | Kill | KillTarget | Drain

_RESUME: Final = Kill(Keep.SOFT, Phase.RESTARTING, retry=True)

_ALIVE: Final[Mapping[Action, Step]] = {
    Action.RESTART_JOB: Kill(Keep.NONE, Phase.RESTARTING, retry=True),
    **dict.fromkeys(TARGETED, KillTarget(Phase.RESTARTING, retry=True)),
    Action.ABORT_JOB: Kill(Keep.SOFT, Phase.ABORTING),
    Action.TERMINATE_JOB: Kill(Keep.SOFT, Phase.TERMINATING),
    Action.COMPLETE_JOB: Kill(Keep.SOFT, Phase.COMPLETING),
    Action.RESUME_JOB: Sync(),
    Action.SYNC_JOB: Sync(),
}
_RESTARTING: Final[Mapping[Action, Step]] = {
    **dict.fromkeys(Action, Kill(Keep.NONE)),
    **dict.fromkeys(TARGETED, KillTarget()),
    Action.SYNC_JOB: Sync(),
}


def _all(step: Step, resume: Step | None = None) -> Mapping[Action, Step]:
    return {**dict.fromkeys(Action, step), Action.RESUME_JOB: resume or step}


STEPS: Final[Mapping[Phase, Mapping[Action, Step]]] = {
    Phase.NEW: _ALIVE,
    Phase.PENDING: _ALIVE,
    Phase.RUNNING: _ALIVE,
    Phase.RESTARTING: _RESTARTING,
    Phase.ABORTING: _all(Drain(Phase.ABORTED), _RESUME),
    Phase.ABORTED: _all(Drain(), _RESUME),
    Phase.TERMINATING: _all(Drain(Phase.TERMINATED)),
    Phase.COMPLETING: _all(Drain(Phase.COMPLETED)),
    **dict.fromkeys(FINISHED, _all(Drain())),
}


def after_sync(job: Job, phase: Phase, counts: Counts) -> Phase:
    """Where a sync leads from ``phase`` with the pods as they are."""
    rule = _RULES.get(phase)
    return rule(job, counts) if rule is not None else phase


def after_drain(phase: Phase, counts: Counts) -> Phase:
    """Where a phase that drains leads."""
    step = STEPS[phase][Action.SYNC_JOB]
    if isinstance(step, Drain) and step.to is not None and counts.active == 0:
        return step.to
    return phase


def is_last_retry(job: Job) -> bool:
    """Whether the restart going on is one too many: what ended is then left to be looked at."""
    return job.retries >= job.max_retry


def _pending(job: Job, counts: Counts) -> Phase:
    reached = counts.running + counts.succeeded + counts.failed
    return Phase.RUNNING if job.min_available <= reached else Phase.PENDING


def _running(job: Job, counts: Counts) -> Phase:
    if job.replicas == 0:
        return Phase.RUNNING
    if job.min_success is not None and counts.succeeded >= job.min_success:
        return Phase.COMPLETED
    if counts.succeeded + counts.failed == job.replicas:
        return _ended(job, counts)
    if counts.pending > job.replicas - job.min_available:
        return Phase.PENDING
    return Phase.RUNNING


def _ended(job: Job, counts: Counts) -> Phase:
    """Every pod has ended: was it enough, of every task and in all?"""
    if job.min_available >= sum(task.minimum for task in job.tasks) and any(
        counts.of(task.name).succeeded < task.minimum for task in job.tasks
    ):
        return Phase.FAILED
    if job.min_success is not None:
        return Phase.FAILED
    return Phase.COMPLETED if counts.succeeded >= job.min_available else Phase.FAILED


def _restarting(job: Job, counts: Counts) -> Phase:
    if is_last_retry(job):
        return Phase.FAILED
    least = int(job.status.get("minAvailable") or 0)
    return Phase.PENDING if job.replicas - counts.terminating >= least else Phase.RESTARTING


_RULES: Final[Mapping[Phase, Callable[[Job, Counts], Phase]]] = {
    Phase.PENDING: _pending,
    Phase.RUNNING: _running,
    Phase.RESTARTING: _restarting,
}
