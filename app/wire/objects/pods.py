"""Pods. The hot path: every pod event of the cluster goes through here."""

from msgspec import Struct

from app.model.amounts import Amounts
from app.model.ids import NodeName, PodUid
from app.model.numa import NUMA_POLICY
from app.model.pod import PLACED_CONDITION, Pod, bears_revocation
from app.wire import times
from app.wire.errors import Bytes, Reader
from app.wire.objects import containers, meta
from app.wire.objects.meta import MetaJson
from app.wire.objects.pod_status import StatusJson, conditions_of
from app.wire.objects.resizes import Resize, resize
from app.wire.objects.shapes import SpecJson, charge, shape
from app.wire.objects.troubles import trouble

DEFAULT_SCHEDULER = "default-scheduler"
_LONGEST_COMPLAINT = 500
"""Characters; kube-scheduler counts nodes by reason and can become long-winded."""


class _PodJson(Struct, gc=False):
    metadata: MetaJson
    spec: SpecJson
    status: StatusJson | None = None


_read: Reader[_PodJson] = Reader(_PodJson)
_DEFAULT_GRACE_S = 30.0
_NO_STATUS = StatusJson()
_PREEMPTED = b'"PreemptionByScheduler"'
"""The reason of the condition `DisruptionTarget` of such a pod. Conditions are not read for it."""


def decode_pod(text: Bytes) -> Pod:
    """A pod; raises `DecodeError`."""
    json = _read(text)
    head, spec, status = json.metadata, json.spec, json.status or _NO_STATUS
    namespace = head.namespace or ""
    pod_labels = meta.labels(head.labels)
    gates = tuple(gate.name for gate in spec.scheduling_gates or ())
    annotations = meta.annotations(head.annotations)
    fits, pinned = shape(
        spec,
        namespace=namespace,
        pod_labels=pod_labels,
        gates=gates,
        resizing=_resizing(json),
        numa_policy=annotations.get(NUMA_POLICY, ""),
        bears_revocation=bears_revocation(annotations),
        choosing=containers.choosing(annotations, pod_labels),
    )
    complaint, refused_for = ("", "") if spec.node_name else _why_not(status)
    is_deleted = head.deletion_timestamp is not None
    return Pod(
        uid=PodUid(meta.identified(head)),
        namespace=namespace,
        name=meta.named(head),
        resource_version=head.resource_version,
        scheduler=spec.scheduler_name or DEFAULT_SCHEDULER,
        shape=fits,
        node=NodeName(spec.node_name or ""),
        phase=status.phase or "",
        created=times.epoch(head.creation_timestamp),
        labels=pod_labels,
        annotations=annotations,
        deleting=is_deleted,
        priority=spec.priority or 0,
        priority_class=spec.priority_class_name or "",
        gates=gates,
        pinned=pinned,
        nominated=NodeName(status.nominated_node_name or ""),
        preempts=spec.preemption_policy != "Never",
        owner=meta.owner(head.owner_references),
        started=times.epoch(status.start_time),
        complaint=complaint,
        refused_for=refused_for,
        trouble="" if is_deleted else trouble(status).text,
        preempted=bool(spec.node_name) and _PREEMPTED in bytes(status.conditions),
        grace=_grace(spec),
        deadline=float(spec.active_deadline_seconds or 0),
    )


def decode_charge(text: Bytes) -> Amounts:
    """What a pod is charged on its node, without a look at all else; raises `DecodeError`."""
    json = _read(text)
    return charge(json.spec, _resizing(json))


def _grace(spec: SpecJson) -> float:
    """As the API server has it: less than one second means one, nothing means the default."""
    seconds = spec.termination_grace_period_seconds
    return _DEFAULT_GRACE_S if seconds is None else max(float(seconds), 1.0)


def _resizing(json: _PodJson) -> Resize | None:
    spec = json.spec
    if not spec.node_name or json.status is None:
        return None
    return resize(json.status, spec.containers, spec.init_containers, spec.resources)


def _why_not(status: StatusJson) -> tuple[str, str]:
    """Why the pod has no node: what kube-scheduler says, and the reason that we gave."""
    complaint = refused_for = ""
    for condition in conditions_of(status):
        if condition.status != "False":
            continue
        if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
            complaint = (condition.message or "")[:_LONGEST_COMPLAINT]
        elif condition.type == PLACED_CONDITION:
            refused_for = condition.reason or ""
    return complaint, refused_for
