"""What is allowed and will hardly work: told as warnings, which ``kubectl`` prints.

Nothing here refuses anything, because the cluster may change: a larger node may come, a priority
class may be created. Each text has the numbers.
"""

from collections.abc import Mapping
from typing import Any

from app.core.gangs.job_minimum import Part, pods_needed
from app.core.gangs.task_topology import named
from app.model.amounts import CPU, MEMORY, PODS
from app.model.colocation import (
    BATCH_CPU,
    BATCH_MEMORY,
    OFFLINE,
    ONLINE,
    QOS_LEVEL,
    WITHOUT_BATCH,
)
from app.model.disruption import BUDGETS
from app.model.workload import TASK_TOPOLOGY
from app.webhooks.eviction_annotations import lint_budget, lint_budgets, lint_eviction
from app.webhooks.minimums import default_of_job, filled_in, least_of, unsaid
from app.webhooks.requests import added, pod_requests
from app.webhooks.topology import asks_for_topology
from app.webhooks.world import Facts
from app.wire import quantity
from app.wire.findings import Findings, at
from app.wire.reading import (
    amounts,
    integer,
    mapping,
    mappings,
    text,
    texts,
)
from app.wire.unstructured import Object, annotations, spec

SHARES_CPUS = (
    "has no effect: only pods of the class Guaranteed have cpus of their own; give each container "
    "limits of cpu and memory, and requests that equal them or none"
)
"""Said of a NUMA policy of other pods."""
_MOST_NAMED = 3
"""Tasks that one warning names."""


def is_guaranteed(pod: Mapping[str, Any]) -> bool:
    """Whether each container has limits, and asks for as much."""
    for container in (*mappings(pod.get("initContainers")), *mappings(pod.get("containers"))):
        resources = mapping(container.get("resources"))
        limits, requests = amounts(resources.get("limits")), amounts(resources.get("requests"))
        if any(
            not limits.get(name) or requests.get(name, limits[name]) != limits[name]
            for name in (CPU, MEMORY)
        ):
            return False
    return True


def lint_qos(
    given: Mapping[str, Any], asked: Mapping[str, int], path: str, findings: Findings
) -> None:
    """A QoS level that means nothing, or does not go with what the pod asks for."""
    level, where = text(given.get(QOS_LEVEL)), f"{path}[{QOS_LEVEL}]"
    batch = [name for name in (BATCH_CPU, BATCH_MEMORY) if asked.get(name)]
    plain = [name for name in (CPU, MEMORY) if asked.get(name)]
    if level and level not in {*ONLINE, OFFLINE}:
        known = ", ".join((*ONLINE, OFFLINE))
        findings.warn(where, f'"{level}" has no effect: write one of {known}')
    elif level == OFFLINE and plain:
        findings.warn(
            where,
            f"an offline pod that asks for {' and '.join(plain)} takes it from online ones: ask "
            f"for {BATCH_CPU} and {BATCH_MEMORY}",
        )
    elif level in WITHOUT_BATCH and batch:
        findings.warn(
            where, f"a pod of level {level} asks for {batch[0]}, which may be taken from it"
        )


def _lint_task_topology(job: Object, findings: Findings) -> None:
    tasks = {text(task.get("name")) for task in mappings(spec(job).get("tasks"))}
    said = {key: text(value) for key, value in annotations(job).items()}
    for key in sorted(TASK_TOPOLOGY & said.keys()):
        unknown = [name for name in named(said, key) if name not in tasks]
        if unknown:
            findings.warn(
                f"metadata.annotations[{key}]",
                f"no task is named {', '.join(unknown[:_MOST_NAMED])}",
            )


def lint_job(job: Object, facts: Facts, findings: Findings) -> None:
    """A job: pods that fit nowhere, minima out of reach, unknown classes, what has no effect."""
    body = mapping(job.get("spec"))
    _lint_task_topology(job, findings)
    lint_eviction(annotations(job), "metadata.annotations", findings)
    for key in [key for key in BUDGETS if key in annotations(job)][:1]:
        lint_budget(annotations(job), key, "metadata.annotations", findings)
    replicas = 0
    for index, task in enumerate(mappings(body.get("tasks"))):
        path = at("spec.tasks", index)
        pod = mapping(mapping(task.get("template")).get("spec"))
        asked = pod_requests(pod)
        said = mapping(mapping(mapping(task.get("template")).get("metadata")).get("annotations"))
        where = at(path, "template.metadata.annotations")
        lint_qos(said, asked, where, findings)
        lint_eviction(said, where, findings)
        lint_budgets(annotations(job), said, where, findings)
        lint_size(asked, at(path, "template.spec"), facts, findings)
        _lint_class(pod, at(path, "template.spec"), facts, findings)
        if asks_for_topology(task) and not is_guaranteed(pod):
            findings.warn(at(path, "topologyPolicy"), SHARES_CPUS)
        replicas += max(0, integer(task.get("replicas")))
    _lint_class(body, "spec", facts, findings)
    if integer(body.get("minSuccess")) > replicas:
        findings.warn(
            "spec.minSuccess", f"{body['minSuccess']} of {replicas} pods can never succeed"
        )
    if why := waits_for_itself(job):
        findings.warn("spec.minAvailable", why)
    lint_limit(
        _minimum_asked(body, facts),
        "spec.queue",
        text(body.get("queue")),
        facts=facts,
        findings=findings,
        note=_filled_in(job),
    )


