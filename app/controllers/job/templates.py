"""Templates of tasks as they may be stored: the schema takes any object for one."""

from app.controllers.job.view import Job
from app.wire.findings import Findings
from app.wire.pod_types import check_types


def problems(job: Job) -> str:
    """What no pod can be made of, in the words of admission; empty: nothing."""
    findings = Findings()
    for number, task in enumerate(job.tasks):
        check_types(task.template, f"spec.tasks[{number}].template", findings)
    return findings.message()
