"""Small kinds: priorities, namespaces, quotas, budgets, device classes, leases."""

from typing import Any, Final

from msgspec import Struct

from app.model.disruption import DisruptionBudget
from app.model.lease import Lease
from app.model.node import DeviceClass
from app.model.workload import Namespace, PriorityClass, Quota
from app.wire import quantity, times
from app.wire.errors import Bytes, Reader
from app.wire.objects import meta
from app.wire.objects.device_claims import SelectorJson, cel_of
from app.wire.objects.meta import MetaJson
from app.wire.objects.selectors import LabelSelectorJson, label_selector
from app.wire.times import Moment

OF_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"


class _PriorityClassJson(Struct, rename="camel", gc=False):
    metadata: MetaJson
    value: int | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None


class _NamespaceJson(Struct, gc=False):
    metadata: MetaJson


class _QuotaSpecJson(Struct, rename="camel", gc=False):
    hard: quantity.QuantityMap | None = None
    scopes: list[str] | None = None
    scope_selector: dict[str, Any] | None = None


class _QuotaStatusJson(Struct, gc=False):
    hard: quantity.QuantityMap | None = None
    used: quantity.QuantityMap | None = None


class _QuotaJson(Struct, gc=False):
    metadata: MetaJson
    spec: _QuotaSpecJson | None = None
    status: _QuotaStatusJson | None = None


class _BudgetSpecJson(Struct, gc=False):
    selector: LabelSelectorJson | None = None


class _BudgetStatusJson(Struct, rename="camel", gc=False):
    disruptions_allowed: int | None = None
    disrupted_pods: dict[str, str] | None = None


class _BudgetJson(Struct, gc=False):
    metadata: MetaJson
    spec: _BudgetSpecJson | None = None
    status: _BudgetStatusJson | None = None


class _DeviceClassSpecJson(Struct, rename="camel", gc=False):
    extended_resource_name: str | None = None
    selectors: list[SelectorJson] | None = None


class _DeviceClassJson(Struct, gc=False):
    metadata: MetaJson
    spec: _DeviceClassSpecJson | None = None


class _LeaseSpecJson(Struct, rename="camel", gc=False):
    holder_identity: str | None = None
    renew_time: Moment | None = None
    lease_duration_seconds: int | None = None


class _LeaseJson(Struct, gc=False):
    metadata: MetaJson
    spec: _LeaseSpecJson | None = None


_read_class: Reader[_PriorityClassJson] = Reader(_PriorityClassJson)
_read_namespace: Reader[_NamespaceJson] = Reader(_NamespaceJson)
_read_quota: Reader[_QuotaJson] = Reader(_QuotaJson)
_read_budget: Reader[_BudgetJson] = Reader(_BudgetJson)
_read_devices: Reader[_DeviceClassJson] = Reader(_DeviceClassJson)
_read_lease: Reader[_LeaseJson] = Reader(_LeaseJson)


def decode_priority_class(text: Bytes) -> PriorityClass:
    """A PriorityClass; raises `DecodeError`."""
    json = _read_class(text)
    return PriorityClass(
        name=meta.named(json.metadata),
        value=json.value or 0,
        is_default=bool(json.global_default),
        preempts=json.preemption_policy != "Never",
    )


def decode_namespace(text: Bytes) -> Namespace:
    """A namespace; raises `DecodeError`."""
    head = _read_namespace(text).metadata
    return Namespace(
        name=meta.named(head),
        labels=meta.labels(head.labels),
        annotations=meta.annotations(head.annotations),
    )


def decode_quota(text: Bytes) -> Quota:
    """A ResourceQuota; raises `DecodeError`.

    In force is what the status repeats of the spec; until it does, nothing has been counted and the
    spec stands.
    """
    json = _read_quota(text)
    spec, status = json.spec or _QuotaSpecJson(), json.status or _QuotaStatusJson()
    at, hard = ("status.hard", status.hard) if status.hard else ("spec.hard", spec.hard)
    return Quota(
        namespace=json.metadata.namespace or "",
        name=meta.named(json.metadata),
        hard=quantity.read_amounts(hard, at),
        used=quantity.read_amounts(status.used, "status.used"),
        scoped=bool(spec.scopes) or spec.scope_selector is not None,
    )


def decode_budget(text: Bytes) -> DisruptionBudget:
    """A PodDisruptionBudget; raises `DecodeError`. Without a status it allows nothing yet."""
    json = _read_budget(text)
    spec, status = json.spec or _BudgetSpecJson(), json.status or _BudgetStatusJson()
    return DisruptionBudget(
        namespace=json.metadata.namespace or "",
        name=meta.named(json.metadata),
        selector=label_selector(spec.selector, "spec.selector"),
        allowed=status.disruptions_allowed or 0,
        disrupted=frozenset(status.disrupted_pods or ()),
    )


def decode_device_class(text: Bytes) -> DeviceClass:
    """A DeviceClass; raises `DecodeError`. Its own name always is one of a resource too."""
    json = _read_devices(text)
    name = meta.named(json.metadata)
    spec = json.spec or _DeviceClassSpecJson()
    resources = {f"{OF_DEVICE_CLASS}{name}", *filter(None, [spec.extended_resource_name])}
    return DeviceClass(name, frozenset(resources), cel_of(spec.selectors))


def decode_lease(text: Bytes) -> Lease:
    """A Lease; raises `DecodeError`."""
    json = _read_lease(text)
    spec = json.spec or _LeaseSpecJson()
    return Lease(
        namespace=json.metadata.namespace or "",
        name=meta.named(json.metadata),
        holder=spec.holder_identity or "",
        renew=times.epoch(spec.renew_time),
        duration=spec.lease_duration_seconds or 0,
    )
