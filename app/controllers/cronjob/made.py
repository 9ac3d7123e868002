"""The jobs of a CronJob: what they are called, and which of them may go."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from app.controllers.garbage import is_finished
from app.wire import times
from app.wire.errors import DecodeError
from app.wire.kinds import JOBS
from app.wire.unstructured import Key, Object, controlled_by, name, namespace, spec, status, uid

SCHEDULED: Final = "volcano.sh/cronjob-scheduled-timestamp"
_COMPLETED: Final = "Completed"
_MINUTE_S: Final = 60


def key_at(cron_job: Object, at: float) -> Key:
    """Where the job of one start is: a start has one name, so it is made once."""
    return Key(namespace(cron_job), f"{name(cron_job)}-{int(at // _MINUTE_S)}")


def job_at(cron_job: Object, at: float, zone: ZoneInfo) -> Object:
    """The job of one start."""
    template = spec(cron_job).get("jobTemplate") or {}
    given = template.get("metadata") or {}
    key = key_at(cron_job, at)
    stamp = {SCHEDULED: datetime.fromtimestamp(int(at), zone).isoformat().replace("+00:00", "Z")}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": dict(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), **stamp},
            "ownerReferences": [controlled_by(cron_job)],
        },
        "spec": dict(template.get("spec") or {}),
    }


def phase(job: Object) -> str:
    """The phase of a job; empty before it has one."""
    return str((status(job).get("state") or {}).get("phase") or "")


def completed_at(job: Object) -> float:
    """When the job succeeded, seconds since the epoch; 0 if it has not."""
    return _ended_at(job) if phase(job) == _COMPLETED else 0.0


def reference_to(job: Object) -> Object:
    """How ``status.active`` names it."""
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "namespace": namespace(job),
        "name": name(job),
        "uid": uid(job),
        "resourceVersion": str((job.get("metadata") or {}).get("resourceVersion") or ""),
    }


def beyond_limits(cron_job: Object, jobs: Iterable[Object]) -> list[Object]:
    """Ended jobs that are more than the history limits, the oldest first."""
    ended = sorted(filter(is_finished, jobs), key=lambda job: (_ended_at(job), name(job)))
    good = [job for job in ended if phase(job) == _COMPLETED]
    bad = [job for job in ended if phase(job) != _COMPLETED]
    limits = spec(cron_job)
    return [
        *_all_but(good, limits.get("successfulJobsHistoryLimit")),
        *_all_but(bad, limits.get("failedJobsHistoryLimit")),
    ]


def _all_but(jobs: list[Object], limit: int | None) -> list[Object]:
    return [] if limit is None else jobs[: max(len(jobs) - limit, 0)]


def _ended_at(job: Object) -> float:
    try:
        return times.parse(str((status(job).get("state") or {}).get("lastTransitionTime") or ""))
    except DecodeError:
        return 0.0
