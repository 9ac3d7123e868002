"""Builders of shared devices."""

from __future__ import annotations

from app.model.device_families import VGPU
from app.model.devices import ContainerLimits, DeviceAsk, DeviceNotes
from app.model.node import Node
from app.model.shape import PodShape
from tests.builders import make_node, make_shape

NUMBER, MEMORY, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
GPU_MIB = 32 * 1024


def register(*ids: str, memory: int = GPU_MIB, sharers: int = 10, ill: str = "") -> str:
    """What the device plugin of Volcano writes for GPUs with these UUIDs."""
    return "".join(
        f"{id_},{sharers},{memory},NVIDIA-V100,{str(id_ != ill).lower()},hami-core:" for id_ in ids
    )


def gpu_node(name: str, *ids: str, cpu: int = 64_000, ill: str = "") -> Node:
    """A node with shared GPUs."""
    extra = {NUMBER: 10 * len(ids), MEMORY: GPU_MIB * len(ids), CORES: 100 * len(ids)}
    notes = DeviceNotes(((VGPU.register, register(*ids, ill=ill)),))
    return make_node(name, cpu=cpu, extra=extra, devices=notes)


def asking(*containers: dict[str, int], **annotations: str) -> DeviceAsk:
    """What a pod with such limits says; ``annotations`` are named with _ for what they choose."""
    keys = {
        "types": "nvidia.com/use-gputype",
        "ids": "volcano.sh/vgpu-use-gpuuuid",
        "policy": "volcano.sh/vgpu-podgroup-policy",
    }
    said = tuple(sorted((keys[name], text) for name, text in annotations.items()))
    limits = (ContainerLimits(tuple(sorted(each.items()))) for each in containers)
    return DeviceAsk(tuple(limits), said)


def vgpu_shape(gib: int, *, count: int = 1, cores: int = 0, **annotations: str) -> PodShape:
    """A pod with one container that asks for so many vGPUs with so much memory each."""
    limits = {NUMBER: count, MEMORY: gib * 1024, CORES: cores}
    return make_shape(devices=asking({k: n for k, n in limits.items() if n}, **annotations))
