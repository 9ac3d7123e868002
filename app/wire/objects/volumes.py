"""Volumes: which ones a pod uses, and the kinds that say what there is of them."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from app.model.amounts import UNLIMITED
from app.model.ids import NodeName
from app.model.shape import ClaimSpec, NodeTerm, Operator, Requirement, VolumeAsk
from app.model.volumes import (
    CsiDriver,
    CsiNode,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeClaim,
    VolumeId,
)
from app.wire import quantity
from app.wire.errors import Bytes, Reader
from app.wire.interning import Interned
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson
from app.wire.objects.selectors import LabelSelectorJson, NodeTermJson, label_selector, node_term

_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named the class before there was a field."""
_BOUND: Final = "pv.kubernetes.io/bind-completed"
_SELECTED: Final = "volume.kubernetes.io/selected-node"
_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_BLOCK: Final = "Block"
_STORAGE: Final = "storage"
_ZONES: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_ZONE_BREAK: Final = "__"


class _ResourcesJson(Struct, gc=False):
    requests: quantity.QuantityMap | None = None


class ClaimSpecJson(Struct, rename="camel", gc=False):
    """``spec`` of a PersistentVolumeClaim."""

    storage_class_name: str | None = None
    volume_name: str | None = None
    volume_mode: str | None = None
    access_modes: list[str] | None = None
    resources: _ResourcesJson | None = None
    selector: LabelSelectorJson | None = None


class _ClaimSourceJson(Struct, rename="camel", gc=False):
    claim_name: str = ""


class _TemplateJson(Struct, gc=False):
    spec: ClaimSpecJson | None = None


class _EphemeralJson(Struct, rename="camel", gc=False):
    volume_claim_template: _TemplateJson | None = None


class VolumeJson(Struct, rename="camel", gc=False):
    """An entry of ``spec.volumes`` of a pod, as far as it is about claims."""

    persistent_volume_claim: _ClaimSourceJson | None = None
    ephemeral: _EphemeralJson | None = None


class _PhaseJson(Struct, gc=False):
    phase: str | None = None


class _ClaimJson(Struct, gc=False):
    metadata: MetaJson
    spec: ClaimSpecJson | None = None
    status: _PhaseJson | None = None


class _CsiJson(Struct, rename="camel", gc=False):
    driver: str = ""
    volume_handle: str = ""


class _SelectorJson(Struct, rename="camel", gc=False):
    node_selector_terms: list[NodeTermJson | None] | None = None


class _VolumeAffinityJson(Struct, gc=False):
    required: _SelectorJson | None = None


class _ReferenceJson(Struct, gc=False):
    name: str = ""
    namespace: str = ""


class _VolumeSpecJson(Struct, rename="camel", gc=False):
    storage_class_name: str | None = None
    capacity: quantity.QuantityMap | None = None
    access_modes: list[str] | None = None
    volume_mode: str | None = None
    node_affinity: _VolumeAffinityJson | None = None
    claim_ref: _ReferenceJson | None = None
    csi: _CsiJson | None = None


class _PersistentVolumeJson(Struct, gc=False):
    metadata: MetaJson
    spec: _VolumeSpecJson | None = None
    status: _PhaseJson | None = None


class _LabelValuesJson(Struct, gc=False):
    key: str = ""
    values: list[str] | None = None


class _TopologyJson(Struct, rename="camel", gc=False):
    match_label_expressions: list[_LabelValuesJson] | None = None


class _StorageClassJson(Struct, rename="camel", gc=False):
    metadata: MetaJson
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[_TopologyJson] | None = None


class _AllocatableJson(Struct, gc=False):
    count: int | None = None


class _NodeDriverJson(Struct, rename="camel", gc=False):
    name: str = ""
    topology_keys: list[str] | None = None
    allocatable: _AllocatableJson | None = None


class _CsiNodeSpecJson(Struct, gc=False):
    drivers: list[_NodeDriverJson] | None = None


class _CsiNodeJson(Struct, gc=False):
    metadata: MetaJson
    spec: _CsiNodeSpecJson | None = None


