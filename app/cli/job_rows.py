"""Jobs as lines of a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.cli.moments import day
from app.cli.tables import NONE, Column, extended, fitted, table
from app.wire.unstructured import Object, labels, metadata, name, namespace, spec, status

JOB_TYPE = "volcano.sh/job-type"
_GAP = 3
_SUCCESS = frozenset({"Completed"})
FAILURE = frozenset({"Failed", "Terminated", "Aborted"})
"""Phases of jobs that have not ended well."""


def phase(job: Object) -> str:
    """``status.state.phase``."""
    return str((status(job).get("state") or {}).get("phase") or "")


def is_over(job: Object) -> bool:
    """Whether nothing will happen to the job by itself any more."""
    return phase(job) in _SUCCESS | FAILURE


def replicas(job: Object) -> int:
    """The pods of all tasks."""
    return sum(int(task.get("replicas") or 0) for task in spec(job).get("tasks") or ())


def _count(field: str) -> Any:
    return lambda job: int(status(job).get(field) or 0)


_COLUMNS = (
    fitted("Name", name, gap=_GAP),
    Column("Creation", lambda job: day(metadata(job).get("creationTimestamp")), 15),
    Column("Phase", phase, 12),
    Column("JobType", lambda job: labels(job).get(JOB_TYPE) or "Batch", 12),
    Column("Replicas", replicas, 12),
    Column("Min", _count("minAvailable"), 6),
    Column("Pending", _count("pending"), 10),
    Column("Running", _count("running"), 10),
    Column("Succeeded", _count("succeeded"), 12),
    Column("Failed", _count("failed"), 10),
    Column("Unknown", _count("unknown"), 12),
    Column("RetryCount", _count("retryCount"), 10),
)
_NAMESPACE = fitted("Namespace", namespace, gap=_GAP)
_WIDE = (
    fitted("Queue", lambda job: spec(job).get("queue") or "default", gap=_GAP),
    fitted("Scheduler", lambda job: spec(job).get("schedulerName") or NONE, gap=_GAP),
    fitted("PriorityClass", lambda job: spec(job).get("priorityClassName") or NONE, gap=_GAP),
    fitted("Reason", lambda job: (status(job).get("state") or {}).get("reason") or NONE, gap=_GAP),
)


def rows(
    jobs: Sequence[Object],
    *,
    wide: bool = False,
    all_namespaces: bool = False,
    etas: Mapping[str, str] | None = None,
) -> str:
    """The table of ``job list``; ``etas`` by ``namespace/name``, None: they are not known."""
    return table(columns(wide=wide, all_namespaces=all_namespaces, etas=etas), jobs)


def columns(
    *, wide: bool = False, all_namespaces: bool = False, etas: Mapping[str, str] | None = None
) -> tuple[Column, ...]:
    """The columns of ``job list``."""
    usual = (_NAMESPACE, *_COLUMNS) if all_namespaces else _COLUMNS
    if not wide:
        return usual
    return extended(usual, _WIDE if etas is None else (*_WIDE, _eta(etas)))


def _eta(etas: Mapping[str, str]) -> Column:
    return fitted("ETA", lambda job: etas.get(f"{namespace(job)}/{name(job)}", NONE), gap=_GAP)


def matching(
    jobs: Sequence[Object], *, queue: str = "", scheduler: str = "", selector: str = ""
) -> list[Object]:
    """Jobs of a queue and a scheduler with ``selector`` in their names."""
    return [
        job
        for job in jobs
        if (not queue or (spec(job).get("queue") or "default") == queue)
        and (not scheduler or spec(job).get("schedulerName") == scheduler)
        and selector in name(job)
    ]