def lint_size(asked: Mapping[str, int], path: str, facts: Facts, findings: Findings) -> None:
    """A pod that no node can hold, even an empty one."""
    sizes = list(facts.node_sizes())
    if not sizes or any(_fits(asked, size) for size in sizes):
        return
    largest = {name: max(size.get(name, 0) for size in sizes) for name in asked}
    beyond = [name for name, number in asked.items() if number > largest[name]]
    told = ", ".join(
        f"{name} {quantity.text(name, asked[name])}"
        + (f" (largest node: {quantity.text(name, largest[name])})" if name in beyond else "")
        for name in sorted(beyond or asked)
        if name != PODS
    )
    findings.warn(path, f"no node is large enough for a pod that asks for {told}")


def lint_limit(
    minimum: Mapping[str, int],
    path: str,
    queue: str,
    *,
    facts: Facts,
    findings: Findings,
    note: str = "",
) -> None:
    """A minimum that the queue's capability never admits; ``note``: where it comes from."""
    found = facts.queue(queue)
    limits = amounts(spec(found).get("capability")) if found else {}
    for name, most in sorted(limits.items()):
        if minimum.get(name, 0) > most:
            findings.warn(
                path,
                f"the minimum asks for {name} {quantity.text(name, minimum[name])}, more than "
                f"queue {queue} may ever use ({quantity.text(name, most)}){note}",
            )


def lint_priority_class(name: str, path: str, facts: Facts, findings: Findings) -> None:
    """A priority class that is not there."""
    if name and not facts.has_priority_class(name):
        findings.warn(path, f"there is no PriorityClass {name}")


def lint_queue_name(name: str, path: str, facts: Facts, findings: Findings) -> None:
    """A queue that is not there."""
    if name and facts.queue(name) is None:
        findings.warn(path, f"there is no queue {name}")


def _minimum_asked(spec: Mapping[str, Any], facts: Facts) -> Mapping[str, int]:
    """What the pods ask for together that the gang takes at the least."""
    tasks = mappings(spec.get("tasks"))
    pods = [mapping(mapping(task.get("template")).get("spec")) for task in tasks]
    parts = [
        Part(
            facts.priority(
                text(pod.get("priorityClassName")) or text(spec.get("priorityClassName"))
            ),
            max(0, least_of(task)),
            max(0, integer(task.get("replicas"))),
        )
        for task, pod in zip(tasks, pods, strict=True)
    ]
    least = integer(spec.get("minAvailable")) or default_of_job(spec)
    asked: Mapping[str, int] = {}
    for pod, number in zip(pods, pods_needed(parts, least), strict=True):
        asked = added(asked, pod_requests(pod), times=number)
    return asked


def _filled_in(job: Object) -> str:
    """Which minima admission filled in; empty where the job itself says how many it takes."""
    spec = mapping(job.get("spec"))
    left, noted = unsaid(spec), filled_in(job)
    tasks = mappings(spec.get("tasks"))
    places = sorted(left.tasks | noted.tasks)
    if not places or not (left.of_job or noted.of_job):
        return ""
    told = [f"{at('spec.tasks', n, 'minAvailable')} {least_of(tasks[n])}" for n in places]
    more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
    return (
        "; the job says no minimum, so admission filled in: "
        f"{', '.join([f'spec.minAvailable {default_of_job(spec)}', *told[:_MOST_NAMED]])}{more}"
    )


def waits_for_itself(job: Object) -> str:
    """What is wrong with a gang that needs pods which are made only when others of it run."""
    body = mapping(job.get("spec"))
    tasks = mappings(body.get("tasks"))
    minima = {text(task.get("name")): least_of(task) for task in tasks}
    late = [task for task in tasks if _waits(task, minima)]
    waiting = [text(task.get("name")) for task in late if least_of(task) > 0]
    pods = sum(integer(task.get("replicas")) for task in tasks if task not in late)
    least = integer(body.get("minAvailable")) or sum(minima.values())
    if not waiting or (least <= pods and least < sum(minima.values())):
        return ""
    return (
        f"{least} takes pods of {', '.join(waiting)}, which wait for other tasks, and none "
        f"runs before all {least} are there: lower it, so that the first tasks are enough"
        f"{_filled_in(job)}"
    )


def _waits(task: Mapping[str, Any], minima: Mapping[str, int]) -> bool:
    """Whether a task's pods are made only when others run; a task that needs none is up at once."""
    depends = mapping(task.get("dependsOn"))
    up = [minima.get(name, 0) == 0 for name in texts(depends.get("name"))]
    return not (any(up) if text(depends.get("iteration")) == "any" and up else all(up))


def _lint_class(holder: Mapping[str, Any], path: str, facts: Facts, findings: Findings) -> None:
    name = text(holder.get("priorityClassName"))
    lint_priority_class(name, at(path, "priorityClassName"), facts, findings)


def _fits(asked: Mapping[str, int], size: Mapping[str, int]) -> bool:
    return all(number <= size.get(name, 0) for name, number in asked.items())
