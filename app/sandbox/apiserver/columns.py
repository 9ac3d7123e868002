"""The columns of ``kubectl get`` for the stock kinds other than pods, and for custom ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.sandbox.apiserver import jsonpath
from app.wire.ages import age
from app.wire.columns import Column
from app.wire.documents import Document, condition, items, labels_of, section

_ROLE = "node-role.kubernetes.io/"

NAME = Column("Name", lambda document, _: document["metadata"]["name"], format="name")
AGE = Column("Age", lambda document, now: age(document["metadata"].get("creationTimestamp"), now))
DEFAULT_COLUMNS = (NAME, Column("Created At", lambda d, _: d["metadata"].get("creationTimestamp")))


def at(path: str, *, absent: object = "<none>") -> Callable[[Document, float], object]:
    """A cell that shows the value under a dotted path."""
    steps = path.split(".")

    def cell(document: Document, _: float) -> object:
        value = section(document, *steps[:-1]).get(steps[-1])
        return absent if value is None or value == "" else value

    return cell


def _count(*path: str) -> Callable[[Document, float], object]:
    def cell(document: Document, _: float) -> object:
        found: Any = section(document, *path[:-1]).get(path[-1])
        return len(found) if found else 0

    return cell


def _quota_lines(*, limits: bool) -> Callable[[Document, float], object]:
    """The lines of a quota about limits, or all others: what is used of what."""

    def cell(quota: Document, _: float) -> object:
        hard, used = section(quota, "status", "hard"), section(quota, "status", "used")
        return ", ".join(
            f"{line}: {used.get(line, 0)}/{hard[line]}"
            for line in sorted(hard)
            if line.startswith("limits.") is limits
        )

    return cell


def _node_status(node: Document, _: float) -> str:
    ready = condition(node, "Ready")
    words = ["Unknown"]
    if ready is not None:
        words = ["Ready" if ready.get("status") == "True" else "NotReady"]
    if section(node, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Document, _: float) -> str:
    roles = sorted(key[len(_ROLE) :] for key in labels_of(node) if key.startswith(_ROLE))
    return ",".join(roles) or "<none>"


def _node_address(kind: str) -> Callable[[Document, float], object]:
    def cell(node: Document, _: float) -> object:
        for one in items(node, "status", "addresses"):
            if one.get("type") == kind:
                return one.get("address")
        return "<none>"

    return cell


def _service_ports(service: Document, _: float) -> str:
    shown = [
        f"{port.get('port')}:{port['nodePort']}/{port.get('protocol', 'TCP')}"
        if port.get("nodePort")
        else f"{port.get('port')}/{port.get('protocol', 'TCP')}"
        for port in items(service, "spec", "ports")
    ]
    return ",".join(shown) or "<none>"


def _selector(*path: str) -> Callable[[Document, float], object]:
    def cell(document: Document, _: float) -> object:
        chosen = section(document, *path)
        return ",".join(f"{key}={value}" for key, value in sorted(chosen.items())) or "<none>"

    return cell


def _event_time(event: Document, now: float) -> str:
    series = section(event, "series")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    shown = age(last, now)
    count = series.get("count") or event.get("count") or 1
    first = event.get("firstTimestamp") or event.get("eventTime")
    return f"{shown} (x{count} over {age(first, now)})" if count > 1 else shown


def _event_subject(event: Document, _: float) -> str:
    subject = section(event, "involvedObject")
    kind = str(subject.get("kind") or "").lower()
    return f"{kind}/{subject.get('name') or ''}"


def _text(path: str) -> Callable[[Document, float], object]:
    cell = at(path, absent="")
    return lambda document, now: str(cell(document, now)).strip()


def _replicas(document: Document, _: float) -> str:
    ready = section(document, "status").get("readyReplicas") or 0
    return f"{ready}/{section(document, 'spec').get('replicas', 1)}"


def _completions(job: Document, _: float) -> str:
    done = section(job, "status").get("succeeded") or 0
    return f"{done}/{section(job, 'spec').get('completions') or 1}"


_DESIRED = Column("Desired", at("spec.replicas", absent=0), "integer")
STOCK_COLUMNS: dict[str, tuple[Column, ...]] = {
    "nodes": (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
        Column("Version", at("status.nodeInfo.kubeletVersion", absent="")),
        Column("Internal-IP", _node_address("InternalIP"), priority=1),
        Column("External-IP", _node_address("ExternalIP"), priority=1),
        Column("OS-Image", at("status.nodeInfo.osImage", absent="<unknown>"), priority=1),
        Column(
            "Kernel-Version", at("status.nodeInfo.kernelVersion", absent="<unknown>"), priority=1
        ),
        Column(
            "Container-Runtime",
            at("status.nodeInfo.containerRuntimeVersion", absent="<unknown>"),
            priority=1,
        ),
    ),
    "namespaces": (NAME, Column("Status", at("status.phase")), AGE),
    "services": (
        NAME,
        Column("Type", at("spec.type")),
        Column("Cluster-IP", at("spec.clusterIP")),
        Column("External-IP", lambda _, __: "<none>"),
        Column("Port(s)", _service_ports),
        AGE,
        Column("Selector", _selector("spec", "selector"), priority=1),
    ),
    "configmaps": (NAME, Column("Data", _count("data")), AGE),
    "secrets": (NAME, Column("Type", at("type")), Column("Data", _count("data"), "integer"), AGE),
    "serviceaccounts": (NAME, Column("Secrets", _count("secrets"), "integer"), AGE),
    "events": (
        Column("Last Seen", _event_time),
        Column("Type", at("type", absent="")),
        Column("Reason", at("reason", absent="")),
        Column("Object", _event_subject),
        Column("Subobject", at("involvedObject.fieldPath", absent=""), priority=1),
        Column("Source", at("source.component", absent=""), priority=1),
        Column("Message", _text("message")),
        Column("Name", NAME.cell, format="name", priority=1),
    ),
    "priorityclasses": (
        NAME,
        Column("Value", at("value", absent=0), "integer"),
        Column("Global-Default", at("globalDefault", absent=False), "boolean"),
        AGE,
        Column("PreemptionPolicy", at("preemptionPolicy", absent="PreemptLowerPriority")),
    ),
    "leases": (NAME, Column("Holder", at("spec.holderIdentity", absent="")), AGE),
    "poddisruptionbudgets": (
        NAME,
        Column("Min Available", at("spec.minAvailable", absent="N/A")),
        Column("Max Unavailable", at("spec.maxUnavailable", absent="N/A")),
        Column("Allowed Disruptions", at("status.disruptionsAllowed", absent=0), "integer"),
        AGE,
    ),
    "persistentvolumeclaims": (
        NAME,
        Column("Status", at("status.phase", absent="Pending")),
        Column("Volume", at("spec.volumeName", absent="")),
        Column("StorageClass", at("spec.storageClassName", absent="")),
        AGE,
    ),
    "deployments": (
        NAME,
        Column("Ready", _replicas),
        Column("Up-to-date", at("status.updatedReplicas", absent=0), "integer"),
        Column("Available", at("status.availableReplicas", absent=0), "integer"),
        AGE,
    ),
    "statefulsets": (NAME, Column("Ready", _replicas), AGE),
    "replicasets": (
        NAME,
        _DESIRED,
        Column("Current", at("status.replicas", absent=0), "integer"),
        Column("Ready", at("status.readyReplicas", absent=0), "integer"),
        AGE,
    ),
    "jobs": (NAME, Column("Completions", _completions), AGE),
    "cronjobs": (
        NAME,
        Column("Schedule", at("spec.schedule")),
        Column("Suspend", at("spec.suspend", absent=False), "boolean"),
        AGE,
    ),
    "networkpolicies": (
        NAME,
        Column("Pod-Selector", _selector("spec", "podSelector", "matchLabels")),
        AGE,
    ),
    "resourcequotas": (
        NAME,
        Column("Request", _quota_lines(limits=False)),
        Column("Limit", _quota_lines(limits=True)),
        AGE,
    ),
    "endpoints": (NAME, AGE),
}


def custom_columns(declared: list[Document]) -> tuple[Column, ...]:
    """The printer columns of a CustomResourceDefinition version."""
    if not declared:
        return (NAME, AGE)
    return (NAME, *(_custom(column) for column in declared))


def _custom(column: Document) -> Column:
    path, kind = column["jsonPath"], column["type"]

    def cell(document: Document, now: float) -> object:
        found = jsonpath.lookup(document, path)
        if not found or found[0] is None:
            return "<unknown>" if kind == "date" else None
        if kind == "date":
            return age(found[0], now)
        if kind == "string":
            return ",".join(str(value) for value in found)
        return found[0]

    return Column(
        column["name"],
        cell,
        kind,
        format=column.get("format", ""),
        description=column.get("description", ""),
        priority=column.get("priority", 0),
    )
