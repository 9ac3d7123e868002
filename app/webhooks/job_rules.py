"""What must hold of a new vcjob (volcano.md §6.2)."""

from collections.abc import Mapping
from typing import Any

from app.kit.graphs import on_cycles, undefined
from app.model.names import qualified_problems
from app.webhooks.durations import check_duration
from app.webhooks.job_plugins import check_plugins
from app.webhooks.job_policies import check_policies
from app.webhooks.job_queue import check_job_queue
from app.webhooks.job_tasks import check_tasks, has_partitions
from app.webhooks.job_volumes import check_volumes
from app.webhooks.linting import lint_job
from app.webhooks.own_annotations import check_annotations
from app.webhooks.topology import check_topology
from app.webhooks.topology_affinity import check_affinity
from app.webhooks.world import Options, Request, World
from app.wire import kinds
from app.wire.findings import Findings, listed
from app.wire.reading import integer, mapping, mappings, text, texts
from app.wire.unstructured import Object
from app.wire.unstructured import name as name_of


def check_new_job(request: Request, world: World) -> Findings:
    """Everything that is wrong with the job."""
    findings = Findings()
    check_job_name(name_of(request.item), findings)
    check_annotations(request, kinds.JOBS, findings)
    check_job_spec(request.item, world.options, findings)
    queue = text(mapping(request.item.get("spec")).get("queue"))
    if queue:
        check_job_queue(queue, "spec.queue", world.facts, findings)
    lint_job(request.item, world.facts, findings)
    return findings


def check_job_name(name: str, findings: Findings) -> None:
    """A name under which everything else of the job can be named."""
    problems = qualified_problems(name) if name else []
    if problems:
        findings.refuse(
            "metadata.name", f"create job with name {name} validate failed {listed(problems)}"
        )


def check_job_spec(job: Object, options: Options, findings: Findings) -> None:
    """What needs no other object."""
    spec = mapping(job.get("spec"))
    _check_counts(spec, findings)
    check_topology(spec, "spec", findings)
    check_tasks(job, findings)
    tasks = mappings(spec.get("tasks"))
    replicas = sum(integer(task.get("replicas")) for task in tasks)
    check_affinity(
        spec,
        "spec",
        findings,
        parts=[text(task.get("name")) for task in tasks],
        called="task",
        minimum=integer(spec.get("minAvailable")) or replicas,
    )
    split = any(map(has_partitions, tasks))
    check_policies(spec.get("policies"), "spec.policies", findings, partitions=split)
    check_duration(spec.get("runningEstimate"), "spec.runningEstimate", findings)
    check_volumes(spec, options, findings)
    check_plugins(job, findings)
    _check_dependencies(spec, findings)


def _check_counts(spec: Mapping[str, Any], findings: Findings) -> None:
    least = integer(spec.get("minAvailable"))
    if least < 0:
        findings.refuse("spec.minAvailable", "job 'minAvailable' must be >= 0")
    if integer(spec.get("maxRetry")) < 0:
        findings.refuse("spec.maxRetry", "'maxRetry' cannot be less than zero")
    if integer(spec.get("ttlSecondsAfterFinished")) < 0:
        findings.refuse(
            "spec.ttlSecondsAfterFinished", "'ttlSecondsAfterFinished' cannot be less than zero"
        )
    tasks = mappings(spec.get("tasks"))
    if not tasks:
        findings.refuse("spec.tasks", "No task specified in job spec")
    elif least > sum(integer(task.get("replicas")) for task in tasks):
        findings.refuse(
            "spec.minAvailable",
            "job 'minAvailable' should not be greater than total replicas in tasks",
        )


def _check_dependencies(spec: Mapping[str, Any], findings: Findings) -> None:
    edges = {
        text(task.get("name")): texts(mapping(task.get("dependsOn")).get("name"))
        for task in mappings(spec.get("tasks"))
    }
    unknown, cyclic = undefined(edges), on_cycles(edges)
    if not unknown and not cyclic:
        return
    why = f"no task is named {listed(unknown)}" if unknown else f"a cycle holds {listed(cyclic)}"
    findings.refuse(
        "spec.tasks[*].dependsOn",
        "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG); "
        f"{why}",
    )
