"""PodGroups: the namespace's queue, and where a group may be submitted (volcano.md §6.3)."""

from collections.abc import Mapping
from typing import Any

from app.model.ids import DEFAULT_QUEUE
from app.model.pod import QUEUE_ANNOTATION
from app.webhooks.eviction_annotations import lint_eviction
from app.webhooks.job_queue import TAKING, not_found, state_of
from app.webhooks.linting import lint_limit, lint_priority_class
from app.webhooks.own_annotations import check_annotations
from app.webhooks.topology import (
    BOTH_TIERS,
    check_topology,
    has_both_tiers,
)
from app.webhooks.topology_affinity import check_affinity
from app.webhooks.world import Facts, Request, World
from app.wire import kinds
from app.wire.findings import Findings, at
from app.wire.reading import amounts, integer, mapping, mappings, text
from app.wire.unstructured import Object, annotations, is_deleting


def default_group(request: Request, world: World) -> Object:
    """The group in the queue of its namespace, when it names none of its own."""
    spec = mapping(request.item.get("spec"))
    if (text(spec.get("queue")) or DEFAULT_QUEUE) != DEFAULT_QUEUE:
        return request.item
    queue = world.facts.namespace_annotations(request.namespace).get(QUEUE_ANNOTATION)
    if not queue:
        return request.item
    return {**request.item, "spec": {**spec, "queue": queue}}


def check_group(request: Request, world: World) -> Findings:
    """A new group, or a change of one."""
    rules = check_new_group if request.operation == "CREATE" else check_group_update
    return rules(request, world)


def check_new_group(request: Request, world: World) -> Findings:
    """Everything that is wrong with the group."""
    findings = Findings()
    spec = mapping(request.item.get("spec"))
    _check_queue(spec, world.facts, findings)
    check_annotations(request, kinds.POD_GROUPS, findings)
    _check_topologies(spec, findings)
    _check_affinity(spec, findings)
    _lint(request.item, world.facts, findings)
    return findings


def check_group_update(request: Request, world: World) -> Findings:
    """What is wrong with the change.

    Volcano judges no change, so what it refuses of new groups is only warned of here. What only
    Pumice knows is refused as it is of new groups, where the change is about it.
    """
    findings = Findings()
    if is_deleting(request.item):
        return findings
    check_annotations(request, kinds.POD_GROUPS, findings)
    spec, old = mapping(request.item.get("spec")), mapping(request.old.get("spec"))
    if spec == old:
        return findings
    of_volcano = Findings()
    if spec.get("queue") != old.get("queue"):
        _check_queue(spec, world.facts, of_volcano)
    if any(spec.get(key) != old.get(key) for key in ("networkTopology", "subGroupPolicy")):
        _check_topologies(spec, of_volcano)
    findings.warnings += of_volcano.errors
    if any(spec.get(key) != old.get(key) for key in ("topologyAffinity", "subGroupPolicy")):
        _check_affinity(spec, findings)
    _lint(request.item, world.facts, findings)
    return findings


def _check_topologies(spec: Mapping[str, Any], findings: Findings) -> None:
    check_topology(spec, "spec", findings)
    for index, policy in enumerate(mappings(spec.get("subGroupPolicy"))):
        if has_both_tiers(policy):
            findings.refuse(
                at("spec.subGroupPolicy", index, "networkTopology"),
                f"in subGroupPolicy '{text(policy.get('name'))}': {BOTH_TIERS}.",
            )


def _check_affinity(spec: Mapping[str, Any], findings: Findings) -> None:
    check_affinity(
        spec,
        "spec",
        findings,
        parts=[text(policy.get("name")) for policy in mappings(spec.get("subGroupPolicy"))],
        called="entry of subGroupPolicy",
        minimum=integer(spec.get("minMember")),
    )


def _check_queue(spec: Mapping[str, Any], facts: Facts, findings: Findings) -> None:
    queue = text(spec.get("queue"))
    if not queue:
        return
    found = facts.queue(queue)
    if found is None:
        findings.refuse("spec.queue", f"unable to find queue: {not_found(queue)}")
        return
    state = state_of(found)
    if state not in TAKING:
        findings.refuse(
            "spec.queue",
            "can only submit PodGroup to queue with state `Open`, "
            f"queue `{queue}` status is `{state}`. ",
        )


def _lint_sub_group(policy: Mapping[str, Any], path: str, findings: Findings) -> None:
    if policy.get("networkTopology") and not policy.get("matchLabelKeys"):
        findings.warn(
            at(path, "networkTopology"), "no pod is in a sub-group without matchLabelKeys"
        )
    if integer(policy.get("minSubGroups")) > 0 and not policy.get("matchLabelKeys"):
        findings.warn(
            at(path, "minSubGroups"),
            "no pod is in a sub-group without matchLabelKeys: the group never runs",
        )


def _lint(group: Object, facts: Facts, findings: Findings) -> None:
    spec = mapping(group.get("spec"))
    lint_eviction(annotations(group), "metadata.annotations", findings)
    lint_priority_class(
        text(spec.get("priorityClassName")), "spec.priorityClassName", facts, findings
    )
    lint_limit(
        amounts(spec.get("minResources")),
        "spec.minResources",
        text(spec.get("queue")),
        facts=facts,
        findings=findings,
    )
    for index, policy in enumerate(mappings(spec.get("subGroupPolicy"))):
        _lint_sub_group(policy, at("spec.subGroupPolicy", index), findings)
    roles = sum(integer(least) for least in mapping(spec.get("minTaskMember")).values())
    if roles > integer(spec.get("minMember")) > 0:
        findings.warn(
            "spec.minTaskMember",
            f"the roles need {roles} members together, minMember is {spec['minMember']}",
        )
