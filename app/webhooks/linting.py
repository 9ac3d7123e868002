"""What is allowed and will hardly work: told as warnings, which ``kubectl`` prints.

Nothing here refuses anything, because the cluster may change: a larger node may come, a priority
class may be created. Each text has the numbers.
"""

from collections.abc import Mapping
from typing import Any

from app.model.amounts import PODS
from app.webhooks.findings import Findings, at
from app.webhooks.job_defaults import default_least
from app.webhooks.reading import (
    amounts,
    integer,
    mapping,
    mappings,
    number_or_none,
    text,
    texts,
)
from app.webhooks.requests import added, pod_requests
from app.webhooks.topology import NOT_HEEDED, asks_for_topology, lint_topology
from app.webhooks.world import Facts
from app.wire import quantity
from app.wire.unstructured import Object, spec


def lint_job(job: Object, facts: Facts, findings: Findings) -> None:
    """A job: pods that fit nowhere, minima out of reach, unknown classes, what has no effect."""
    body = mapping(job.get("spec"))
    lint_topology(body, "spec", findings)
    minimum: dict[str, int] = {}
    replicas = 0
    for index, task in enumerate(mappings(body.get("tasks"))):
        path = at("spec.tasks", index)
        pod = mapping(mapping(task.get("template")).get("spec"))
        asked = pod_requests(pod)
        lint_size(asked, at(path, "template.spec"), facts, findings)
        _lint_class(pod, at(path, "template.spec"), facts, findings)
        lint_topology(mapping(task.get("partitionPolicy")), at(path, "partitionPolicy"), findings)
        if asks_for_topology(task):
            findings.warn(at(path, "topologyPolicy"), NOT_HEEDED)
        minimum = added(minimum, asked, times=max(0, integer(task.get("minAvailable"))))
        replicas += max(0, integer(task.get("replicas")))
    _lint_class(body, "spec", facts, findings)
    if integer(body.get("minSuccess")) > replicas:
        findings.warn(
            "spec.minSuccess", f"{body['minSuccess']} of {replicas} pods can never succeed"
        )
    _lint_dependencies(body, findings)
    lint_limit(minimum, "spec.queue", text(body.get("queue")), facts=facts, findings=findings)


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
    minimum: Mapping[str, int], path: str, queue: str, *, facts: Facts, findings: Findings
) -> None:
    """A minimum that the queue's capability never lets in."""
    found = facts.queue(queue)
    limits = amounts(spec(found).get("capability")) if found else {}
    for name, most in sorted(limits.items()):
        if minimum.get(name, 0) > most:
            findings.warn(
                path,
                f"the minimum asks for {name} {quantity.text(name, minimum[name])}, more than "
                f"queue {queue} may ever use ({quantity.text(name, most)})",
            )


def lint_priority_class(name: str, path: str, facts: Facts, findings: Findings) -> None:
    """A priority class that is not there."""
    if name and not facts.has_priority_class(name):
        findings.warn(path, f"there is no PriorityClass {name}")


def lint_queue_name(name: str, path: str, facts: Facts, findings: Findings) -> None:
    """A queue that is not there."""
    if name and facts.queue(name) is None:
        findings.warn(path, f"there is no queue {name}")


def _lint_dependencies(job: Mapping[str, Any], findings: Findings) -> None:
    if why := waits_for_itself(job):
        findings.warn("spec.minAvailable", why)


def waits_for_itself(job: Mapping[str, Any]) -> str:
    """What is wrong with a gang that needs pods which are made only when others of it run."""
    tasks = list(mappings(job.get("tasks")))
    minima = {text(task.get("name")): _least(task) for task in tasks}
    late = [task for task in tasks if _waits(task, minima)]
    waiting = [text(task.get("name")) for task in late if _least(task) > 0]
    pods = sum(integer(task.get("replicas")) for task in tasks if task not in late)
    least = integer(job.get("minAvailable")) or sum(minima.values())
    if not waiting or (least <= pods and least < sum(minima.values())):
        return ""
    return (
        f"{least} takes pods of {', '.join(waiting)}, which wait for other tasks, and none "
        f"runs before all {least} are there: lower it, so that the first tasks are enough"
    )


def _waits(task: Mapping[str, Any], minima: Mapping[str, int]) -> bool:
    """Whether its pods are made only when others run; a task that needs none is up at once."""
    depends = mapping(task.get("dependsOn"))
    up = [minima.get(name, 0) == 0 for name in texts(depends.get("name"))]
    return not (any(up) if text(depends.get("iteration")) == "any" and up else all(up))


def _least(task: Mapping[str, Any]) -> int:
    least = number_or_none(task.get("minAvailable"))
    return default_least(task) if least is None else least


def _lint_class(holder: Mapping[str, Any], path: str, facts: Facts, findings: Findings) -> None:
    name = text(holder.get("priorityClassName"))
    lint_priority_class(name, at(path, "priorityClassName"), facts, findings)


def _fits(asked: Mapping[str, int], size: Mapping[str, int]) -> bool:
    return all(number <= size.get(name, 0) for name, number in asked.items())
