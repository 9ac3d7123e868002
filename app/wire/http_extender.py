"""The bodies that the plugin ``extender`` and its server exchange (volcano.md §3.6).

Keys are those that Volcano's structs get without JSON tags: Go's field names. Of a pod that is
asked about the manifest goes along as it is stored; of other objects what the scheduler knows goes
along in the shape of their manifests, so a server in Go reads them into Kubernetes' own types.
Amounts are Volcano's: milli-cores, bytes, and a thousand to a piece of other resources.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from app.kit.quantities import amount_text
from app.model.amounts import CPU, MEMORY, PODS, Amounts, is_best_effort
from app.model.gang import Gang
from app.model.ids import NO_NODE, NodeName, PodUid
from app.model.node import Node
from app.model.pod import REVOCABLE_ZONE, Pod, TaskStatus, bears_revocation
from app.model.snapshot import QueueUsage
from app.model.workload import PodGroup, Queue
from app.wire import times
from app.wire.errors import DecodeError, Reader

ALLOCATED: Final = 2
"""The status of a task that has a place and is not bound yet."""

_STATUS: Final[Mapping[TaskStatus, int]] = {
    TaskStatus.PENDING: 1,
    TaskStatus.BOUND: 16,
    TaskStatus.RUNNING: 32,
    TaskStatus.RELEASING: 64,
    TaskStatus.SUCCEEDED: 128,
    TaskStatus.FAILED: 256,
    TaskStatus.UNKNOWN: 512,
}
_READY, _NOT_READY = 1, 2
_PIECES: Final = 1000

Json = dict[str, Any]
encode = msgspec.json.Encoder(decimal_format="number").encode


# --- what is told --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ToldTask:
    """A pod as it is told: with another ``status`` or ``node`` than its own, where these are set.

    ``manifest`` is the pod as stored; None: what is known of it is told.
    """

    pod: Pod
    job: str
    status: int = 0
    node: NodeName = NO_NODE
    manifest: Raw | None = None

    def body(self) -> Json:
        """A ``TaskInfo``."""
        pod = self.pod
        request = _resource(pod.shape.requests)
        return {
            "UID": pod.uid,
            "Job": self.job,
            "Name": pod.name,
            "Namespace": pod.namespace,
            "TaskRole": pod.role,
            "Resreq": request,
            "InitResreq": request,
            "NodeName": self.node or pod.node,
            "Status": self.told_status,
            "Priority": pod.priority,
            "Preemptable": pod.preemptable,
            "BestEffort": is_best_effort(pod.shape.requests),
            "SchGated": bool(pod.gates),
            "RevocableZone": "*" if bears_revocation(pod.annotations) else "",
            "Pod": _pod(pod) if self.manifest is None else self.manifest,
        }

    @property
    def told_status(self) -> int:
        """The number of its status."""
        return self.status or _STATUS[self.pod.status]


def node_body(
    node: Node, *, allocatable: Amounts, used: Amounts, releasing: Amounts, tasks: Iterable[Json]
) -> Raw:
    """A ``NodeInfo``, encoded; amounts are of the node as a whole."""
    idle = dict(allocatable)
    for name, amount in used:
        idle[name] = idle.get(name, 0) - amount
    capacity = _resource(node.allocatable)
    body = {
        "Name": node.name,
        "Node": _node(node),
        "State": {"Phase": _READY if node.ready else _NOT_READY, "Reason": ""},
        "Releasing": _resource(releasing),
        "Pipelined": _resource(()),
        "Idle": _resource(tuple(idle.items())),
        "Used": _resource(used),
        "Allocatable": _resource(allocatable),
        "Capacity": capacity,
        "Tasks": {f"{task['Namespace']}/{task['Name']}": task for task in tasks},
        "RevocableZone": node.labels.get(REVOCABLE_ZONE, ""),
    }
    return Raw(encode(body))


def job_body(
    gang: Gang,
    pod_group: PodGroup | None,
    tasks: Sequence[ToldTask],
    *,
    allocated: Amounts,
    request: Amounts,
    least: Amounts | None,
) -> Json:
    """A ``JobInfo``; ``allocated`` and ``request`` are sums, ``least`` its ``minResources``."""
    bodies = {task.pod.uid: task.body() for task in tasks}
    by_status: dict[str, dict[PodUid, Json]] = {}
    for task in tasks:
        by_status.setdefault(str(task.told_status), {})[task.pod.uid] = bodies[task.pod.uid]
    return {
        "UID": gang.called,
        "PgUID": gang.uid,
        "Name": gang.name,
        "Namespace": gang.namespace,
        "Queue": gang.queue,
        "Priority": gang.priority,
        "MinAvailable": gang.min_member,
        "TaskMinAvailable": dict(gang.role_minimum),
        "TaskMinAvailableTotal": sum(gang.role_minimum.values()),
        "Tasks": bodies,
        "TaskStatusIndex": by_status,
        "Allocated": _resource(allocated),
        "TotalRequest": _resource(request),
        "CreationTimestamp": times.seconds(gang.created),
        "Preemptable": gang.preemptable is True,
        "RevocableZone": "*" if bears_revocation(gang.annotations) else "",
        "PodGroup": {
            "name": gang.name,
            "namespace": gang.namespace,
            "uid": gang.uid,
            "labels": dict(pod_group.labels) if pod_group is not None else {},
            "annotations": dict(gang.annotations),
            "Spec": {
                "MinMember": gang.min_member,
                "MinTaskMember": dict(gang.role_minimum),
                "Queue": gang.queue,
                "PriorityClassName": pod_group.priority_class if pod_group is not None else "",
                "MinResources": None if least is None else _list(least),
            },
            "Status": {"Phase": gang.phase.value},
        },
    }


def queue_body(queue: Queue, allocated: Amounts) -> Json:
    """A ``QueueInfo``; ``allocated`` is what its groups hold."""
    limits = {
        "Capability": _list(queue.capability),
        "Deserved": _list(queue.deserved),
        "Guarantee": {"resource": _list(queue.guarantee)},
    }
    spec = {"Weight": queue.weight, "Priority": queue.priority, "Parent": queue.parent}
    return {
        "UID": queue.name,
        "Name": queue.name,
        "CreationTimestamp": times.seconds(queue.created),
        "ReclaimableFlag": queue.reclaimable,
        "State": queue.state.value,
        "Allocated": _list(allocated),
        "Annotations": dict(queue.annotations),
        **spec,
        **limits,
        "Queue": {
            "name": queue.name,
            "uid": queue.uid,
            "annotations": dict(queue.annotations),
            "Spec": {**spec, **limits, "Reclaimable": queue.reclaimable},
            "Status": {"State": queue.state.value, "Allocated": _list(allocated)},
        },
    }


def held(usage: QueueUsage | None, names: Sequence[str]) -> Amounts:
    """What a queue's groups hold; ``names`` are those of the axis."""
    if usage is None:
        return ()
    return tuple((n, int(a)) for n, a in zip(names, usage.allocated.tolist(), strict=False) if a)


