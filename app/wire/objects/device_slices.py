"""ResourceSlices (``resource.k8s.io/v1``): the devices that drivers offer."""

from msgspec import Struct, field

from app.model.device_slices import (
    Attribute,
    Capacity,
    DeviceId,
    DeviceSlice,
    PoolDevice,
    Reach,
    unqualified,
)
from app.model.ids import NodeName
from app.wire import quantity
from app.wire.device_selectors import parse_version
from app.wire.errors import Bytes, DecodeError, Reader, joined
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson
from app.wire.objects.selectors import NodeSelectorJson, node_terms
from app.wire.quantity import Quantity


class _AttributeJson(Struct, gc=False):
    number: int | None = field(default=None, name="int")
    flag: bool | None = field(default=None, name="bool")
    text: str | None = field(default=None, name="string")
    version: str | None = None


class _RangeJson(Struct, gc=False):
    least: Quantity | None = field(default=None, name="min")
    most: Quantity | None = field(default=None, name="max")
    step: Quantity | None = None


class _PolicyJson(Struct, rename="camel", gc=False):
    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: _RangeJson | None = None


class _CapacityJson(Struct, rename="camel", gc=False):
    value: Quantity = 0
    request_policy: _PolicyJson | None = None


class _ReachJson(Struct, rename="camel", gc=False):
    node_name: str | None = None
    node_selector: NodeSelectorJson | None = None
    all_nodes: bool | None = None


class _DeviceJson(_ReachJson, rename="camel", gc=False):
    name: str = ""
    attributes: dict[str, _AttributeJson] | None = None
    capacity: dict[str, _CapacityJson] | None = None
    allow_multiple_allocations: bool | None = None


class _PoolJson(Struct, rename="camel", gc=False):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class _SpecJson(_ReachJson, rename="camel", gc=False):
    driver: str = ""
    pool: _PoolJson | None = None
    per_device_node_selection: bool | None = None
    devices: list[_DeviceJson] | None = None


class _SliceJson(Struct, gc=False):
    metadata: MetaJson
    spec: _SpecJson | None = None


_read: Reader[_SliceJson] = Reader(_SliceJson)


def decode_device_slice(text: Bytes) -> DeviceSlice:
    """A ResourceSlice; raises `DecodeError`."""
    json = _read(text)
    spec = json.spec or _SpecJson()
    pool = spec.pool or _PoolJson()
    devices = []
    for i, each in enumerate(spec.devices or ()):
        at = f"spec.devices[{i}]"
        reach = _reach(each, at) if spec.per_device_node_selection else _reach(spec, "spec")
        devices.append(_device(each, DeviceId(spec.driver, pool.name, each.name), reach, at))
    return DeviceSlice(
        name=meta.named(json.metadata),
        driver=spec.driver,
        pool=pool.name,
        generation=pool.generation,
        slices=pool.resource_slice_count,
        devices=tuple(devices),
    )


def _reach(json: _ReachJson, at: str) -> Reach:
    return Reach(
        node=NodeName(json.node_name or ""),
        terms=node_terms(json.node_selector, f"{at}.nodeSelector"),
        everywhere=bool(json.all_nodes),
    )


def _device(json: _DeviceJson, id_: DeviceId, reach: Reach, at: str) -> PoolDevice:
    attributes, opaque = [], False
    for name, each in (json.attributes or {}).items():
        value = _attribute(each)
        if value is None:
            opaque = True
        else:
            attributes.append((unqualified(name, id_.driver), value))
    capacity = {
        unqualified(name, id_.driver): _capacity(name, each, f"{at}.capacity.{name}")
        for name, each in (json.capacity or {}).items()
    }
    return PoolDevice(
        id=id_,
        reach=reach,
        attributes=tuple(attributes),
        capacity=tuple(capacity.items()),
        shared=bool(json.allow_multiple_allocations),
        opaque=opaque,
    )


def _attribute(json: _AttributeJson) -> Attribute | None:
    """None: it is of a kind, or has a value, that only kube-scheduler reads."""
    if json.version is not None:
        return parse_version(json.version)
    for value in (json.flag, json.number, json.text):
        if value is not None:
            return value
    return None


def _capacity(name: str, json: _CapacityJson, at: str) -> Capacity:
    dimension = name.rpartition("/")[2]

    def read(value: Quantity | None, where: str) -> int | None:
        try:
            return None if value is None else quantity.amount(dimension, value)
        except quantity.QuantityError as error:
            raise DecodeError(joined(at, where), str(error)) from error

    policy = json.request_policy or _PolicyJson()
    allowed = policy.valid_range or _RangeJson()
    values = (read(each, "requestPolicy.validValues") for each in policy.valid_values or ())
    return Capacity(
        amount=read(json.value, "value") or 0,
        default=read(policy.default, "requestPolicy.default"),
        values=tuple(each for each in values if each is not None),
        least=read(allowed.least, "requestPolicy.validRange.min"),
        most=read(allowed.most, "requestPolicy.validRange.max"),
        step=read(allowed.step, "requestPolicy.validRange.step"),
    )
