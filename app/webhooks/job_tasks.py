"""The tasks of a job: names, counts, policies and pod templates."""

from collections.abc import Mapping
from typing import Any

from app.model.names import label_problems, qualified_problems
from app.webhooks.job_policies import check_policies
from app.webhooks.pod_templates import check_template
from app.webhooks.topology import asks_for_topology, check_partitions
from app.wire.findings import Findings, at, listed
from app.wire.reading import amount, integer, mapping, mappings, number_or_none, text
from app.wire.unstructured import Object
from app.wire.unstructured import name as name_of


def check_tasks(job: Object, findings: Findings) -> None:
    """``spec.tasks``."""
    job_name = name_of(job)
    seen: set[str] = set()
    for index, task in enumerate(mappings(mapping(job.get("spec")).get("tasks"))):
        path, name = at("spec.tasks", index), text(task.get("name"))
        if name in seen:
            findings.refuse(at(path, "name"), f"duplicated task name {name}")
        seen.add(name)
        _check_counts(task, path, findings, job_name=job_name)
        _check_names(task, index, findings, job_name=job_name)
        check_partitions(task, path, findings, job_name=job_name)
        split = has_partitions(task)
        check_policies(task.get("policies"), at(path, "policies"), findings, partitions=split)
        _check_template(task, index, findings)


def has_partitions(task: Mapping[str, Any]) -> bool:
    """Whether the pods of ``task`` are split into partitions."""
    return bool(task.get("partitionPolicy"))


def _check_counts(task: Mapping[str, Any], path: str, findings: Findings, *, job_name: str) -> None:
    name, replicas = text(task.get("name")), integer(task.get("replicas"))
    least = number_or_none(task.get("minAvailable"))
    if replicas < 0:
        findings.refuse(at(path, "replicas"), f"'replicas' < 0 in task: {name}, job: {job_name}")
    if least is not None and least < 0:
        findings.refuse(
            at(path, "minAvailable"), f"'minAvailable' < 0 in task: {name}, job: {job_name}"
        )
    if least is not None and least > replicas:
        findings.refuse(
            at(path, "minAvailable"),
            f"'minAvailable' is greater than 'replicas' in task: {name}, job: {job_name}",
        )


def _check_names(task: Mapping[str, Any], index: int, findings: Findings, *, job_name: str) -> None:
    path, name = at("spec.tasks", index, "name"), text(task.get("name"))
    problems = label_problems(name)
    if problems:
        findings.refuse(path, f'"{name}": {", ".join(problems)}')
    # As Volcano has it: with the place of the task for the number of the pod.
    pod_name = f"{job_name}-{name}-{index}"
    problems = qualified_problems(pod_name) if job_name else []
    if problems:
        findings.refuse(path, f"create pod with name {pod_name} validate failed {listed(problems)}")


def _check_template(task: Mapping[str, Any], index: int, findings: Findings) -> None:
    template = Findings()
    check_template(task.get("template"), "template", template)
    for error in template.errors:
        findings.refuse(f"spec.tasks[{index}].{error.path}", error.message)
    for warning in template.warnings:
        findings.warn(f"spec.tasks[{index}].{warning.path}", warning.message)
    if asks_for_topology(task):
        _check_cores(mapping(mapping(task.get("template")).get("spec")), index, findings)


def _check_cores(pod: Mapping[str, Any], index: int, findings: Findings) -> None:
    """Whole cores, at least one, in every container: parts of one have no place of their own."""
    containers = [*mappings(pod.get("containers")), *mappings(pod.get("initContainers"))]
    for number, container in enumerate(containers):
        resources = mapping(container.get("resources"))
        asked = mapping(resources.get("requests")) or mapping(resources.get("limits"))
        milli_cpu = amount("cpu", asked.get("cpu")) or 0
        if milli_cpu <= 0 or milli_cpu % 1000:
            findings.refuse(
                at("spec.tasks", index, "topologyPolicy"),
                f"the cpu request isn't an integer in spec.tasks[{index}] container[{number}].",
            )
