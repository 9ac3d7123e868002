"""Pod status documents, as a kubelet writes them. Pure: states of containers -> status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from app.sandbox.clock import timestamp
from app.sandbox.nodes import host_ip
from app.wire.documents import Document, condition, items, section


class Stage(Enum):
    """Where a container is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """One container, now and before its last restart."""

    stage: Stage = Stage.WAITING
    reason: str = "ContainerCreating"
    started: float = 0.0
    finished: float = 0.0
    exit_code: int = 0
    restarts: int = 0
    last: Document | None = None

    def document(self) -> Document:
        """``status.containerStatuses[].state``."""
        match self.stage:
            case Stage.WAITING:
                return {"waiting": {"reason": self.reason}}
            case Stage.RUNNING:
                return {"running": {"startedAt": timestamp(self.started)}}
            case Stage.TERMINATED:
                return {
                    "terminated": {
                        "exitCode": self.exit_code,
                        "reason": "Error" if self.exit_code else "Completed",
                        "startedAt": timestamp(self.started),
                        "finishedAt": timestamp(self.finished),
                    }
                }


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a pod has failed as a whole, whatever its containers did."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """Everything the status is made of besides the pod itself."""

    started: float
    ip: str
    init: Mapping[str, ContainerState]
    main: Mapping[str, ContainerState]
    is_over: bool = False
    verdict: Verdict | None = None


def is_sidecar(container: Document) -> bool:
    """Whether ``container`` is an init container that runs on beside the main ones."""
    return container.get("restartPolicy") == "Always"


def phase_of(pod: Document, facts: PodFacts) -> str:
    """``Pending``, ``Running``, ``Succeeded`` or ``Failed``; how sidecars ended does not count."""
    ordinary, _ = _init_states(pod, facts)
    states = [*ordinary, *facts.main.values()]
    if facts.is_over and facts.verdict is not None:
        return "Failed"
    if facts.is_over:
        done = all(state.stage is Stage.TERMINATED and not state.exit_code for state in states)
        return "Succeeded" if done else "Failed"
    if all(_has_not_started(state) for state in facts.main.values()):
        return "Pending"
    return "Running"


def _init_states(
    pod: Document, facts: PodFacts
) -> tuple[list[ContainerState], list[ContainerState]]:
    """The states of ordinary init containers, and of sidecars."""
    ordinary: list[ContainerState] = []
    sidecars: list[ContainerState] = []
    for container in items(pod, "spec", "initContainers"):
        states = sidecars if is_sidecar(container) else ordinary
        states.append(facts.init[container["name"]])
    return ordinary, sidecars


def _has_not_started(state: ContainerState) -> bool:
    return state.stage is Stage.WAITING and not state.restarts


def status_patch(pod: Document, facts: PodFacts, *, now: float) -> Document:
    """The status as a strategic merge patch of the pod's present one."""
    phase = phase_of(pod, facts)
    node_ip = host_ip(section(pod, "spec").get("nodeName") or "")
    patch: Document = {
        "phase": phase,
        "hostIP": node_ip,
        "hostIPs": [{"ip": node_ip}],
        "startTime": timestamp(facts.started),
        "conditions": _conditions(pod, facts, phase=phase, now=now),
        "containerStatuses": _statuses(pod, "containers", facts.main),
    }
    if facts.is_over and facts.verdict is not None:
        patch |= {"reason": facts.verdict.reason, "message": facts.verdict.message}
    if facts.init:
        patch["initContainerStatuses"] = _statuses(pod, "initContainers", facts.init)
    if facts.ip:
        patch["podIP"] = facts.ip
        patch["podIPs"] = [{"ip": facts.ip}]
    return patch


def _statuses(pod: Document, field: str, states: Mapping[str, ContainerState]) -> list[Document]:
    found: list[Document] = []
    for container in items(pod, "spec", field):
        state = states[container["name"]]
        is_init = field == "initContainers" and not is_sidecar(container)
        done = state.stage is Stage.TERMINATED and not state.exit_code
        running = state.stage is Stage.RUNNING
        found.append(
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": f"sandbox://{container.get('image', '')}",
                "containerID": f"sandbox://{container['name']}/{state.restarts}",
                "ready": done if is_init else running,
                "started": running,
                "restartCount": state.restarts,
                "state": state.document(),
                "lastState": state.last or {},
            }
        )
    return found


def _conditions(pod: Document, facts: PodFacts, *, phase: str, now: float) -> list[Document]:
    ordinary, sidecars = _init_states(pod, facts)
    initialized = all(
        state.stage is Stage.TERMINATED and not state.exit_code for state in ordinary
    ) and not any(_has_not_started(state) for state in sidecars)
    ready = all(state.stage is Stage.RUNNING for state in (*sidecars, *facts.main.values()))
    why = ""
    if not ready:
        over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}
        why = over.get(phase, "ContainersNotReady")
    return [
        _condition(pod, "PodScheduled", True, why="", now=now),
        _condition(
            pod,
            "Initialized",
            initialized,
            why="" if initialized else "ContainersNotInitialized",
            now=now,
        ),
        _condition(pod, "ContainersReady", ready, why=why, now=now),
        _condition(pod, "Ready", ready, why=why, now=now),
    ]


def _condition(pod: Document, kind: str, holds: bool, *, why: str, now: float) -> Document:
    """One condition; its time moves only when its status does."""
    status = "True" if holds else "False"
    before = condition(pod, kind)
    kept = before is not None and before.get("status") == status
    since = before.get("lastTransitionTime") if before is not None and kept else None
    return {
        "type": kind,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": since or timestamp(now),
        "reason": why or None,
        "message": None,
    }
