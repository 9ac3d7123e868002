"""The plugins of a job, judged by the code that the job controller reads them with."""

from collections.abc import Mapping
from typing import Any, Final

from app.jobplugins.rules import catalogue
from app.jobplugins.rules.advice import advice
from app.jobplugins.rules.job_tasks import JobTasks, TaskRow
from app.wire.findings import Findings
from app.wire.reading import integer, mapping, mappings, number_or_none, text, texts
from app.wire.unstructured import Object, name

MOST_HOSTS: Final = 100_000
"""Beyond how many hosts the lists are not written out only to be measured."""


def check_plugins(job: Object, findings: Findings) -> None:
    """``spec.plugins``: names, flags and the tasks they need; then what they will not do."""
    spec = mapping(job.get("spec"))
    given = {plugin: texts(flags) for plugin, flags in mapping(spec.get("plugins")).items()}
    rows = tuple(_row(task) for task in mappings(spec.get("tasks")))
    reading = catalogue.read(given, tasks={row.name for row in rows})
    for problem in reading.problems:
        findings.refuse(problem.path, f"{problem.what}; {problem.remedy}")
    for ignored in reading.ignored:
        findings.warn(ignored.path, f"{ignored.what}, it has no effect; {ignored.remedy}")
    if reading.problems or sum(row.replicas for row in rows) > MOST_HOSTS:
        return
    for warning in advice(reading.arguments, JobTasks(name(job), rows)):
        findings.warn(warning.path, f"{warning.what}; {warning.remedy}")


def _row(task: Mapping[str, Any]) -> TaskRow:
    pod = mapping(mapping(task.get("template")).get("spec"))
    return TaskRow(
        name=text(task.get("name")),
        replicas=max(0, integer(task.get("replicas"))),
        min_available=number_or_none(task.get("minAvailable")),
        hostname=text(pod.get("hostname")),
        subdomain=text(pod.get("subdomain")),
        containers=tuple(text(each.get("name")) for each in mappings(pod.get("containers"))),
    )
