"""What a pod asks of a node, read once from its document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.sandbox.documents import Document, items, section, uid_of
from app.sandbox.quantities import parse_list

PODS = "pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """Resources in thousandths (one ``pods`` included) and host ports of one pod.

    ``repels``: it has anti-affinity, so that others must be checked against it.
    """

    uid: str
    priority: int
    resources: Mapping[str, int]
    ports: frozenset[tuple[str, int]]
    repels: bool

    def without(self, names: frozenset[str]) -> Requirements:
        if names.isdisjoint(self.resources):
            return self
        kept = {name: amount for name, amount in self.resources.items() if name not in names}
        return replace(self, resources=kept)


def requirements_of(pod: Document) -> Requirements:
    spec = section(pod, "spec")
    return Requirements(
        uid=uid_of(pod),
        priority=int(spec.get("priority") or 0),
        resources={**_resources(spec), PODS: 1000},
        ports=frozenset(
            (port.get("protocol", "TCP"), port["hostPort"])
            for container in items(spec, "containers")
            for port in items(container, "ports")
            if port.get("hostPort")
        ),
        repels=bool(section(spec, "affinity").get("podAntiAffinity")),
    )


def _resources(spec: Document) -> dict[str, int]:
    """Containers together, or the greatest init container where that is more; plus overhead."""
    total: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    peak: dict[str, int] = {}
    for container in items(spec, "containers"):
        total.update(_requests(container))
    for container in items(spec, "initContainers"):
        asked = Counter(_requests(container))
        if container.get("restartPolicy") == "Always":
            sidecars.update(asked)
            total.update(asked)
            asked = Counter(sidecars)
        else:
            asked.update(sidecars)
        for name, amount in asked.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total[name], amount)
    total.update(parse_list(section(spec, "overhead")))
    return dict(total)


def _requests(container: Document) -> dict[str, int]:
    resources = section(container, "resources")
    return parse_list({**section(resources, "limits"), **section(resources, "requests")})
