"""ResourceClaims and ResourceClaimTemplates (``resource.k8s.io/v1``)."""

from typing import Final

from msgspec import Struct, field

from app.model.amounts import LARGEST_POD, Amounts
from app.model.device_claims import (
    Allocation,
    Allotted,
    ClaimSpec,
    ClaimTemplate,
    DeviceClaim,
    DeviceRequest,
    Request,
    SameAttribute,
)
from app.model.ids import PodUid
from app.wire import quantity
from app.wire.errors import Bytes, Reader, joined
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson
from app.wire.objects.selectors import NodeSelectorJson, node_terms

ENTRY: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim that was made of a template: the entry of the pod's claims it is for."""
_EVERY: Final = "All"


class CelJson(Struct, gc=False):
    """A CEL expression."""

    expression: str = ""


class SelectorJson(Struct, gc=False):
    """What a device has to satisfy."""

    cel: CelJson | None = None


class _CapacityJson(Struct, gc=False):
    requests: quantity.QuantityMap | None = None


class _ExactJson(Struct, rename="camel", gc=False):
    """``exactly``, or an entry of ``firstAvailable``."""

    device_class_name: str = ""
    name: str = ""
    allocation_mode: str | None = None
    count: int | None = None
    selectors: list[SelectorJson] | None = None
    capacity: _CapacityJson | None = None
    admin_access: bool | None = None


class _RequestJson(Struct, rename="camel", gc=False):
    name: str = ""
    exactly: _ExactJson | None = None
    first_available: list[_ExactJson] | None = None


class _ConstraintJson(Struct, rename="camel", gc=False):
    requests: list[str] | None = None
    match_attribute: str | None = None


class _DevicesJson(Struct, gc=False):
    requests: list[_RequestJson] | None = None
    constraints: list[_ConstraintJson] | None = None


class _SpecJson(Struct, gc=False):
    devices: _DevicesJson | None = None


class _ResultJson(Struct, rename="camel", gc=False):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    share: str | None = field(default=None, name="shareID")
    admin_access: bool | None = None
    consumed_capacity: quantity.QuantityMap | None = None


class _AllocatedJson(Struct, gc=False):
    results: list[_ResultJson] | None = None


class _AllocationJson(Struct, rename="camel", gc=False):
    devices: _AllocatedJson | None = None
    node_selector: NodeSelectorJson | None = None


class _UserJson(Struct, gc=False):
    resource: str = ""
    uid: str = ""


class _StatusJson(Struct, rename="camel", gc=False):
    allocation: _AllocationJson | None = None
    reserved_for: list[_UserJson] | None = None


class _ClaimJson(Struct, gc=False):
    metadata: MetaJson
    spec: _SpecJson | None = None
    status: _StatusJson | None = None


class _TemplateSpecJson(Struct, gc=False):
    spec: _SpecJson | None = None


class _TemplateJson(Struct, gc=False):
    metadata: MetaJson
    spec: _TemplateSpecJson | None = None


_read_claim: Reader[_ClaimJson] = Reader(_ClaimJson)
_read_template: Reader[_TemplateJson] = Reader(_TemplateJson)
_NO_SPEC = ClaimSpec()


def decode_device_claim(text: Bytes) -> DeviceClaim:
    """A ResourceClaim; raises `DecodeError`."""
    json = _read_claim(text)
    head, status = json.metadata, json.status or _StatusJson()
    owner = meta.owner(head.owner_references)
    return DeviceClaim(
        namespace=head.namespace or "",
        name=meta.named(head),
        uid=meta.identified(head),
        spec=_spec(json.spec, "spec"),
        allocation=_allocation(status.allocation),
        pod=PodUid(owner.uid) if owner is not None and owner.kind == "Pod" else PodUid(""),
        entry=meta.all_annotations(head.annotations).get(ENTRY, ""),
        users=frozenset(
            PodUid(each.uid) for each in status.reserved_for or () if each.resource == "pods"
        ),
        deleting=head.deletion_timestamp is not None,
    )


def decode_claim_template(text: Bytes) -> ClaimTemplate:
    """A ResourceClaimTemplate; raises `DecodeError`."""
    json = _read_template(text)
    head, inner = json.metadata, json.spec.spec if json.spec else None
    return ClaimTemplate(head.namespace or "", meta.named(head), _spec(inner, "spec.spec"))


def cel_of(selectors: list[SelectorJson] | None) -> tuple[str, ...]:
    """The expressions of selectors; one of a kind that is not known is empty."""
    return tuple(each.cel.expression if each.cel else "" for each in selectors or ())


def _spec(json: _SpecJson | None, at: str) -> ClaimSpec:
    devices = json.devices if json is not None else None
    if devices is None:
        return _NO_SPEC
    requests = []
    for i, each in enumerate(devices.requests or ()):
        where = f"{at}.devices.requests[{i}]"
        options = [
            _option(one, f"{where}.firstAvailable[{n}]", name=one.name)
            for n, one in enumerate(each.first_available or ())
        ]
        if each.exactly is not None:
            options = [_option(each.exactly, f"{where}.exactly", name="")]
        requests.append(Request(each.name, tuple(options), prioritized=each.exactly is None))
    constraints = [
        SameAttribute(each.match_attribute, tuple(each.requests or ()))
        for each in devices.constraints or ()
        if each.match_attribute
    ]
    return ClaimSpec(tuple(requests), tuple(constraints))


def _option(json: _ExactJson, at: str, *, name: str) -> DeviceRequest:
    capacity = json.capacity.requests if json.capacity is not None else None
    return DeviceRequest(
        device_class=json.device_class_name,
        name=name,
        count=_count(json),
        every=json.allocation_mode == _EVERY,
        selectors=cel_of(json.selectors),
        capacity=_capacity(capacity, f"{at}.capacity.requests"),
        admin=bool(json.admin_access),
    )


def _count(json: _ExactJson) -> int:
    """How many devices are asked for; the API server fills in one."""
    return max(1 if json.count is None else json.count, 0)


def _capacity(values: quantity.QuantityMap | None, at: str) -> Amounts:
    return quantity.read_amounts(values, at, most=LARGEST_POD)


def _allocation(json: _AllocationJson | None) -> Allocation | None:
    if json is None:
        return None
    results = json.devices.results if json.devices is not None else None
    at = "status.allocation"
    devices = tuple(
        Allotted(
            request=each.request,
            driver=each.driver,
            pool=each.pool,
            device=each.device,
            consumed=_capacity(
                each.consumed_capacity,
                joined(at, f"devices.results[{i}].consumedCapacity"),
            ),
            shared=bool(each.share),
            admin=bool(each.admin_access),
        )
        for i, each in enumerate(results or ())
    )
    return Allocation(devices, node_terms(json.node_selector, f"{at}.nodeSelector"))
