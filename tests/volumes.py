"""Builders of volumes and what nodes attach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.core.placement.volumes import node_volumes
from app.model.ids import NodeName
from app.model.shape import ClaimSpec, NodeTerm, Operator, PodShape, Requirement, VolumeAsk
from app.model.volumes import (
    CsiDriver,
    CsiNode,
    PersistentVolume,
    PodVolumes,
    Storage,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeClaim,
    Volumes,
)
from tests.builders import GIB, make_shape

DRIVER = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
FAST = StorageClass("fast", DRIVER, waits=True)
LOCAL = StorageClass("local", "kubernetes.io/no-provisioner", waits=True)


def attached(node: str, name: str) -> VolumeAttachment:
    """The volume of that name is attached to the node."""
    return VolumeAttachment(f"{name}-{node}", NodeName(node), name)


def on(key: str, *values: str) -> tuple[NodeTerm, ...]:
    """The node affinity of a volume that is where the label has one of these values."""
    return (NodeTerm((Requirement(key, Operator.IN, values),)),)


def claim(name: str, *, of: str | None = "fast", gib: int = 1, **fields: Any) -> VolumeClaim:
    """A claim in ``default``; give ``volume`` for one that is bound."""
    modes = fields.pop("modes", ("ReadWriteOnce",))
    spec = ClaimSpec(of, gib * GIB, modes, selector=fields.pop("selector", None))
    fields.setdefault("bound", bool(fields.get("volume")))
    return VolumeClaim(f"default/{name}", spec, **fields)


def volume(name: str, *, gib: int = 1, **fields: Any) -> PersistentVolume:
    """A volume of the driver; ``available`` unless it has a claim."""
    defaults: dict[str, Any] = {
        "storage_class": "fast",
        "modes": ("ReadWriteOnce",),
        "id": (DRIVER, f"handle-{name}"),
        "available": "claim" not in fields,
    }
    return PersistentVolume(name, size=gib * GIB, **(defaults | fields))


def storage(*each: object) -> Storage:
    """All of these."""

    def of(kind: type, key: str = "name") -> dict[Any, Any]:
        return {getattr(one, key): one for one in each if isinstance(one, kind)}

    return Storage(
        claims=of(VolumeClaim, "key"),
        volumes=of(PersistentVolume),
        classes=of(StorageClass),
        drivers=of(CsiDriver),
        nodes=of(CsiNode),
        capacities=of(StorageCapacity, "key"),
        attachments=of(VolumeAttachment),
        known=True,
    )


def using(*claims: str, own: Sequence[ClaimSpec] = ()) -> VolumeAsk:
    """The volumes of a pod in ``default``."""
    return VolumeAsk(tuple(f"default/{name}" for name in sorted(claims)), tuple(own))


def pod_with(*claims: str, own: Sequence[ClaimSpec] = (), cpu: int = 1000) -> PodShape:
    """A pod that uses these."""
    return make_shape(cpu=cpu, memory=0, volumes=using(*claims, own=own))


def volumes(known: Storage, **pods: Sequence[PodVolumes]) -> Volumes:
    """That storage, and what pods use on nodes by name."""
    used = {NodeName(name): node_volumes(each, known) for name, each in pods.items()}
    return Volumes(known, used)


def limit(node: str, count: int, *, segments: Sequence[str] = ()) -> CsiNode:
    """A node that attaches so many volumes of the driver."""
    return CsiNode(NodeName(node), ((DRIVER, count),), ((DRIVER, tuple(segments)),))
