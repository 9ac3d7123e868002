"""The status of a job as it should be, and the patch that leads there.

Everything but the status is left alone. The patch carries the version it was made from:
another change in between makes the patch fail, and it is made anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.controllers.job.counts import Counts
from app.controllers.job.view import Job
from app.controllers.job.vocabulary import FINISHED, Phase
from app.kit.durations import format_duration
from app.wire import times, unstructured
from app.wire.unstructured import Object

_KEPT: Final = (
    "version",
    "retryCount",
    "restartsWithoutFailure",
    "conditions",
    "runningDuration",
)
_MESSAGE_LIMIT: Final = 1024


@dataclass(frozen=True, slots=True)
class Why:
    """``state.reason`` and ``state.message``."""

    reason: str = ""
    message: str = ""


NOTHING: Final = Why()


def status(
    job: Job,
    counts: Counts,
    *,
    phase: Phase,
    now: float,
    why: Why | None = None,
    resources: Mapping[str, str] | None = None,
) -> Object:
    """The status with these pods, in ``phase``; ``why`` None: as it stands."""
    made = {
        **{key: job.status[key] for key in _KEPT if key in job.status},
        "state": _state(job, phase, now, why),
        "minAvailable": job.min_available,
        "controlledResources": dict(
            (job.status.get("controlledResources") or {}) if resources is None else resources
        ),
    }
    if phase is not job.phase:
        made["conditions"] = _conditions(job, phase, now)
        if phase in FINISHED:
            made["runningDuration"] = _since(job, now)
    return counted(made, counts)


def counted(made: Object, counts: Counts) -> Object:
    """``made``, with these pods."""
    numbers = {
        "pending": counts.pending,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "unknown": counts.unknown,
        "terminating": counts.terminating,
        "taskStatusCount": {
            name: {"phase": dict(of_task.phases)} for name, of_task in counts.tasks.items()
        },
    }
    whole = {**made, **numbers}
    return {key: value for key, value in whole.items() if value or key == "minAvailable"}


def killed(
    job: Job, made: Object, *, retry: bool, failure: bool, new_version: bool, now: float
) -> Object:
    """``made``, at the beginning of a kill; ``failure``: the retry counts towards `maxRetry`."""
    counted = {
        "version": job.version + new_version,
        "retryCount": job.retries + retry,
        "restartsWithoutFailure": job.retries - job.failures + (retry and not failure),
    }
    return {
        **made,
        **{key: value for key, value in counted.items() if value},
        "runningDuration": _since(job, now),
    }


def patch(job: Job, made: Object) -> Object | None:
    """The merge patch of the status subresource that makes it so; None: it is so."""
    difference = _difference(job.status, made)
    if not difference:
        return None
    return {
        "metadata": {"resourceVersion": unstructured.version(job.item), "uid": job.uid},
        "status": difference,
    }


def _since(job: Job, now: float) -> str:
    """How long ago the job was submitted, in whole seconds."""
    return format_duration(max(int(now - job.created), 0))


def _state(job: Job, phase: Phase, now: float, why: Why | None) -> dict[str, Any]:
    if why is None:
        why = Why(str(job.state.get("reason") or ""), str(job.state.get("message") or ""))
    since = job.state.get("lastTransitionTime")
    if phase is not job.phase or not since:
        since = times.seconds(now)
    state = {
        "phase": phase.value,
        "reason": why.reason,
        "message": why.message[:_MESSAGE_LIMIT],
        "lastTransitionTime": since,
    }
    return {key: value for key, value in state.items() if value}


def _conditions(job: Job, phase: Phase, now: float) -> list[Object]:
    others = [
        entry for entry in job.status.get("conditions") or () if entry.get("status") != phase.value
    ]
    entry = {
        "status": phase.value,
        "lastTransitionTime": times.seconds(now),
        "observedGeneration": job.generation,
    }
    return [*others, entry]


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Object:
    """A merge patch: what is gone is null, lists are whole."""
    made: Object = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if before == value:
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            made[key] = _difference(before, value)
        else:
            made[key] = value
    return made
