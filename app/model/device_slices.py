"""The devices that drivers offer (ResourceSlices), and what a scheduler has to know of claims."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from app.model.amounts import Amounts
from app.model.device_claims import ClaimTemplate, DeviceClaim
from app.model.ids import NO_NODE, NodeName, PodUid
from app.model.shape import NodeTerm, PodClaims


class Version(NamedTuple):
    """A semantic version; one without ``pre`` is later than those with one."""

    major: int
    minor: int
    patch: int
    pre: str = ""


Attribute = bool | int | str | Version


class DeviceId(NamedTuple):
    """What tells a device from all others."""

    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class Capacity:
    """A capacity of a device, and which parts of it a claim may take.

    A claim that asks for none takes ``default`` (None: all of it). Others take one of ``values``,
    or the next of ``least``, ``least + step``, … up to ``most``; with neither what they ask for.
    """

    amount: int
    default: int | None = None
    values: tuple[int, ...] = ()
    least: int | None = None
    most: int | None = None
    step: int | None = None

    def taken(self, asked: int | None) -> int | None:
        """What a claim that asks for so much takes; None: the device does not give such parts."""
        if asked is None:
            return self.amount if self.default is None else self.default
        if self.values:
            return min((each for each in self.values if each >= asked), default=None)
        if self.least is None:
            return asked
        part = max(asked, self.least)
        if self.step:
            part = self.least + -(-(part - self.least) // self.step) * self.step
        return None if self.most is not None and part > self.most else part


@dataclass(frozen=True, slots=True)
class Reach:
    """The nodes that can use a device: one, those of ``terms``, or every one."""

    node: NodeName = NO_NODE
    terms: tuple[NodeTerm, ...] | None = None
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class PoolDevice:
    """A device of a pool; of names of attributes and capacities the driver's domain is left out.

    ``shared``: claims may take parts of its capacities, else one claim has all of it.
    """

    id: DeviceId
    reach: Reach
    attributes: tuple[tuple[str, Attribute], ...] = ()
    capacity: tuple[tuple[str, Capacity], ...] = ()
    shared: bool = False
    opaque: bool = False
    """Whether some attributes are such that only kube-scheduler can read them."""


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """A ResourceSlice: some devices of a pool, of whose ``generation`` there are ``slices``."""

    name: str
    driver: str
    pool: str
    generation: int
    slices: int
    devices: tuple[PoolDevice, ...]


class PodWithClaims(NamedTuple):
    """A pod with a place whose claims have no devices yet, or not all of them."""

    uid: PodUid
    node: NodeName
    claims: PodClaims


@dataclass(frozen=True, slots=True, eq=False)
class ClaimedDevices:
    """What is known of devices and claims at one moment.

    ``satisfying`` has the positions in ``devices`` for each CEL expression of classes and claims;
    an expression that only kube-scheduler understands is satisfied by all.
    """

    devices: tuple[PoolDevice, ...] = ()
    incomplete: frozenset[tuple[str, str]] = frozenset()
    """Drivers and pools whose slices are not all there."""
    satisfying: Mapping[str, frozenset[int]] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The CEL expressions of each DeviceClass."""
    claims: Mapping[str, DeviceClaim] = field(default_factory=dict)
    templates: Mapping[str, ClaimTemplate] = field(default_factory=dict)
    made: Mapping[tuple[PodUid, str], str] = field(default_factory=dict)
    """Pod and entry -> the key of the claim that was made of a template."""
    users: Mapping[str, frozenset[PodUid]] = field(default_factory=dict)
    """The pods with a place that have a claim, by the key of the claim."""
    reserved: tuple[PodWithClaims, ...] = ()
    leaving: frozenset[PodUid] = frozenset()
    """Pods with claims that terminate."""

    def selectors(self, device_class: str) -> tuple[str, ...] | None:
        """The expressions of a class; None: there is no such class."""
        return self.classes.get(device_class)


def unqualified(name: str, driver: str) -> str:
    """``name`` without the domain of its driver, which is meant where none is said."""
    return name.removeprefix(f"{driver}/")


def by_name(amounts: Amounts, driver: str) -> dict[str, int]:
    """What is asked for of each capacity, by its name without the driver's domain."""
    return {unqualified(name, driver): amount for name, amount in amounts}
