"""Builders of model values: keyword defaults, so a test states only what it is about."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from app.core.accounts import unadmitted_request
from app.model.amounts import CPU, MEMORY, PODS, Amounts, amounts, is_best_effort
from app.model.gang import Counts, Gang, Task
from app.model.ids import NO_NODE, NodeName, PodUid, QueueName, group_key
from app.model.node import Node
from app.model.pod import Pod
from app.model.resources import ResourceAxis
from app.model.shape import LabelSelector, PodShape, PodTerm, Spread
from app.model.snapshot import NodeTable, QueueUsage, Snapshot
from app.model.workload import GroupPhase, Queue, QueueState

GIB = 1 << 30
AXIS = ResourceAxis()
ALONE = PodTerm("kubernetes.io/hostname", LabelSelector())
"""An anti-affinity to all pods of the same node."""


def make_amounts(*, cpu: int = 0, memory: int = 0, pods: int = 0, **extra: int) -> Amounts:
    """Amounts with zeros left out; ``cpu`` in milli-cores, ``memory`` in bytes."""
    values = {CPU: cpu, MEMORY: memory, PODS: pods, **extra}
    return amounts({name: value for name, value in values.items() if value})


def make_shape(*, cpu: int = 1000, memory: int = GIB, **fields: Any) -> PodShape:
    """A shape asking for ``cpu`` milli-cores, ``memory`` bytes and one pod."""
    return PodShape(requests=make_amounts(cpu=cpu, memory=memory, pods=1), **fields)


def make_spread_shape(rule: Spread) -> PodShape:
    """A shape with that rule, for pods without labels."""
    return make_shape(spread=(rule,), spread_identity=("default", ()))


def make_pod(name: str = "p", *, namespace: str = "default", **fields: Any) -> Pod:
    """A pending pod of the volcano scheduler; ``uid`` defaults to ``uid-<name>``."""
    defaults: dict[str, Any] = {
        "uid": PodUid(f"uid-{name}"),
        "resource_version": "1",
        "scheduler": "volcano",
        "shape": make_shape(),
        "node": NO_NODE,
        "phase": "Pending",
        "created": 0.0,
        "labels": {},
        "annotations": {},
    }
    return Pod(namespace=namespace, name=name, **(defaults | fields))


def make_node(
    name: str, *, cpu: int = 8000, memory: int = 32 * GIB, pods: int = 110, **fields: Any
) -> Node:
    """A ready node."""
    extra = fields.pop("extra", {})
    defaults: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "labels": {"kubernetes.io/hostname": name},
    }
    return Node(
        name=NodeName(name),
        allocatable=make_amounts(cpu=cpu, memory=memory, pods=pods, **extra),
        **(defaults | fields),
    )


def make_queue(name: str, **fields: Any) -> Queue:
    """An open queue of weight 1."""
    defaults: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "created": 0.0,
        "state": QueueState.OPEN,
    }
    return Queue(name=QueueName(name), **(defaults | fields))


def make_task(name: str, *, axis: ResourceAxis = AXIS, **fields: Any) -> Task:
    """A waiting member; give ``shape`` to change what it asks for, ``uid=""`` for a slot."""
    shape = fields.pop("shape", None) or make_shape()
    defaults: dict[str, Any] = {
        "uid": PodUid(f"uid-{name}"),
        "role": "",
        "priority": 1,
        "created": 0.0,
    }
    return Task(
        name=name,
        shape=shape,
        request=axis.vector(shape.requests),
        best_effort=is_best_effort(shape.requests),
        **(defaults | fields),
    )


def make_gang(
    name: str = "g", *, waiting: tuple[Task, ...] = (), axis: ResourceAxis = AXIS, **fields: Any
) -> Gang:
    """A gang of ``waiting`` tasks, Inqueue in queue ``default``, minimum = all of them."""
    namespace = fields.pop("namespace", "default")
    zero = np.zeros(len(axis), dtype=np.int64)
    allocated = fields.pop("allocated", zero)
    roles: dict[str, int] = {}
    for task in waiting:
        roles[task.role] = roles.get(task.role, 0) + 1
    defaults: dict[str, Any] = {
        "uid": f"uid-{name}",
        "queue": QueueName("default"),
        "priority": 0,
        "created": 0.0,
        "min_member": len(waiting),
        "phase": GroupPhase.INQUEUE,
        "counts": Counts(
            pending=len(waiting), pending_best_effort=sum(t.best_effort for t in waiting)
        ),
        "request": allocated + sum((t.request for t in waiting), zero),
        "kept": zero,
        "min_request": None,
        "gated_request": zero,
        "releasing": zero,
        "role_valid": roles,
        "role_shapes": {t.role: t.shape for t in waiting},
    }
    return Gang(
        key=group_key(namespace, name),
        namespace=namespace,
        name=name,
        allocated=allocated,
        waiting=waiting,
        **(defaults | fields),
    )


def make_table(nodes: tuple[Node, ...], *, axis: ResourceAxis = AXIS) -> NodeTable:
    """The node table the cache would build; the axis grows to cover the nodes' resources."""
    axis = axis.covering(name for node in nodes for name, _ in node.allocatable)
    ordered = tuple(sorted(nodes, key=lambda n: n.name))
    allocatable = np.zeros((len(ordered), len(axis)), dtype=np.int64)
    for row, node in enumerate(ordered):
        if node.ready:
            allocatable[row] = axis.vector(node.allocatable)
    freely = [row for row, node in enumerate(ordered) if not node.unschedulable]
    return NodeTable(
        axis=axis,
        nodes=ordered,
        index={node.name: row for row, node in enumerate(ordered)},
        allocatable=allocatable,
        total=sum((allocatable[row] for row in freely), np.zeros(len(axis), dtype=np.int64)),
        away=tuple(row for row, node in enumerate(ordered) if not node.ready),
        cordoned=tuple(row for row, node in enumerate(ordered) if node.is_cordoned),
        generation=1,
    )


