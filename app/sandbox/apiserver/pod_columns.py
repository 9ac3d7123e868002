"""The columns of ``kubectl get pods``: readiness, the word under STATUS, restarts, place."""

from __future__ import annotations

from app.sandbox.apiserver.durations import age
from app.sandbox.apiserver.registry import Column
from app.sandbox.documents import Document, condition, items, section


def _statuses(pod: Document) -> list[Document]:
    return items(pod, "status", "containerStatuses")


def _ready(pod: Document, _: float) -> str:
    ready = sum(1 for status in _statuses(pod) if status.get("ready"))
    return f"{ready}/{len(items(pod, 'spec', 'containers'))}"


def _ended(state: Document) -> str:
    if state.get("reason"):
        return str(state["reason"])
    if state.get("signal"):
        return f"Signal:{state['signal']}"
    return f"ExitCode:{state.get('exitCode', 0)}"


def _init_reason(pod: Document) -> str:
    """Why the pod is still in its init containers; empty when it is not."""
    statuses = items(pod, "status", "initContainerStatuses")
    for done, status in enumerate(statuses):
        state = section(status, "state")
        ended = state.get("terminated")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if ended is not None:
            return f"Init:{_ended(ended)}"
        waiting = section(state, "waiting").get("reason")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{done}/{len(statuses)}"
    return ""


def _container_reason(pod: Document, reason: str) -> str:
    running = False
    for status in reversed(_statuses(pod)):
        state = section(status, "state")
        waiting = section(state, "waiting").get("reason")
        if waiting:
            reason = waiting
        elif state.get("terminated") is not None:
            reason = _ended(state["terminated"])
        elif state.get("running") is not None and status.get("ready"):
            running = True
    if reason == "Completed" and running:
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
    reason = _init_reason(pod) or _container_reason(pod, reason)
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating" if status.get("phase") not in {"Succeeded", "Failed"} else reason
    return str(reason)


def _restarts(pod: Document, now: float) -> str:
    statuses = _statuses(pod)
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
