"""Claims of devices, as tests say them."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.cache.nodes.device_pools import DevicePools
from app.model.amounts import Amounts
from app.model.device_claims import (
    Allocation,
    Allotted,
    ClaimSpec,
    ClaimTemplate,
    DeviceClaim,
    DeviceRequest,
    Request,
    expressions_of,
)
from app.model.device_slices import ClaimedDevices, DeviceId, DeviceSlice, PoolDevice, Reach
from app.model.ids import NodeName
from app.model.shape import NodeTerm, Operator, PodClaim, PodClaims, PodShape, Requirement
from tests.builders import make_shape


def asks(count: int = 1, of: str = "gpu", **fields: Any) -> ClaimSpec:
    """A claim of so many devices of a class."""
    return ClaimSpec((Request("r", (DeviceRequest(of, count=count, **fields),)),))


def template(name: str, spec: ClaimSpec) -> ClaimTemplate:
    return ClaimTemplate("default", name, spec)


def claim(name: str, spec: ClaimSpec, **fields: Any) -> DeviceClaim:
    return DeviceClaim("default", name, f"uid-{name}", spec, **fields)


def on_node(*devices: str, node: str, consumed: Amounts = (), **fields: Any) -> Allocation:
    """Devices of the pool that is called as its node."""
    there = Requirement("metadata.name", Operator.IN, (node,))
    each = (
        Allotted("r", "gpu.example.com", NodeName(node), device, consumed=consumed, **fields)
        for device in devices
    )
    return Allocation(tuple(each), (NodeTerm(fields=(there,)),))


def claiming(*claims: str, of: str = "", cpu: int = 1000, **fields: Any) -> PodShape:
    """The shape of pods that name these claims, and one of a template for each pod."""
    each = [PodClaim(f"c{number}", claim=name) for number, name in enumerate(claims)]
    if of:
        each.append(PodClaim("own", template=of))
    return make_shape(cpu=cpu, claims=PodClaims("default", tuple(each)), **fields)


def device(name: str, *, node: str = "n", **fields: Any) -> PoolDevice:
    """A device of the pool that is called as its node, for that node."""
    reach = fields.pop("reach", Reach(node=NodeName(node)))
    return PoolDevice(DeviceId("gpu.example.com", node or "wide", name), reach, **fields)


def pool(*names: str, node: str, **fields: Any) -> DeviceSlice:
    """The only slice of a node's pool."""
    devices = tuple(device(name, node=node, **fields) for name in names)
    return DeviceSlice(f"slice-{node}", "gpu.example.com", node, 1, 1, devices)


def claimed(
    *pools: DeviceSlice,
    classes: Mapping[str, Sequence[str]] | None = None,
    claims: Sequence[DeviceClaim] = (),
    templates: Sequence[ClaimTemplate] = (),
    **fields: Any,
) -> ClaimedDevices:
    """What is known of devices; the class ``gpu`` has all of them unless told."""
    known = DevicePools()
    for each in pools:
        known.set_slice(each)
    specs = [*(each.spec for each in claims), *(each.spec for each in templates)]
    of_class = {name: tuple(each) for name, each in (classes or {"gpu": ()}).items()}
    expressions = {text for each in of_class.values() for text in each}
    expressions.update(text for spec in specs for text in expressions_of(spec))
    return ClaimedDevices(
        devices=known.devices(),
        incomplete=known.incomplete,
        satisfying=known.satisfying(expressions),
        classes=of_class,
        claims={each.key: each for each in claims},
        templates={each.key: each for each in templates},
        **fields,
    )