def _resource(amounts: Amounts) -> Json:
    found = dict(amounts)
    others = {n: a * _PIECES for n, a in amounts if a and n not in {CPU, MEMORY, PODS}}
    return {
        "MilliCPU": found.get(CPU, 0),
        "Memory": found.get(MEMORY, 0),
        "ScalarResources": others or None,
        "MaxTaskNum": found.get(PODS, 0),
    }


def _list(amounts: Amounts) -> dict[str, str]:
    return {name: _exact(name, amount) for name, amount in amounts}


def _exact(name: str, amount: int) -> str:
    text = amount_text(name, amount)
    return str(amount) if "." in text else text


def _pod(pod: Pod) -> Json:
    return {
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "labels": dict(pod.labels),
            "annotations": dict(pod.annotations),
            "creationTimestamp": times.seconds(pod.created),
        },
        "spec": {
            "nodeName": pod.node,
            "schedulerName": pod.scheduler,
            "priority": pod.priority,
            "priorityClassName": pod.priority_class,
            "nodeSelector": dict(pod.shape.node_selector),
            "containers": [
                {
                    "name": "all",
                    "resources": {
                        "requests": _list(tuple(p for p in pod.shape.requests if p[0] != PODS))
                    },
                }
            ],
        },
        "status": {"phase": pod.phase or "Pending"},
    }