class _CsiDriverSpecJson(Struct, rename="camel", gc=False):
    storage_capacity: bool | None = None


class _CsiDriverJson(Struct, gc=False):
    metadata: MetaJson
    spec: _CsiDriverSpecJson | None = None


class _CapacityJson(Struct, rename="camel", gc=False):
    metadata: MetaJson
    storage_class_name: str = ""
    node_topology: LabelSelectorJson | None = None
    capacity: quantity.Quantity | None = None
    maximum_volume_size: quantity.Quantity | None = None


class _SourceJson(Struct, rename="camel", gc=False):
    persistent_volume_name: str | None = None


class _AttachmentSpecJson(Struct, rename="camel", gc=False):
    node_name: str = ""
    source: _SourceJson | None = None


class _AttachmentJson(Struct, gc=False):
    metadata: MetaJson
    spec: _AttachmentSpecJson | None = None


_read_claim: Reader[_ClaimJson] = Reader(_ClaimJson)
_read_volume: Reader[_PersistentVolumeJson] = Reader(_PersistentVolumeJson)
_read_class: Reader[_StorageClassJson] = Reader(_StorageClassJson)
_read_node: Reader[_CsiNodeJson] = Reader(_CsiNodeJson)
_read_driver: Reader[_CsiDriverJson] = Reader(_CsiDriverJson)
_read_capacity: Reader[_CapacityJson] = Reader(_CapacityJson)
_read_attachment: Reader[_AttachmentJson] = Reader(_AttachmentJson)

_terms: Interned[tuple[NodeTerm, ...], tuple[NodeTerm, ...]] = Interned(limit=8_192)
_NO_CLAIM = ClaimSpecJson()
_NO_VOLUME = _VolumeSpecJson()


def volume_ask(
    volumes: Sequence[VolumeJson] | None, *, namespace: str, besides: Iterable[str] = ()
) -> VolumeAsk | None:
    """The volumes that a pod uses by claims, also those of the names ``besides``; None: none."""
    claims = {f"{namespace}/{name}" for name in besides}
    own = []
    for volume in volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.add(f"{namespace}/{volume.persistent_volume_claim.claim_name}")
        elif volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template
            spec = template.spec if template is not None else None
            own.append(_claim_spec(spec or _NO_CLAIM, "spec.volumes.ephemeral"))
    return VolumeAsk(tuple(sorted(claims)), tuple(own)) if claims or own else None


def decode_attachment(text: Bytes) -> VolumeAttachment:
    """A VolumeAttachment; raises `DecodeError`. One of a volume inside a pod names no volume."""
    json = _read_attachment(text)
    spec = json.spec or _AttachmentSpecJson()
    volume = spec.source.persistent_volume_name if spec.source is not None else None
    return VolumeAttachment(meta.named(json.metadata), NodeName(spec.node_name), volume or "")


def decode_claim(text: Bytes) -> VolumeClaim:
    """A PersistentVolumeClaim; raises `DecodeError`."""
    json = _read_claim(text)
    head, spec = json.metadata, json.spec or _NO_CLAIM
    said = meta.all_annotations(head.annotations)
    of_class = said.get(_CLASS)
    if of_class is not None:
        spec.storage_class_name = of_class
    volume = spec.volume_name or ""
    return VolumeClaim(
        key=f"{head.namespace or ''}/{meta.named(head)}",
        spec=_claim_spec(spec, "spec"),
        volume=volume,
        bound=bool(volume) and _BOUND in said,
        lost=json.status is not None and json.status.phase == "Lost",
        deleting=head.deletion_timestamp is not None,
        selected=NodeName(said.get(_SELECTED, "")),
    )


def _claim_spec(json: ClaimSpecJson, at: str) -> ClaimSpec:
    requests = json.resources.requests if json.resources is not None else None
    return ClaimSpec(
        storage_class=json.storage_class_name,
        size=quantity.read(requests, f"{at}.resources.requests").get(_STORAGE, 0),
        modes=tuple(sorted(json.access_modes or ())),
        block=json.volume_mode == _BLOCK,
        selector=label_selector(json.selector, f"{at}.selector"),
    )


