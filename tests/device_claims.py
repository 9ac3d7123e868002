"""Claims of devices, as tests say them."""

from typing import Any

from app.model.amounts import Amounts
from app.model.device_claims import (
    Allocation,
    Allotted,
    ClaimSpec,
    ClaimTemplate,
    DeviceClaim,
    DeviceRequest,
    Request,
)
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