def _node(node: Node) -> Json:
    return {
        "metadata": {"name": node.name, "uid": node.uid, "labels": dict(node.labels)},
        "spec": {
            "unschedulable": node.unschedulable,
            "taints": [
                {"key": taint.key, "value": taint.value, "effect": taint.effect}
                for taint in node.taints
            ],
        },
        "status": {
            "allocatable": _list(node.allocatable),
            "capacity": _list(node.allocatable),
            "conditions": [{"type": "Ready", "status": "True" if node.ready else "False"}],
        },
    }


# --- what is answered ----------------------------------------------------------------------------


class _StatusJson(Struct, gc=False, rename=str.lower):
    code: int = 0
    reason: str = ""


class _PredicateJson(Struct, gc=False, rename={"error_message": "errorMessage"}):
    status: str | list[_StatusJson] | None = None
    error_message: str | None = None


class _PrioritizeJson(
    Struct, gc=False, rename={"scores": "nodeScore", "error_message": "errorMessage"}
):
    scores: dict[str, float] | None = None
    error_message: str | None = None


class _VictimJson(Struct, gc=False, rename={"uid": "UID", "small": "uid"}):
    uid: str = ""
    small: str = ""


class _VictimsJson(Struct, gc=False):
    status: int = 0
    victims: list[_VictimJson] | None = None


class _EnqueueableJson(Struct, gc=False):
    status: int = 0


class _ReadyJson(Struct, gc=False):
    status: bool = False


class _OverusedJson(Struct, gc=False):
    overused: bool = False


class _EventJson(Struct, gc=False, rename={"error_message": "errorMessage"}):
    error_message: str | None = None


_predicate: Reader[_PredicateJson] = Reader(_PredicateJson)
_prioritize: Reader[_PrioritizeJson] = Reader(_PrioritizeJson)
_victims: Reader[_VictimsJson] = Reader(_VictimsJson)
_enqueueable: Reader[_EnqueueableJson] = Reader(_EnqueueableJson)
_ready: Reader[_ReadyJson] = Reader(_ReadyJson)
_overused: Reader[_OverusedJson] = Reader(_OverusedJson)
_event: Reader[_EventJson] = Reader(_EventJson)


def read_refusal(body: bytes) -> str:
    """Why a node does not take the pod, empty where it does; raises `DecodeError`.

    ``status`` is a text, or a list of statuses as older servers answer; ``errorMessage`` is what it
    was called before.
    """
    found = _predicate(body)
    if isinstance(found.status, list):
        return ", ".join(each.reason or f"code {each.code}" for each in found.status if each.code)
    return found.status or found.error_message or ""


def read_scores(body: bytes) -> Mapping[NodeName, float]:
    """The score of nodes by name; raises `DecodeError`."""
    found = _prioritize(body)
    if found.error_message or found.scores is None:
        raise DecodeError("", found.error_message or "nodeScore is missing")
    if not all(map(math.isfinite, found.scores.values())):
        raise DecodeError("nodeScore", "a score is no finite number")
    return {NodeName(name): score for name, score in found.scores.items()}


def read_victims(body: bytes) -> frozenset[PodUid] | None:
    """The pods that may go; None: the server has no say. Raises `DecodeError`."""
    found = _victims(body)
    if found.status == 0:
        return None
    named = found.victims if found.victims and found.status > 0 else []
    return frozenset(PodUid(each.uid or each.small) for each in named)


def read_vote(body: bytes) -> int:
    """-1, 0 or 1; raises `DecodeError`."""
    status = _enqueueable(body).status
    return (status > 0) - (status < 0)


def read_ready(body: bytes) -> bool:
    """Whether the group is ready; raises `DecodeError`."""
    return _ready(body).status


def read_overused(body: bytes) -> bool:
    """Whether the queue is overused; raises `DecodeError`."""
    return _overused(body).overused


def read_event(body: bytes) -> None:
    """Nothing; raises `DecodeError` where the server tells of an error, or no JSON."""
    message = _event(body).error_message if body.strip() else None
    if message:
        raise DecodeError("", message)


def read_nothing(_body: bytes) -> None:
    """Whatever is answered to a session that opens or closes."""
