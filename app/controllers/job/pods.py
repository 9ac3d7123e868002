"""The pod of a replica: the task's template, the pod's identity and its place."""

from dataclasses import dataclass
from typing import Any, Final

from app.controllers import inherited
from app.controllers.job import sync, volumes
from app.controllers.job.sync import Replica
from app.controllers.job.view import Job
from app.controllers.job.vocabulary import (
    EVICTED_AT,
    JOB_FORWARDING,
    JOB_RETRY_COUNT,
    JOB_VERSION,
    PARTITION_ID,
    TASK_INDEX,
    TEMPLATE_UID,
)
from app.model.job import JOB_NAME, QUEUE_NAME, pod_labels
from app.model.numa import NUMA_POLICY
from app.model.pod import GATE, GROUP_ANNOTATION, SECOND_TRY, TASK_SPEC
from app.wire import times, unstructured
from app.wire.copying import copied
from app.wire.host_network import HOST_DNS_POLICY, needs_dns_policy
from app.wire.unstructured import Object

PLAN_GENERATION: Final = "pumice.sh/plan-generation"
"""On a pinned pod: the plan that its slot was of."""


@dataclass(frozen=True, slots=True)
class Seat:
    """How the pod comes to a node: pinned to ``node``, else waiting at the ``gate`` if set.

    ``second_try``: the pod before it was refused by the only node it could go to.
    """

    node: str = ""
    gate: bool = False
    generation: str = ""
    second_try: bool = False


def pod(job: Job, replica: Replica, *, group: str, seat: Seat, evicted: float = 0.0) -> Object:
    """The pod of a replica, as it is to be created; plugins are not in it yet."""
    template = replica.task.template
    spec = copied(dict(template.get("spec") or {}))
    spec.setdefault("schedulerName", job.scheduler)
    if not spec["schedulerName"]:
        spec["schedulerName"] = job.scheduler
    if not spec.get("priorityClassName") and job.spec.get("priorityClassName"):
        spec["priorityClassName"] = job.spec["priorityClassName"]
    if needs_dns_policy(spec):  # where no webhook has seen to it
        spec["dnsPolicy"] = HOST_DNS_POLICY
    volumes.mount(job, spec)
    _seat(spec, seat)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": sync.pod_name(job, replica),
            "namespace": job.key.namespace,
            "labels": _labels(job, replica),
            "annotations": _annotations(job, replica, group=group, seat=seat, evicted=evicted),
            "ownerReferences": [unstructured.controlled_by(job.item)],
        },
        "spec": spec,
    }


def _annotations(
    job: Job, replica: Replica, *, group: str, seat: Seat, evicted: float
) -> dict[str, str]:
    task = replica.task
    made = {
        **unstructured.annotations(task.template),
        TASK_INDEX: str(replica.index),
        TASK_SPEC: task.name,
        GROUP_ANNOTATION: group,
        JOB_NAME: job.key.name,
        QUEUE_NAME: job.queue,
        JOB_VERSION: str(job.version),
        TEMPLATE_UID: f"{job.key.name}-{task.name}",
        JOB_RETRY_COUNT: str(job.retries),
        **inherited.annotations_of(unstructured.annotations(job.item)),
        **_forwarding(job),
    }
    if task.topology_policy:
        made[NUMA_POLICY] = task.topology_policy
    if seat.node:
        made[PLAN_GENERATION] = seat.generation
    if seat.second_try:
        made[SECOND_TRY] = "true"
    if evicted:
        made[EVICTED_AT] = times.seconds(evicted)
    return made


def _labels(job: Job, replica: Replica) -> dict[str, str]:
    task = replica.task
    made = {
        **unstructured.labels(task.template),
        TASK_INDEX: str(replica.index),
        **pod_labels(
            job=job.key.name, namespace=job.key.namespace, queue=job.queue, task=task.name
        ),
        **inherited.labels_of(unstructured.labels(job.item)),
        **_forwarding(job),
    }
    partition = task.partition_of(replica.index)
    if partition:
        made[PARTITION_ID] = partition
    return made


def _forwarding(job: Job) -> dict[str, str]:
    """The label of pods of a forwarded job, by which they can be selected."""
    return {JOB_FORWARDING: "true"} if job.is_forwarded else {}


def _seat(spec: dict[str, Any], seat: Seat) -> None:
    if seat.node:
        _pin(spec, seat.node)
    elif seat.gate:
        gates = [gate for gate in spec.get("schedulingGates") or () if gate.get("name") != GATE]
        spec["schedulingGates"] = [*gates, {"name": GATE}]


def _pin(spec: dict[str, Any], node: str) -> None:
    """Every way in which the pod may be placed, only on ``node``."""
    affinity = spec["affinity"] = dict(spec.get("affinity") or {})
    of_node = affinity["nodeAffinity"] = dict(affinity.get("nodeAffinity") or {})
    required = of_node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = required.get("nodeSelectorTerms") or [{}]
    of_node["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [
            {**term, "matchFields": [*(term.get("matchFields") or ()), here]} for term in terms
        ]
    }
