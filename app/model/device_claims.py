"""Claims of devices (``resource.k8s.io``): what pods claim, what claims ask for, what they have.

kube-scheduler allocates the devices. Pumice counts what queues hold of each class of devices, under
the names that Volcano gives these resources: ``deviceclass/<class>`` for the number of devices, and
``<dimension>.deviceclass/<class>`` for what is taken of a capacity that several claims share.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.model.amounts import DEVICE_CLASS, LARGEST_POD, OF_CLASS, Amounts, amounts
from app.model.ids import NO_POD, PodUid
from app.model.shape import NodeTerm

MOST_DEVICES: Final = 32
"""What one claim can be allocated; a request for all devices of a class counts as so many."""


@dataclass(frozen=True, slots=True)
class CountedClaims:
    """What of claims counts as room of queues: devices by class, and ``amounts`` of capacities.

    Without ``devices`` neither does.
    """

    devices: bool = True
    amounts: bool = True

    def of(self, request: Amounts) -> Amounts:
        """What counts of what claims ask for or have."""
        if self.devices and self.amounts:
            return request
        return tuple(each for each in request if self.devices and OF_CLASS not in each[0])


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """Devices of one class. ``count`` does not matter where all of them are asked for.

    ``selectors`` are CEL expressions that each device has to satisfy, ``capacity`` is what is taken
    of each device by dimension.
    """

    device_class: str
    name: str = ""
    count: int = 1
    every: bool = False
    selectors: tuple[str, ...] = ()
    capacity: Amounts = ()
    admin: bool = False
    """Whether the devices are only looked at: others may have them at the same time."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a claim; the first of ``options`` that can be had is what it gets."""

    name: str
    options: tuple[DeviceRequest, ...]
    prioritized: bool = False
    """Whether the request is a list of alternatives (``firstAvailable``), be it of one."""

    def option(self, path: str) -> DeviceRequest | None:
        """The option that an allocation calls ``path``: ``request`` or ``request/option``."""
        of, _, name = path.partition("/")
        if of != self.name:
            return None
        return next((each for each in self.options if each.name == name), None)


@dataclass(frozen=True, slots=True)
class SameAttribute:
    """Devices of these requests (of all, if empty) share the value of an attribute."""

    attribute: str
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """What a claim asks for."""

    requests: tuple[Request, ...] = ()
    constraints: tuple[SameAttribute, ...] = ()


@dataclass(frozen=True, slots=True)
class Allotted:
    """A device that was allocated to a request of a claim, or what was of its capacity."""

    request: str
    driver: str
    pool: str
    device: str
    consumed: Amounts = ()
    shared: bool = False
    """Whether only ``consumed`` is taken of it."""
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a claim has, and on which nodes it can be used (None: on all)."""

    devices: tuple[Allotted, ...] = ()
    node_terms: tuple[NodeTerm, ...] | None = None


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A ResourceClaim. ``pod`` and ``entry`` name the pod, and its claim, that it was made for."""

    namespace: str
    name: str
    uid: str
    spec: ClaimSpec
    allocation: Allocation | None = None
    pod: PodUid = NO_POD
    entry: str = ""
    users: frozenset[PodUid] = frozenset()
    """The pods that may use it (``status.reservedFor``)."""
    deleting: bool = False

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """A ResourceClaimTemplate."""

    namespace: str
    name: str
    spec: ClaimSpec

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def expressions_of(spec: ClaimSpec) -> list[str]:
    """The CEL expressions of its requests."""
    options = (option for request in spec.requests for option in request.options)
    return [text for option in options for text in option.selectors]


def amounts_of(spec: ClaimSpec, allocation: Allocation | None) -> Amounts:
    """What a queue is charged for a claim: what it has, else the most that it may get.

    Of alternatives that is, for each class, the largest; so the API server's quotas have it.
    """
    found: Counter[str] = Counter()
    for request in spec.requests:
        most: Counter[str] = Counter()
        for option in request.options:
            most |= Counter(dict(_of_option(option)))
        if allocation is not None:
            most = _of_devices(request, allocation)
        found.update(most)
    return amounts({name: min(amount, LARGEST_POD) for name, amount in found.items()})


def _of_option(option: DeviceRequest) -> Iterator[tuple[str, int]]:
    count = MOST_DEVICES if option.every else option.count
    yield f"{DEVICE_CLASS}{option.device_class}", count
    for dimension, amount in option.capacity:
        yield f"{dimension}{OF_CLASS}{option.device_class}", amount * count


def _of_devices(request: Request, allocation: Allocation) -> Counter[str]:
    found: Counter[str] = Counter()
    for device in allocation.devices:
        option = request.option(device.request)
        if option is not None:
            found[f"{DEVICE_CLASS}{option.device_class}"] += 1
            asked = dict(option.capacity) | dict(device.consumed)
            for dimension, amount in asked.items():
                found[f"{dimension}{OF_CLASS}{option.device_class}"] += amount
    return found
