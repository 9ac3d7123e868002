"""Node objects of the simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from zlib import crc32

from app.model.amounts import CPU, MEMORY
from app.model.colocation import BATCH_CPU, BATCH_MEMORY, COLOCATED
from app.model.device_families import VGPU
from app.model.devices import ALL_CORES
from app.model.numa import NumaPolicy
from app.sandbox.clock import timestamp
from app.wire.documents import Document
from app.wire.quantity import amount

GPU = "nvidia.com/gpu"
SHARERS = 10
"""Containers that may share a GPU, as the device plugin of Volcano has it."""
RACK = "pumice.sh/rack"
"""Label of nodes: the rack they are in."""
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "is posting ready status"),
)


@dataclass(frozen=True, slots=True)
class NumaSpec:
    """Each machine has ``nodes`` NUMA nodes, and its topology manager that policy."""

    nodes: int
    policy: NumaPolicy = NumaPolicy.SINGLE_NUMA_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """``count`` equal nodes; quantities are written as in manifests.

    With ``vgpu`` pods may share the GPUs, each of ``gpu_memory``, and the nodes say so as Volcano's
    device plugin does. ``racks`` of them stand in a row, each with as many nodes as the next, or
    one more; 0: none. ``chips`` are Ascend 310P chips that are cut as pods need them.
    ``numa`` None: the machines say nothing of NUMA nodes. ``batch`` per cent of cpu and memory are
    for offline pods too, as the agent of Volcano reports what online pods leave unused; 0: none.
    ``tells_load``: annotations tell how busy the machines are, as if pods used what they request.
    """

    count: int = 10
    cpu: str = "4"
    memory: str = "16Gi"
    gpus: int = 0
    gpu_memory: str = "80Gi"
    vgpu: bool = False
    chips: int = 0
    racks: int = 0
    numa: NumaSpec | None = None
    batch: int = 0
    tells_load: bool = False
    pods: int = 110
    prefix: str = "node"
    labels: Mapping[str, str] = field(default_factory=dict)


def host_ip(node: str) -> str:
    """An address that depends only on the node's name."""
    number = crc32(node.encode())
    return f"10.{number >> 16 & 127}.{number >> 8 & 255}.{number & 255}"


def node_name(spec: NodeSpec, index: int) -> str:
    """The name of a node: prefix and index, such as ``node-00007``."""
    return f"{spec.prefix}-{index:05d}"


def rack_name(rack: int) -> str:
    """The value of the rack label for the rack with that number."""
    return f"rack-{rack}"


def node_documents(spec: NodeSpec, *, now: float) -> list[Document]:
    """``count`` new v1.Node objects; ``now`` is in seconds since the epoch."""
    return [_node(spec, index, now=now) for index in range(spec.count)]


def _node(spec: NodeSpec, index: int, *, now: float) -> Document:
    name = node_name(spec, index)
    capacity = {
        "cpu": spec.cpu,
        "memory": spec.memory,
        "pods": str(spec.pods),
        "ephemeral-storage": "100Gi",
    }
    mib = amount(MEMORY, spec.gpu_memory) >> 20
    if spec.vgpu:
        capacity[VGPU.count] = str(spec.gpus * SHARERS)
        capacity[VGPU.memory] = str(spec.gpus * mib)
        capacity[VGPU.cores] = str(spec.gpus * ALL_CORES)
    elif spec.gpus:
        capacity[GPU] = str(spec.gpus)
    if spec.batch:
        capacity[BATCH_CPU] = str(amount(CPU, spec.cpu) * spec.batch // 100)
        capacity[BATCH_MEMORY] = str(amount(MEMORY, spec.memory) * spec.batch // 100)
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **spec.labels}
    if spec.batch:
        labels[COLOCATED] = "true"
    if spec.racks:
        labels[RACK] = rack_name(index * spec.racks // spec.count)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": _shared(spec, name, mib)},
        "spec": {},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [
                {"type": "InternalIP", "address": host_ip(name)},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [
                _condition(kind, status, why=(reason, text), now=now)
                for kind, status, reason, text in _CONDITIONS
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.36.3",
                "osImage": "Pumice sandbox",
                "kernelVersion": "none",
                "containerRuntimeVersion": "simulated://1",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def _shared(spec: NodeSpec, node: str, mib: int) -> dict[str, str]:
    """The annotation that lists GPUs which pods may share."""
    if not spec.vgpu:
        return {}
    listed = (
        f"GPU-{node}-{index},{SHARERS},{mib},NVIDIA-A100-SXM4-80GB,true,hami-core:"
        for index in range(spec.gpus)
    )
    return {VGPU.register: "".join(listed)}


def _condition(kind: str, status: str, *, why: tuple[str, str], now: float) -> Document:
    reason, text = why
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": f"kubelet {text}",
        "lastHeartbeatTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
    }
