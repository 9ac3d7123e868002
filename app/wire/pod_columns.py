"""The columns of ``kubectl get pods``: readiness, the word under STATUS, restarts, place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.wire.ages import age
from app.wire.columns import Column
from app.wire.documents import Document, condition, items, section


@dataclass(frozen=True, slots=True)
class _Beginning:
    """How far a pod is with its init containers, of which sidecars go on afterwards."""

    reason: str
    """Why the pod is still there; empty when it is not."""
    seen: list[Document]
    """The statuses up to where the pod is."""
    sidecars: list[Document]
    """The init containers that go on beside the app containers."""


def _beginning(pod: Document) -> _Beginning:
    declared = items(pod, "spec", "initContainers")
    lasting = {each.get("name") for each in declared if each.get("restartPolicy") == "Always"}
    statuses = items(pod, "status", "initContainerStatuses")
    reason, seen = "", statuses
    for done, status in enumerate(statuses):
        if not _is_past(status, lasting):
            reason, seen = _init_reason(status, f"{done}/{len(declared)}"), statuses[: done + 1]
            break
    return _Beginning(reason, seen, [each for each in seen if each.get("name") in lasting])


def _is_past(status: Document, lasting: set[Any]) -> bool:
    """Whether the next init container may run."""
    ended = section(status, "state").get("terminated")
    if ended is not None and ended.get("exitCode", 0) == 0:
        return True
    return status.get("name") in lasting and bool(status.get("started"))


def _init_reason(status: Document, place: str) -> str:
    state = section(status, "state")
    waiting = section(state, "waiting").get("reason")
    if state.get("terminated") is not None:
        return f"Init:{_ended(state['terminated'])}"
    return f"Init:{waiting if waiting and waiting != 'PodInitializing' else place}"


def _shown(pod: Document, beginning: _Beginning) -> list[Document]:
    """The statuses of the containers proper, once it is their turn."""
    initialized = condition(pod, "Initialized")
    if beginning.reason and not (initialized and initialized.get("status") == "True"):
        return []
    return items(pod, "status", "containerStatuses")


def _ready(pod: Document, _: float) -> str:
    beginning = _beginning(pod)
    ready = sum(_is_up(each) for each in _shown(pod, beginning))
    ready += sum(bool(each.get("started") and each.get("ready")) for each in beginning.sidecars)
    declared = items(pod, "spec", "initContainers")
    sidecars = sum(each.get("restartPolicy") == "Always" for each in declared)
    return f"{ready}/{len(items(pod, 'spec', 'containers')) + sidecars}"


def _is_up(status: Document) -> bool:
    return bool(status.get("ready")) and section(status, "state").get("running") is not None


def _ended(state: Document) -> str:
    if state.get("reason"):
        return str(state["reason"])
    if state.get("signal"):
        return f"Signal:{state['signal']}"
    return f"ExitCode:{state.get('exitCode', 0)}"


def _container_reason(pod: Document, reason: str, statuses: list[Document]) -> str:
    for status in reversed(statuses):
        state = section(status, "state")
        waiting = section(state, "waiting").get("reason")
        if waiting:
            reason = waiting
        elif state.get("terminated") is not None:
            reason = _ended(state["terminated"])
    if reason == "Completed" and any(map(_is_up, statuses)):
        ready = condition(pod, "Ready")
        return "Running" if ready and ready.get("status") == "True" else "NotReady"
    return reason


def pod_status(pod: Document) -> str:
    """The word that sums a pod up."""
    status = section(pod, "status")
    reason = status.get("reason") or status.get("phase") or "Unknown"
    scheduled = condition(pod, "PodScheduled")
    if scheduled and scheduled.get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    beginning = _beginning(pod)
    reason = _container_reason(pod, beginning.reason or reason, _shown(pod, beginning))
    if not pod["metadata"].get("deletionTimestamp"):
        return str(reason)
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return str(reason) if status.get("phase") in {"Succeeded", "Failed"} else "Terminating"


def _restarts(pod: Document, now: float) -> str:
    """Of init containers only while it is their turn, of sidecars always."""
    beginning = _beginning(pod)
    proper = _shown(pod, beginning)
    statuses = [*(beginning.sidecars if proper else beginning.seen), *proper]
    count = sum(status.get("restartCount", 0) for status in statuses)
    ends = [
        section(status, "lastState", "terminated").get("finishedAt") or "" for status in statuses
    ]
    last = max(ends, default="")
    return f"{count} ({age(last, now)} ago)" if count and last else str(count)


def _readiness_gates(pod: Document, _: float) -> str:
    gates = items(pod, "spec", "readinessGates")
    if not gates:
        return "<none>"
    met = 0
    for gate in gates:
        found = condition(pod, gate.get("conditionType", ""))
        met += bool(found and found.get("status") == "True")
    return f"{met}/{len(gates)}"


POD_COLUMNS = (
    Column("Name", lambda pod, _: pod["metadata"]["name"], format="name"),
    Column("Ready", _ready),
    Column("Status", lambda pod, _: pod_status(pod)),
    Column("Restarts", _restarts),
    Column("Age", lambda pod, now: age(pod["metadata"].get("creationTimestamp"), now)),
    Column("IP", lambda pod, _: section(pod, "status").get("podIP") or "<none>", priority=1),
    Column("Node", lambda pod, _: section(pod, "spec").get("nodeName") or "<none>", priority=1),
    Column(
        "Nominated Node",
        lambda pod, _: section(pod, "status").get("nominatedNodeName") or "<none>",
        priority=1,
    ),
    Column("Readiness Gates", _readiness_gates, priority=1),
)
