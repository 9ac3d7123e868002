"""What plugins know of a job, read off its object."""

from typing import Any

from app.jobplugins.plugin import JobFacts
from app.jobplugins.rules.job_tasks import JobTasks, TaskRow
from app.wire.unstructured import Object, controlled_by, name, namespace, spec, uid


def facts_of(job: Object) -> JobFacts:
    """The job with its tasks."""
    return JobFacts(namespace(job), uid(job), controlled_by(job), tasks_of(job))


def tasks_of(job: Object) -> JobTasks:
    """The job's tasks; those without a name are called as admission calls them."""
    tasks = spec(job).get("tasks") or ()
    return JobTasks(name(job), tuple(_row(task, index) for index, task in enumerate(tasks)))


def _row(task: Object, index: int) -> TaskRow:
    pod: dict[str, Any] = (task.get("template") or {}).get("spec") or {}
    return TaskRow(
        name=task.get("name") or f"default{index}",
        replicas=task.get("replicas") or 0,
        min_available=task.get("minAvailable"),
        hostname=pod.get("hostname") or "",
        subdomain=pod.get("subdomain") or "",
        containers=tuple(str(one.get("name") or "") for one in pod.get("containers") or ()),
    )
