"""NUMA nodes of the simulated machines: their CPU managers, and what their agents say of them.

The CPU manager is static: a pod of the class Guaranteed has its whole cpus to itself, by number.
The topology manager refuses a pod as a kubelet does. A Numatopology says what is free and what
each pod has, as Volcano's resource-exporter writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.core.placement.sockets import Lacking, assign
from app.model.amounts import CPU
from app.model.numa import STATIC, Cpus, NumaNeed
from app.sandbox.nodes import NumaSpec
from app.sandbox.pod_resources import says_for_the_whole
from app.sandbox.pod_status import Verdict, is_sidecar
from app.sandbox.quantities import parse_list
from app.wire.documents import Document, items, name_of, section, uid_of
from app.wire.kinds import NUMA_TOPOLOGIES

Numbers = list[int]
"""Numbers of cpus."""

_NOT_ALIGNED = Verdict(
    "TopologyAffinityError", "Resources cannot be allocated with Topology locality"
)


@dataclass(frozen=True, slots=True)
class _Machine:
    name: str
    uid: str
    numa_of: tuple[int, ...]
    """The NUMA node of each cpu, by the cpu's number."""


class CpuManagers:
    """The cpus of all machines, and the pods that have some to themselves."""

    def __init__(self, spec: NumaSpec) -> None:
        self._spec = spec
        self._machines: dict[str, _Machine] = {}
        self._held: dict[str, dict[str, tuple[Document, dict[str, Numbers]]]] = {}
        self._homes: dict[str, str] = {}
        self._changed: dict[str, None] = {}

    def set_node(self, node: Document) -> None:
        """A machine is there, or has another number of cpus."""
        name, status = name_of(node).name, section(node, "status")
        given = parse_list(status.get("allocatable") or section(status, "capacity"))
        cpus = given.get(CPU, 0) // 1000
        numa_of = tuple(number * self._spec.nodes // cpus for number in range(cpus))
        machine = _Machine(name, uid_of(node), numa_of)
        if self._machines.get(name) != machine:
            self._machines[name] = machine
            self._changed[name] = None

    def drop_node(self, name: str) -> None:
        """The machine is gone, with its pods."""
        self._machines.pop(name, None)
        self._changed.pop(name, None)
        for uid in self._held.pop(name, {}):
            del self._homes[uid]

    def take(self, pod: Document) -> Verdict | None:
        """Give a pod for which there is room its cpus; or why its kubelet refuses it."""
        uid, machine = uid_of(pod), self._machines.get(section(pod, "spec")["nodeName"])
        asked = _whole_cpus(pod)
        if machine is None or uid in self._homes or not any(asked.values()):
            return None
        given: dict[str, Numbers] = {}
        free = self._free(machine)
        for container, cpus in asked.items():
            found = assign(
                self._spec.policy,
                self._counted(machine, range(len(machine.numa_of))),
                self._counted(machine, free),
                NumaNeed(self._spec.policy, (cpus,)),
            )
            if isinstance(found, Lacking):
                return _NOT_ALIGNED
            given[container] = _lowest(machine, free, found.cpus)
            free = [number for number in free if number not in given[container]]
        self._held.setdefault(machine.name, {})[uid] = (pod, given)
        self._homes[uid] = machine.name
        self._changed[machine.name] = None
        return None

    def free(self, uid: str) -> None:
        """The pod is over, or gone."""
        home = self._homes.pop(uid, None)
        if home is not None:
            del self._held[home][uid]
            self._changed[home] = None

    def changed(self) -> list[Document]:
        """The Numatopologies that say something else than when this was asked last."""
        changed, self._changed = self._changed, {}
        return [self._document(self._machines[name]) for name in changed]

    def _free(self, machine: _Machine) -> Numbers:
        held = self._held.get(machine.name, {}).values()
        taken = {number for _, given in held for numbers in given.values() for number in numbers}
        return [number for number in range(len(machine.numa_of)) if number not in taken]

    def _counted(self, machine: _Machine, numbers: Iterable[int]) -> Cpus:
        of = [machine.numa_of[number] for number in numbers]
        return tuple(of.count(numa) for numa in range(self._spec.nodes))

    def _document(self, machine: _Machine) -> Document:
        owner = {"apiVersion": "v1", "kind": "Node", "name": machine.name, "uid": machine.uid}
        cpus = len(machine.numa_of)
        return {
            "apiVersion": NUMA_TOPOLOGIES.api_version,
            "kind": NUMA_TOPOLOGIES.kind,
            "metadata": {"name": machine.name, "ownerReferences": [owner]},
            "spec": {
                "policies": {
                    "CPUManagerPolicy": STATIC,
                    "TopologyManagerPolicy": self._spec.policy.value,
                },
                "numares": {CPU: {"allocatable": _set(self._free(machine)), "capacity": cpus}},
                "cpuDetail": {
                    str(number): {"numa": numa, "socket": numa, "core": number}
                    for number, numa in enumerate(machine.numa_of)
                },
                "podAllocations": [
                    _allocation(pod, given)
                    for pod, given in self._held.get(machine.name, {}).values()
                ],
            },
        }


def _whole_cpus(pod: Document) -> dict[str, int]:
    """The cpus that each container has to itself, by name; those that share theirs have 0."""
    spec = section(pod, "spec")
    if section(pod, "status").get("qosClass") != "Guaranteed" or says_for_the_whole(spec):
        return {}
    staying = [each for each in items(spec, "initContainers") if is_sidecar(each)]
    found = {}
    for container in [*staying, *items(spec, "containers")]:
        milli = parse_list(section(container, "resources", "limits")).get(CPU, 0)
        found[str(container["name"])] = 0 if milli % 1000 else milli // 1000
    return found


def _lowest(machine: _Machine, free: Numbers, cpus: Cpus) -> Numbers:
    """So many of the free cpus of each NUMA node, those with the lowest numbers."""
    found: Numbers = []
    for numa, count in enumerate(cpus):
        found += [number for number in free if machine.numa_of[number] == numa][:count]
    return found


def _allocation(pod: Document, given: dict[str, Numbers]) -> Document:
    name = name_of(pod)
    containers = [
        {"name": container, "allocations": {CPU: _set(numbers)}}
        for container, numbers in given.items()
    ]
    return {
        "name": name.name,
        "namespace": name.namespace,
        "uid": uid_of(pod),
        "containerAllocations": containers,
    }


def _set(numbers: Numbers) -> str:
    """``0-3,8``."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
