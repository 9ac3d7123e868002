"""Pods of ours: disruption budgets, gates and resource groups (volcano.md §6.5)."""

from collections.abc import Mapping
from typing import Any, Final

from app.model.disruption import BUDGETS
from app.model.numa import NUMA_POLICY, NumaPolicy
from app.model.pod import GROUP_ANNOTATION as POD_GROUP
from app.model.pod import QUEUE_ANNOTATION, QUEUE_GATE
from app.webhooks.eviction_annotations import budget_problem, lint_eviction
from app.webhooks.gate import gated
from app.webhooks.linting import (
    SHARES_CPUS,
    is_guaranteed,
    lint_qos,
    lint_queue_name,
    lint_size,
)
from app.webhooks.pod_rules import check_told
from app.webhooks.requests import pod_requests
from app.webhooks.world import Request, World
from app.wire.findings import Findings, listed
from app.wire.objects.numatopologies import numa_policy
from app.wire.reading import mapping, mappings, sequence, text
from app.wire.unstructured import Object, annotations, labels

_UNREAD_POD_GROUP: Final = "scheduling.volcano.sh/group-name"
"""A key that some operators write, and that Volcano does not read either."""


def change_pod(request: Request, world: World) -> Object:
    """The pod behind the gates it needs, and where its resource group wants it."""
    pod, options = request.item, world.options
    if not isinstance(pod.get("spec"), dict):
        return pod
    if options.queue_gates and annotations(pod).get(QUEUE_GATE) == "true":
        pod = _behind(pod, QUEUE_GATE)
    for group in options.resource_groups:
        if group.takes(request.namespace, annotations(pod)):
            pod = group.applied(pod)
            break
    if options.gate_pods:
        pod = gated(pod, schedulers=frozenset(options.schedulers)) or pod
    return pod


def _behind(pod: Object, gate: str) -> Object:
    spec = mapping(pod.get("spec"))
    if any(each.get("name") == gate for each in mappings(spec.get("schedulingGates"))):
        return pod
    gates = [*sequence(spec.get("schedulingGates")), {"name": gate}]
    return {**pod, "spec": {**spec, "schedulingGates": gates}}


def check_pod(request: Request, world: World) -> Findings:
    """What is wrong with a pod, or a change of one; those of other schedulers are not looked at."""
    findings = Findings()
    spec = mapping(request.item.get("spec"))
    if text(spec.get("schedulerName")) not in world.options.schedulers:
        return findings
    if not text(spec.get("nodeName")):
        check_told(annotations(request.item), "metadata", findings, before=annotations(request.old))
    if request.operation == "CREATE":
        _check_new(request, spec, world, findings)
    return findings


def _check_new(request: Request, spec: Mapping[str, Any], world: World, findings: Findings) -> None:
    given = annotations(request.item)
    _check_budget(given, findings)
    _lint_group(request.item, findings)
    lint_eviction(given, "metadata.annotations", findings)
    _lint_numa(given, spec, findings)
    asked = pod_requests(spec)
    lint_qos(given, asked, "metadata.annotations", findings)
    lint_size(asked, "spec", world.facts, findings)
    path = f"metadata.annotations[{QUEUE_ANNOTATION}]"
    lint_queue_name(text(given.get(QUEUE_ANNOTATION)), path, world.facts, findings)


def _lint_group(pod: Object, findings: Findings) -> None:
    """Warn of a name of a PodGroup in a place where no scheduler reads it."""
    if annotations(pod).get(POD_GROUP):
        return
    for part, read in (("labels", labels), ("annotations", annotations)):
        for key in (POD_GROUP, _UNREAD_POD_GROUP):
            if name := text(read(pod).get(key)):
                findings.warn(
                    f"metadata.{part}[{key}]",
                    f'the pod is no member of PodGroup "{name}" by that: '
                    f"name it in the annotation {POD_GROUP}",
                )


def _lint_numa(given: Mapping[str, Any], pod: Mapping[str, Any], findings: Findings) -> None:
    policy, path = text(given.get(NUMA_POLICY)), f"metadata.annotations[{NUMA_POLICY}]"
    if not policy or policy == NumaPolicy.NONE:
        return
    if numa_policy(policy) is NumaPolicy.UNSET:
        known = ", ".join(each for each in NumaPolicy if each)
        findings.warn(path, f'"{policy}" has no effect: write one of {known}')
    elif not is_guaranteed(pod):
        findings.warn(path, SHARES_CPUS)


def _check_budget(given: Mapping[str, Any], findings: Findings) -> None:
    present = [key for key in BUDGETS if key in given]
    if len(present) > 1:
        findings.refuse(
            "metadata.annotations",
            f"not allow configure multiple annotations <{listed(present)}> at same time",
        )
    for key in present:
        problem = budget_problem(key, text(given[key]))
        if problem:
            findings.refuse(f"metadata.annotations[{key}]", problem)
