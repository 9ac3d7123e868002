r"""The life of a job as data: what to do in a phase about an action, and where a sync leads.

::

    Pending <-> Running -> Completed | Failed
       |  \        | \ \
       |   \       |  \ `-> Completing  -> Completed
       |    \      |   `--> Terminating -> Terminated
       |     \     `------> Aborting    -> Aborted --.
       |      `-> Restarting -> Pending              | ResumeJob
       |              |  ^---------------------------'
       |              `-> Failed, when failures have used up the retries
       `--> whatever Running goes to on an action; so does Restarting

What an action cannot do in a phase it is refused with a sentence, see :class:`Refuse`.

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
    """Keep the pods that have ended."""


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


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do nothing about the action; ``why`` goes on after "the job"."""

    why: str


Step = Sync | Kill | KillTarget | Drain | Refuse

_RESUME: Final = Kill(Keep.SOFT, Phase.RESTARTING, retry=True)
_ENDS: Final[Mapping[Action, Step]] = {
    Action.ABORT_JOB: Kill(Keep.SOFT, Phase.ABORTING),
    Action.TERMINATE_JOB: Kill(Keep.SOFT, Phase.TERMINATING),
    Action.COMPLETE_JOB: Kill(Keep.SOFT, Phase.COMPLETING),
    Action.RESUME_JOB: Refuse("is not suspended, so there is nothing to resume"),
    Action.SYNC_JOB: Sync(),
}

_ALIVE: Final[Mapping[Action, Step]] = {
    Action.RESTART_JOB: Kill(Keep.NONE, Phase.RESTARTING, retry=True),
    **dict.fromkeys(TARGETED, KillTarget(Phase.RESTARTING, retry=True)),
    **_ENDS,
}
_RESTARTING: Final[Mapping[Action, Step]] = {
    Action.RESTART_JOB: Kill(Keep.NONE),
    **dict.fromkeys(TARGETED, KillTarget()),
    **_ENDS,
}


def _refusing(why: str, **but: Step) -> Mapping[Action, Step]:
    """Every action is refused, ``but`` those, by the names of their members."""
    return {action: but.get(action.name, Refuse(why)) for action in Action}


_ENDING: Final = "is about to end, and no action changes that"

STEPS: Final[Mapping[Phase, Mapping[Action, Step]]] = {
    Phase.NEW: _ALIVE,
    Phase.PENDING: _ALIVE,
    Phase.RUNNING: _ALIVE,
    Phase.RESTARTING: _RESTARTING,
    Phase.ABORTING: _refusing(
        "is being suspended, and only ResumeJob acts on it",
        ABORT_JOB=Refuse("is being suspended already"),
        RESUME_JOB=_RESUME,
        SYNC_JOB=Drain(Phase.ABORTED),
    ),
    Phase.ABORTED: _refusing(
        "is suspended, and only ResumeJob acts on it",
        ABORT_JOB=Refuse("is suspended already"),
        RESUME_JOB=_RESUME,
        SYNC_JOB=Drain(),
    ),
    Phase.TERMINATING: _refusing(_ENDING, SYNC_JOB=Drain(Phase.TERMINATED)),
    Phase.COMPLETING: _refusing(_ENDING, SYNC_JOB=Drain(Phase.COMPLETED)),
    **dict.fromkeys(FINISHED, _refusing("has ended", SYNC_JOB=Drain())),
}
"""A look at a job in its phase is `SyncJob`."""


def step(job: Job, action: Action) -> Step:
    """What to do about an action now."""
    if job.phase is Phase.RESTARTING and is_last_retry(job) and action is not Action.SYNC_JOB:
        return Refuse("has failed as often as it may, and no action changes that it ends as Failed")
    return STEPS[job.phase][action]


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
    """Whether the restart going on is one too many: what ended is then left to be looked at.

    Only failures bring it nearer: a job that was suspended and resumed, restarted by a Command or
    evicted is as healthy as before.
    """
    return job.failures >= job.max_retry


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
    """The phase of a job whose pods have all ended, by how many succeeded, per task and in all."""
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