def decode_volume(text: Bytes) -> PersistentVolume:
    """A PersistentVolume; raises `DecodeError`."""
    json = _read_volume(text)
    head, spec = json.metadata, json.spec or _NO_VOLUME
    labels, reference = meta.labels(head.labels), spec.claim_ref
    said = meta.all_annotations(head.annotations)
    return PersistentVolume(
        name=meta.named(head),
        storage_class=said.get(_CLASS, spec.storage_class_name or ""),
        size=quantity.read(spec.capacity, "spec.capacity").get(_STORAGE, 0),
        modes=tuple(sorted(spec.access_modes or ())),
        block=spec.volume_mode == _BLOCK,
        labels=labels,
        terms=_affinity(spec.node_affinity),
        zones=tuple(
            (key, tuple(sorted(labels[key].split(_ZONE_BREAK)))) for key in _ZONES if key in labels
        ),
        id=_id(spec.csi),
        claim=f"{reference.namespace}/{reference.name}" if reference is not None else "",
        available=json.status is not None and json.status.phase == "Available",
        deleting=head.deletion_timestamp is not None,
    )


def _affinity(json: _VolumeAffinityJson | None) -> tuple[NodeTerm, ...] | None:
    if json is None or json.required is None:
        return None
    at = "spec.nodeAffinity.required.nodeSelectorTerms"
    found = tuple(
        node_term(term, f"{at}[{i}]")
        for i, term in enumerate(json.required.node_selector_terms or ())
    )
    return _terms.keep(found, found)


def _id(json: _CsiJson | None) -> VolumeId | None:
    return (json.driver, json.volume_handle) if json is not None and json.volume_handle else None


def decode_storage_class(text: Bytes) -> StorageClass:
    """A StorageClass; raises `DecodeError`."""
    json = _read_class(text)
    return StorageClass(
        name=meta.named(json.metadata),
        provisioner=json.provisioner,
        waits=json.volume_binding_mode == "WaitForFirstConsumer",
        topologies=tuple(
            tuple(
                Requirement(each.key, Operator.IN, tuple(each.values or ()))
                for each in term.match_label_expressions or ()
            )
            for term in json.allowed_topologies or ()
        ),
        is_default=meta.all_annotations(json.metadata.annotations).get(_DEFAULT) == "true",
    )


def decode_csi_node(text: Bytes) -> CsiNode:
    """A CSINode; raises `DecodeError`."""
    json = _read_node(text)
    drivers = (json.spec.drivers if json.spec is not None else None) or ()
    limits = (
        (each.name, each.allocatable.count if each.allocatable is not None else None)
        for each in drivers
    )
    return CsiNode(
        name=NodeName(meta.named(json.metadata)),
        limits=tuple((name, max(count, 0)) for name, count in limits if count is not None),
        segments=tuple((each.name, tuple(each.topology_keys or ())) for each in drivers),
    )


def decode_csi_driver(text: Bytes) -> CsiDriver:
    """A CSIDriver; raises `DecodeError`."""
    json = _read_driver(text)
    tells = json.spec is not None and bool(json.spec.storage_capacity)
    return CsiDriver(meta.named(json.metadata), tells)


def decode_storage_capacity(text: Bytes) -> StorageCapacity:
    """A CSIStorageCapacity; raises `DecodeError`."""
    json = _read_capacity(text)
    head = json.metadata
    return StorageCapacity(
        key=f"{head.namespace or ''}/{meta.named(head)}",
        storage_class=json.storage_class_name,
        nodes=label_selector(json.node_topology, "nodeTopology"),
        left=_bytes(json.capacity, "capacity"),
        largest=_bytes(json.maximum_volume_size, "maximumVolumeSize"),
    )


def _bytes(text: quantity.Quantity | None, at: str) -> int | None:
    if text is None:
        return None
    return min(quantity.read({_STORAGE: text}, at)[_STORAGE], UNLIMITED)
