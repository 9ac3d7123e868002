"""Numatopologies: what a node's agent says of NUMA nodes and cpus, and decisions about them."""

import json
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from app.model.ids import NodeName
from app.model.numa import STATIC, Cpus, NumaLayout, NumaPolicy, NumaTopology
from app.wire import quantity
from app.wire.errors import Bytes, DecodeError, Reader, joined
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson

_MOST_NUMA_NODES = 8
"""As in kubelets: beyond that the sets of NUMA nodes are too many to look at."""
_MOST_CPUS = 1 << 16


class _ResourceJson(Struct, gc=False):
    allocatable: str | None = None


class _CpuJson(Struct, gc=False):
    numa: int = 0
    socket: int = 0
    core: int = 0


class _ContainerJson(Struct, gc=False):
    allocations: dict[str, str] | None = None


class _PodJson(Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    container_allocations: list[_ContainerJson] | None = None


class _SpecJson(Struct, gc=False):
    policies: dict[str, str] | None = None
    reserved: quantity.QuantityMap | None = field(default=None, name="resReserved")
    resources: dict[str, _ResourceJson] | None = field(default=None, name="numares")
    cpus: dict[str, _CpuJson] | None = field(default=None, name="cpuDetail")
    pods: list[_PodJson] | None = field(default=None, name="podAllocations")


class _NumatopologyJson(Struct, gc=False):
    metadata: MetaJson
    spec: _SpecJson | None = None


class _DecisionJson(Struct, gc=False):
    numa: dict[str, quantity.QuantityMap] | None = None


_read: Reader[_NumatopologyJson] = Reader(_NumatopologyJson)
_read_decision: Reader[_DecisionJson] = Reader(_DecisionJson)
_NO_SPEC = _SpecJson()


def decode_numatopology(text: Bytes) -> NumaTopology:
    """A Numatopology; raises `DecodeError`."""
    object_ = _read(text)
    spec = object_.spec or _NO_SPEC
    places = _places(spec.cpus or {})
    ids = tuple(sorted({place.numa for place in places.values()}))
    if len(ids) > _MOST_NUMA_NODES:
        raise DecodeError(
            "spec.cpuDetail", f"has {len(ids)} NUMA nodes, {_MOST_NUMA_NODES} at most"
        )
    reserved = _reserved(places, spec.reserved)

    def cpus(numbers: Iterable[int]) -> Cpus:
        known = [places[number].numa for number in numbers if number in places]
        return tuple(known.count(id_) for id_ in ids)

    policies = spec.policies or {}
    given = (spec.resources or {}).get("cpu") or _ResourceJson()
    free = _cpu_set(given.allocatable or "", "spec.numares.cpu.allocatable")
    return NumaTopology(
        name=NodeName(meta.named(object_.metadata)),
        layout=NumaLayout(
            policy=_policy(policies.get("TopologyManagerPolicy", "")),
            static=policies.get("CPUManagerPolicy") == STATIC,
            ids=ids,
            sizes=cpus(places.keys() - reserved),
        ),
        free=cpus(free - reserved),
        pods=_pods(spec.pods or (), cpus),
    )


def numa_policy(text: str) -> NumaPolicy:
    """The policy that a pod asks for; one that does not exist is none."""
    try:
        return NumaPolicy(text)
    except ValueError:
        return NumaPolicy.UNSET


def decision_text(layout: NumaLayout, cpus: Cpus) -> str:
    """The annotation: ``{"numa":{"0":{"cpu":"8"}}}``."""
    taken = {
        str(id_): {"cpu": str(count)} for id_, count in zip(layout.ids, cpus, strict=True) if count
    }
    return json.dumps({"numa": taken}, separators=(",", ":"))


def read_decision(text: str) -> Mapping[int, int] | None:
    """NUMA node -> cpus of that annotation; None: it cannot be read, or cannot be true."""
    try:
        numa = _read_decision(text.encode()).numa or {}
        cpus = {
            int(id_): quantity.amount("cpu", amounts["cpu"]) // 1000
            for id_, amounts in numa.items()
            if "cpu" in amounts
        }
    except ValueError:
        return None
    return cpus if all(0 <= count <= _MOST_CPUS for count in cpus.values()) else None


def _policy(text: str) -> NumaPolicy:
    try:
        return NumaPolicy(text)
    except ValueError as error:
        raise DecodeError(
            "spec.policies.TopologyManagerPolicy", f'"{text}" is not a policy'
        ) from error


def _places(cpus: Mapping[str, _CpuJson]) -> dict[int, _CpuJson]:
    """By number; raises `DecodeError`."""
    found = {}
    for text, place in cpus.items():
        if not (text.isascii() and text.isdigit()):
            raise DecodeError(joined("spec.cpuDetail", text), "is not the number of a cpu")
        found[int(text)] = place
    return found


def _reserved(
    places: Mapping[int, _CpuJson], amounts: quantity.QuantityMap | None
) -> frozenset[int]:
    """The cpus that are kept for the system: the first cores, rounded up to whole cpus."""
    kept = quantity.read(amounts, "spec.resReserved").get("cpu", 0)
    in_order = sorted(places, key=lambda at: (places[at].socket, places[at].core, at))
    return frozenset(in_order[: -(-max(kept, 0) // 1000)])


def _pods(pods: Iterable[_PodJson], cpus: Callable[[Iterable[int]], Cpus]) -> dict[str, Cpus]:
    found: dict[str, Cpus] = {}
    for index, pod in enumerate(pods):
        numbers: set[int] = set()
        for container in pod.container_allocations or ():
            given = (container.allocations or {}).get("cpu", "")
            numbers |= _cpu_set(given, f"spec.podAllocations[{index}]")
        taken = cpus(numbers)
        if pod.uid:
            found[pod.uid] = taken
        if pod.name:
            found[f"{pod.namespace}/{pod.name}"] = taken
    return found


def _cpu_set(text: str, at: str) -> frozenset[int]:
    """``0-3,8`` as numbers; raises `DecodeError`."""
    found: set[int] = set()
    for part in filter(None, (each.strip() for each in text.split(","))):
        first, _, last = part.partition("-")
        ends = (first, last or first)
        if not all(end.isascii() and end.isdigit() and len(end) < 6 for end in ends):
            raise DecodeError(at, f'"{text}" is not a set of cpus such as 0-3,8')
        found.update(range(int(ends[0]), min(int(ends[1]), _MOST_CPUS) + 1))
    return frozenset(found)