def make_snapshot(
    *,
    nodes: tuple[Node, ...] = (),
    gangs: tuple[Gang, ...] = (),
    queues: tuple[Queue, ...] = (),
    usage: Mapping[str, QueueUsage] | None = None,
    axis: ResourceAxis = AXIS,
    **fields: Any,
) -> Snapshot:
    """A snapshot with empty nodes; queues ``root`` and ``default`` exist unless given.

    Queue usage is summed from ``gangs`` (allocated, request, elastic, releasing) when not given.
    """
    table = fields.pop("table", None) or make_table(nodes, axis=axis)
    known = {q.name: q for q in (make_queue("root"), make_queue("default"), *queues)}
    zero = np.zeros(len(table.axis), dtype=np.int64)
    sums: dict[str, QueueUsage] = {}
    for gang in gangs:
        at = sums.get(gang.queue, QueueUsage(zero, zero, zero, zero))
        least = 0 if gang.min_request is None else gang.min_request
        sums[gang.queue] = QueueUsage(
            allocated=at.allocated + gang.allocated,
            request=at.request + gang.request + unadmitted_request(gang),
            inqueue=at.inqueue,
            elastic=at.elastic + np.maximum(gang.allocated - least, 0),
            groups=at.groups + 1,
            releasing=at.releasing,
        )
        if gang.releasing.any():
            before = zero if at.releasing is None else at.releasing
            sums[gang.queue] = replace(sums[gang.queue], releasing=before + gang.releasing)
    defaults: dict[str, Any] = {
        "generation": 1,
        "used": np.zeros_like(table.allocatable),
        "releasing": np.zeros_like(table.allocatable),
        "pending": gangs,
        "affine": tuple(gang for gang in gangs if gang.affinity is not None),
    }
    filled = defaults | fields
    pending: tuple[Gang, ...] = filled["pending"]
    return Snapshot(
        table=table,
        gangs={g.key: g for g in gangs},
        queues=known,
        usage={QueueName(k): v for k, v in (usage or sums).items()},
        awaited=tuple(gang for gang in pending if gang.is_awaited),
        torn=tuple(gang for gang in pending if gang.partial),
        **filled,
    )
