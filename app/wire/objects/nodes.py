"""Nodes."""

from collections.abc import Mapping
from sys import intern
from typing import Annotated

from msgspec import Meta, Raw, Struct

from app.model.amounts import LARGEST, Amounts, amounts
from app.model.colocation import EVICTING, evicts_offline
from app.model.device_families import GPUS
from app.model.ids import NodeName
from app.model.load import NODE_LOAD, NodeLoad
from app.model.node import Node, Taint
from app.wire import quantity, times
from app.wire.errors import Bytes, DecodeError, Reader
from app.wire.objects import meta
from app.wire.objects.devices import device_notes
from app.wire.objects.meta import MetaJson


class _TaintJson(Struct, gc=False):
    key: str = ""
    value: str | None = None
    effect: str = ""


class _SpecJson(Struct, gc=False):
    unschedulable: bool | None = None
    taints: list[_TaintJson] | None = None


class _ConditionJson(Struct, gc=False):
    type: str = ""
    status: str = ""


class _ImageJson(Struct, rename="camel", gc=False):
    names: list[str] | None = None
    size_bytes: int | None = None


class _StatusJson(Struct, gc=False):
    allocatable: quantity.QuantityMap | None = None
    capacity: quantity.QuantityMap | None = None
    conditions: list[_ConditionJson] | None = None
    images: list[_ImageJson] | None = None


class _NodeJson(Struct, gc=False):
    metadata: MetaJson
    spec: _SpecJson | None = None
    status: _StatusJson | None = None


_Share = Annotated[float, Meta(ge=0, le=1000)]


class _LoadJson(Struct, gc=False):
    cpu: _Share
    memory: _Share
    time: times.Moment
    window: Annotated[float, Meta(ge=0, le=86400)] = 300.0


_read: Reader[_NodeJson] = Reader(_NodeJson)
_read_load: Reader[_LoadJson] = Reader(_LoadJson)
_NO_SPEC = _SpecJson()
_NO_STATUS = _StatusJson()


def decode_node(text: Bytes) -> Node:
    """A node; raises `DecodeError`."""
    json = _read(text)
    head, spec, status = json.metadata, json.spec or _NO_SPEC, json.status or _NO_STATUS
    return Node(
        name=NodeName(meta.named(head)),
        uid=head.uid,
        resource_version=head.resource_version,
        labels=meta.labels(head.labels),
        allocatable=_allocatable(status),
        taints=_taints(spec, head.annotations),
        unschedulable=bool(spec.unschedulable),
        ready=all(c.status == "True" for c in status.conditions or () if c.type == "Ready"),
        images=_images(status),
        devices=device_notes(
            meta.annotations(head.annotations), meta.labels(head.labels), _gpus(status)
        ),
        load=_load(head.annotations),
    )


def _taints(spec: _SpecJson, annotations: Raw) -> tuple[Taint, ...]:
    """The taints; older agents say by an annotation what newer ones say by this taint."""
    found = tuple(Taint(t.key, t.value or "", t.effect) for t in spec.taints or ())
    if EVICTING.encode() not in bytes(annotations):
        return found
    evicts = evicts_offline(meta.annotations(annotations))
    return (*found, Taint(EVICTING, "", "NoSchedule")) if evicts else found


def _load(annotations: Raw) -> NodeLoad | None:
    """The load in the annotation; None where there is none, or nothing that can be read."""
    if NODE_LOAD.encode() not in bytes(annotations):
        return None
    try:
        found = _read_load(meta.annotations(annotations).get(NODE_LOAD, "").encode())
    except DecodeError:
        return None
    return NodeLoad(found.cpu, found.memory, at=times.epoch(found.time), window_s=found.window)


def decode_annotations(text: Bytes) -> tuple[str, Mapping[str, str]]:
    """The version of a node, and all its annotations; raises `DecodeError`."""
    head = _read(text).metadata
    return head.resource_version, meta.all_annotations(head.annotations)


def _allocatable(status: _StatusJson) -> Amounts:
    """What pods may take; the capacity where nothing is said, as the API server defaults it.

    A kubelet that reserves more than there is reports less than nothing.
    """
    if status.allocatable:
        found = quantity.read(status.allocatable, "status.allocatable")
    else:
        found = quantity.read(status.capacity, "status.capacity")
    return amounts({name: max(min(value, LARGEST), 0) for name, value in found.items()})


def _gpus(status: _StatusJson) -> Mapping[str, int]:
    """How many GPUs it has, and their memory, in whatever state they are."""
    had = status.capacity or {}
    return quantity.read({name: had[name] for name in GPUS if name in had}, "status.capacity")


def _images(status: _StatusJson) -> Mapping[str, int] | None:
    """Size by name. Names are shared between nodes, which mostly hold the same images."""
    if not status.images:
        return None
    return {
        intern(name): image.size_bytes or 0 for image in status.images for name in image.names or ()
    }
