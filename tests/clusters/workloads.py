"""Manifests of queues, groups, pods and jobs, as users and operators write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.clusters.client import Object
from tests.clusters.resources import COMMANDS, JOBS, Resource

SCHEDULER = "volcano"
GROUP = "scheduling.k8s.io/group-name"
QUEUE = "scheduling.volcano.sh/queue-name"
ROLE = "volcano.sh/task-spec"
GATE = "pumice.sh/plan"
UNGATED = {"pumice.sh/gate": "false"}
"""Annotation of a pod that the admission policy leaves without the gate."""
SETTLED = {"pumice.sh/exchange": "false"}
"""Annotation of a pod that goes to the node that was planned, and to no other."""
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"


def queue(name: str, **spec: Any) -> Object:
    """A queue of weight 1."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


def deserves(cpu: int) -> dict[str, dict[str, str]]:
    """The part of a queue's spec that says so, with as many GiB of memory."""
    return {"deserved": {"cpu": str(cpu), "memory": f"{cpu}Gi"}}


def hyper_node(
    name: str, tier: int, kind: str, members: Sequence[str], *, tier_name: str = ""
) -> Object:
    """A HyperNode whose members are of that kind, each by its name."""
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "members": [
                {"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members
            ],
            **({"tierName": tier_name} if tier_name else {}),
        },
    }


def priority_class(name: str, value: int, *, preempts: bool = True) -> Object:
    """Of that value; its pods preempt or do not."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
    }


def pod_group(
    name: str,
    *,
    min_member: int,
    queue: str = "default",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A PodGroup."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {"minMember": min_member, "queue": queue, **spec},
    }


def pod(
    name: str,
    *,
    group: str | None = None,
    queue: str | None = None,
    cpu: str = "1",
    memory: str = "64Mi",
    gated: bool = False,
    scheduler: str = SCHEDULER,
    role: str | None = None,
    pin: str | None = None,
    resources: dict[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """A pod of a group (or alone); ``gated`` as the admission policy would make it."""
    annotations: dict[str, str] = {}
    if group is not None:
        annotations[GROUP] = group
    if queue is not None:
        annotations[QUEUE] = queue
    if role is not None:
        annotations[ROLE] = role
    resources = resources or {"requests": {"cpu": cpu, "memory": memory}}
    body: dict[str, Any] = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "none", "resources": resources}],
    }
    if gated:
        body["schedulingGates"] = [{"name": GATE}]
    if pin is not None:
        body["affinity"] = pinned_to(pin)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations, "labels": {"group": group or ""}},
        "spec": body | spec,
    }


def lingering(*, cpu: str = "1") -> dict[str, Any]:
    """The parts of a pod spec by which it takes its long grace to end, unless it is forced."""
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", "sleep 3600"],
        "resources": {"requests": {"cpu": cpu}},
    }
    return {"terminationGracePeriodSeconds": 600, "containers": [container]}


def item(resource: Resource, name: str, **parts: Any) -> Object:
    """An object of any kind; ``metadata`` among the parts is merged into its own."""
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **parts,
    }


def job(name: str, spec: Mapping[str, Any]) -> Object:
    """A vcjob of our scheduler in the queue ``default``, unless ``spec`` says otherwise."""
    return item(JOBS, name, spec={"schedulerName": SCHEDULER, "queue": "default", **spec})


def command(target: Object, action: str) -> Object:
    """The Command for a job or a queue, as the command line makes it."""
    name = target["metadata"]["name"]
    owner = {
        "apiVersion": target["apiVersion"],
        "kind": target["kind"],
        "name": name,
        "uid": target["metadata"]["uid"],
        "controller": True,
    }
    return {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {"generateName": f"{name}-", "ownerReferences": [owner]},
        "action": action,
        "target": owner,
    }


def spread_evenly(labels: Mapping[str, str], **policy: Any) -> dict[str, Any]:
    """The part of a pod spec that spreads pods with these labels over the nodes."""
    rule = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    return {"topologySpreadConstraints": [rule | policy]}


def pinned_to(node: str) -> dict[str, Any]:
    """The node affinity of a pod that is made for one node, as DaemonSet pods have it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def members(group: str, count: int, **fields: Any) -> list[Object]:
    """``count`` equal pods of ``group``."""
    return [pod(f"{group}-{index}", group=group, **fields) for index in range(count)]


def behind_queue_gate(item: Object, *others: str) -> Object:
    """A pod, or a template of pods, as Volcano's webhook leaves it where it asks for its gate.

    ``others`` are gates of somebody else.
    """
    gates = item["spec"].get("schedulingGates", [])
    added = [{"name": gate} for gate in (*others, QUEUE_GATE)]
    item["spec"]["schedulingGates"] = [*gates, *added]
    about = item.setdefault("metadata", {})
    about.setdefault("annotations", {})[QUEUE_GATE] = "true"
    return item


def node_of(item: Object) -> str:
    """The node a pod is bound to, or empty."""
    name: str = item["spec"].get("nodeName", "")
    return name


def role_of(item: Object) -> str:
    """The task a pod is of, or empty."""
    role: str = item["metadata"].get("annotations", {}).get(ROLE, "")
    return role


def is_leaving(item: Object) -> bool:
    """Whether a pod is being deleted."""
    return "deletionTimestamp" in item["metadata"]


def bound(pods: list[Object]) -> list[Object]:
    """Those that are bound."""
    return [item for item in pods if node_of(item)]
