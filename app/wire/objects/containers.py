"""What the containers of a pod ask of its node: resources, host ports, images.

The request of a pod (volcano.md §3.1, the same formula as the stock scheduler's): app containers
run together, after the ordinary init containers have run one by one; restartable init containers
(sidecars) start in their turn and stay. So it is the larger of *all that stays* and *the largest
moment of the start*; requests of the pod as a whole (KEP-2837) take the place of that sum, and the
overhead of its runtime comes on top.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Raw, Struct, field

from app.model.amounts import CPU, LARGEST_POD, MEMORY, PODS, Amounts, amounts
from app.model.device_families import CHOOSING
from app.model.devices import ContainerLimits, DeviceAsk
from app.model.npu_cores import LABELS
from app.model.numa import NumaNeed, NumaPolicy
from app.model.shape import HostPort, QosClass
from app.wire.errors import Reader
from app.wire.objects.asking import limited, listed, requested
from app.wire.objects.meta import ABSENT

MARKER: Final = "pumice.sh/gang"
"""The resource by which a shared scheduler knows our pods; no node has it, none needs to."""

WHOLE_AT: Final = "spec.resources"
_OVERHEAD_AT: Final = "spec.overhead"
_NOTHING_SAID: Final = (b"", b"null")
_ANY_ADDRESS: Final = "0.0.0.0"

Choosing = tuple[tuple[str, str], ...]
"""Annotations and labels by which a pod chooses devices, sorted."""

Charged = Callable[[dict[str, int], str], dict[str, int]]
"""What a pod is charged for what its spec asks for at a path (``spec.containers[0].resources``)."""


class ContainerJson(Struct, rename="camel", gc=False):
    """A container or init container."""

    name: str | None = None
    image: str | None = None
    resources: Raw = ABSENT
    ports: Raw = ABSENT
    restart_policy: str | None = None

    @property
    def stays(self) -> bool:
        """Whether an init container runs on beside the app containers."""
        return self.restart_policy == "Always"


class _PortJson(Struct, rename="camel", gc=False):
    container_port: int = 0
    host_port: int | None = None
    host_ip: str | None = field(default=None, name="hostIP")
    protocol: str | None = None


_read_ports: Reader[list[_PortJson] | None] = Reader(list[_PortJson] | None)


class Containers(NamedTuple):
    """All containers of a pod spec."""

    app: list[ContainerJson]
    init: list[ContainerJson]

    def each(self) -> Iterator[tuple[str, ContainerJson]]:
        """All containers with their path, init containers first."""
        for i, container in enumerate(self.init):
            yield f"spec.initContainers[{i}]", container
        for i, container in enumerate(self.app):
            yield f"spec.containers[{i}]", container


def as_asked(asked: dict[str, int], _at: str) -> dict[str, int]:
    """The request itself, as of all pods that are not resized."""
    return asked


def requests(
    containers: Containers, *, whole: Raw, overhead: Raw, charged: Charged = as_asked
) -> Amounts:
    """What the pod takes on a node; ``whole`` is ``spec.resources``."""
    total = _started(containers, lambda raw, at: charged(requested(raw, at), at))
    asked = requested(whole, WHOLE_AT, beside=total)
    held = charged(asked, WHOLE_AT)
    total.update({name: held.get(name, 0) for name in asked})
    _add(total, listed(overhead, _OVERHEAD_AT))
    found = {name: min(value, LARGEST_POD) for name, value in total.items() if value}
    found.pop(MARKER, None)
    return amounts({**found, PODS: 1})


def limits(containers: Containers, *, whole: Raw, overhead: Raw) -> Amounts:
    """What the pod may take, as a ResourceQuota counts it: nothing of what it has no limit for."""
    total = _started(containers, limited)
    total.update(limited(whole, WHOLE_AT))
    more = listed(overhead, _OVERHEAD_AT)
    _add(total, {name: value for name, value in more.items() if name in total})
    return amounts({name: min(value, LARGEST_POD) for name, value in total.items() if value})


def burst(requests: Amounts, limits: Amounts) -> Amounts:
    """The cpu and memory that a pod may use beyond its requests."""
    asked = dict(requests)
    more = {name: most - asked.get(name, 0) for name, most in limits if name in {CPU, MEMORY}}
    return amounts({name: value for name, value in more.items() if value > 0})


def qos_class(containers: Containers, *, whole: Raw) -> QosClass:
    """The class of the pod; requests of the pod as a whole take the place of all others."""
    parts = [(WHOLE_AT, whole)] if bytes(whole) not in _NOTHING_SAID else _resources(containers)
    asked = [requested(text, at) for at, text in parts]
    most = [limited(text, at) for at, text in parts]
    if not any(each.get(name) for each in (*asked, *most) for name in (CPU, MEMORY)):
        return QosClass.BEST_EFFORT
    for one, limit in zip(asked, most, strict=True):
        if any(not limit.get(name) or one[name] != limit[name] for name in (CPU, MEMORY)):
            return QosClass.BURSTABLE
    return QosClass.GUARANTEED


def _resources(containers: Containers) -> list[tuple[str, Raw]]:
    return [(f"{at}.resources", container.resources) for at, container in containers.each()]


def numa_need(containers: Containers, *, whole: Raw, policy: NumaPolicy) -> NumaNeed | None:
    """What a pod of the class Guaranteed needs: the whole cpus of each container that stays.

    None for other pods, and where no container needs whole cpus.
    """
    if bytes(whole) or qos_class(containers, whole=whole) is not QosClass.GUARANTEED:
        return None
    cpus: list[int] = []
    for at, container in containers.each():
        asked = requested(container.resources, f"{at}.resources")
        stays = container.stays or not at.startswith("spec.init")
        cpus.append(asked[CPU] // 1000 if stays and asked[CPU] % 1000 == 0 else 0)
    return NumaNeed(policy, tuple(cpus)) if any(cpus) else None


def choosing(annotations: Mapping[str, str], labels: Mapping[str, str]) -> Choosing:
    """The annotations and labels by which a pod chooses devices."""
    if CHOOSING.isdisjoint(annotations) and LABELS.isdisjoint(labels):
        return ()
    found = [(key, text) for key, text in annotations.items() if key in CHOOSING]
    return tuple(sorted([*found, *((key, text) for key, text in labels.items() if key in LABELS)]))


def device_ask(containers: Containers, choosing: Choosing) -> DeviceAsk | None:
    """The extended resources that containers are limited to; None: there are none."""
    found = []
    for at, container in containers.each():
        limits = limited(container.resources, f"{at}.resources")
        extended = tuple(
            sorted((name, n) for name, n in limits.items() if "/" in name and name != MARKER)
        )
        ends = at.startswith("spec.init") and not container.stays
        if extended:
            found.append(ContainerLimits(extended, init=ends))
    return DeviceAsk(tuple(found), choosing) if found else None


def host_ports(containers: Containers, *, host_network: bool) -> tuple[HostPort, ...]:
    """The ports that the pod takes on its node: on the host's network all container ports."""
    found = set()
    for at, container in containers.each():
        if at.startswith("spec.init") and not container.stays:
            continue
        for port in _ports(container, at):
            number = port.host_port or (port.container_port if host_network else 0)
            if number:
                found.add(HostPort(port.host_ip or _ANY_ADDRESS, port.protocol or "TCP", number))
    return tuple(sorted(found, key=lambda port: (port.port, port.protocol, port.ip)))


def images(containers: Containers) -> tuple[str, ...]:
    """The images of all containers by the name under which nodes list them."""
    return tuple(_tagged(c.image) for _, c in containers.each() if c.image)


def _started(
    containers: Containers, amounts_of: Callable[[Raw, str], dict[str, int]]
) -> dict[str, int]:
    """The larger of what stays and the largest moment of the start, per resource."""
    staying: dict[str, int] = {}
    peak: dict[str, int] = {}
    for i, container in enumerate(containers.init):
        own = amounts_of(container.resources, f"spec.initContainers[{i}].resources")
        if container.stays:
            _add(staying, own)
            own = {}
        for name in own.keys() | staying.keys():
            moment = own.get(name, 0) + staying.get(name, 0)
            peak[name] = max(peak.get(name, 0), moment)
    for i, container in enumerate(containers.app):
        _add(staying, amounts_of(container.resources, f"spec.containers[{i}].resources"))
    return {
        name: max(staying.get(name, 0), peak.get(name, 0)) for name in staying.keys() | peak.keys()
    }


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _ports(container: ContainerJson, at: str) -> list[_PortJson]:
    if not bytes(container.ports):
        return []
    return _read_ports(container.ports, f"{at}.ports") or []


def _tagged(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
