"""What a pod asks of a node, read once from its document.

On a node it may have other resources than its spec says: it can be resized in place. What it is
charged then is read as for the planner (:mod:`app.wire.objects.resizes`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.model.amounts import CPU
from app.sandbox.pod_resources import Amounts, requests_of
from app.sandbox.scheduler.host_ports import HostPort, host_ports
from app.wire.documents import Document, items, section, uid_of
from app.wire.errors import DecodeError
from app.wire.objects.pods import decode_charge

PODS = "pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """Resources in thousandths (one ``pods`` included) and host ports of one pod.

    ``repels``: it has anti-affinity, so that others must be checked against it.
    """

    uid: str
    priority: int
    resources: Mapping[str, int]
    ports: frozenset[HostPort]
    repels: bool

    def without(self, names: frozenset[str]) -> Requirements:
        """A copy that asks for none of the resources in ``names``."""
        if names.isdisjoint(self.resources):
            return self
        kept = {name: amount for name, amount in self.resources.items() if name not in names}
        return replace(self, resources=kept)


def requirements_of(pod: Document) -> Requirements:
    """The requirements of a pod; amounts that a kubelet reports come before those of the spec."""
    spec = section(pod, "spec")
    return Requirements(
        uid=uid_of(pod),
        priority=int(spec.get("priority") or 0),
        resources={**_charge(pod), PODS: 1000},
        ports=host_ports(spec),
        repels=bool(section(spec, "affinity").get("podAntiAffinity")),
    )


def _charge(pod: Document) -> Amounts:
    if not _is_reported(section(pod, "status")):
        return requests_of(section(pod, "spec"))
    try:
        charged = decode_charge(json.dumps(pod).encode())
    except DecodeError:  # a report that the real API server would not have taken
        return requests_of(section(pod, "spec"))
    return {name: amount if name == CPU else amount * 1000 for name, amount in charged}


def _is_reported(status: Document) -> bool:
    """Whether a kubelet says what any of its containers has."""
    told = (status, *items(status, "containerStatuses"), *items(status, "initContainerStatuses"))
    return any(each.get("resources") for each in told)
