"""What a pod asks of a node, read once from its document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.sandbox.documents import Document, items, section, uid_of
from app.sandbox.pod_resources import requests_of

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
        resources={**requests_of(spec), PODS: 1000},
        ports=frozenset(
            (port.get("protocol", "TCP"), port["hostPort"])
            for container in items(spec, "containers")
            for port in items(container, "ports")
            if port.get("hostPort")
        ),
        repels=bool(section(spec, "affinity").get("podAntiAffinity")),
    )
