"""Probes: what must be true of the targets' pods before a step starts.

A probe takes the place of the targets' completion: a step can start beside a server that never
ends, once the server answers. A target that is complete needs no probe any more (a server that has
ended cannot be asked); of every other one as many pods of a task must pass as the task needs to
run.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from app.controllers.jobflow.report import COMPLETED, job_phase
from app.wire.unstructured import Object, labels, name, spec, status

TASK: Final = "volcano.sh/task-spec"

Why = str
"""Why something is not (yet) so; empty when it is."""


@dataclass(frozen=True, slots=True)
class Address:
    """A port of a pod."""

    host: str
    port: int


class Prober(Protocol):
    """Asks pods. Every answer comes within a second or two, whatever the pod does."""

    async def http(self, at: Address, path: str, headers: Mapping[str, str]) -> Why:
        """GET; below 400 is an answer."""

    async def tcp(self, at: Address) -> Why:
        """Connect."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A task of a target; so many of its pods are ``needed``."""

    job: Object
    name: str
    needed: int

    def __str__(self) -> str:
        return f"task {self.name} of {name(self.job)}"


Pods = Callable[[Object], Iterable[Object]]


def asks_pods(probe: Mapping[str, Any]) -> bool:
    """Whether the probe takes more than the targets' status."""
    return bool(probe.get("httpGetList") or probe.get("tcpSocketList"))


def statuses(probe: Mapping[str, Any], targets: Sequence[Object]) -> Why:
    """What the targets' status says against the probe."""
    for entry in probe.get("taskStatusList") or ():
        phase = entry.get("phase") or "Running"
        for task in _tasks(entry, targets):
            counts = (status(task.job).get("taskStatusCount") or {}).get(task.name) or {}
            have = _count(counts.get("phase") or {}, phase)
            if have < task.needed:
                return f"{task}: {have} of {task.needed} pods are {phase}"
    return ""


async def answers(
    probe: Mapping[str, Any], targets: Sequence[Object], *, pods: Pods, prober: Prober
) -> Why:
    """What the targets' pods say against it."""
    for entry in probe.get("httpGetList") or ():
        header = entry.get("httpHeader") or {}
        headers = {header["name"]: header["value"]} if header else {}
        path = "/" + str(entry.get("path") or "").lstrip("/")
        for task in _tasks(entry, targets):
            at = list(_addresses(task, entry, pods))
            why = await _enough(task, [prober.http(each, path, headers) for each in at])
            if why:
                return why
    for entry in probe.get("tcpSocketList") or ():
        for task in _tasks(entry, targets):
            at = list(_addresses(task, entry, pods))
            why = await _enough(task, [prober.tcp(each) for each in at])
            if why:
                return why
    return ""


def unknown_tasks(probes: Iterable[Mapping[str, Any]], targets: Sequence[Object]) -> list[str]:
    """Tasks that probes name and no target has."""
    known = {task["name"] for job in targets for task in spec(job).get("tasks") or ()}
    asked = {
        entry["taskName"]
        for probe in probes
        for field in ("httpGetList", "tcpSocketList", "taskStatusList")
        for entry in probe.get(field) or ()
        if entry.get("taskName")
    }
    return sorted(asked - known)


async def _enough(task: _Task, asked: Sequence[Any]) -> Why:
    said = await asyncio.gather(*asked)
    good = said.count("")
    if good >= task.needed:
        return ""
    first = next((why for why in said if why), "no pod has an address")
    return f"{task}: {good} of {task.needed} pods answer ({first})"


def _tasks(entry: Mapping[str, Any], targets: Iterable[Object]) -> Iterator[_Task]:
    wanted = entry.get("taskName")
    for job in targets:
        if job_phase(job) == COMPLETED:
            continue
        for task in spec(job).get("tasks") or ():
            if not wanted or task["name"] == wanted:
                least = task.get("minAvailable")
                needed = task.get("replicas", 1) if least is None else least
                yield _Task(job, task["name"], needed)


def _addresses(task: _Task, entry: Mapping[str, Any], pods: Pods) -> Iterator[Address]:
    for pod in pods(task.job):
        host = status(pod).get("podIP")
        if host and labels(pod).get(TASK) == task.name:
            yield Address(host, int(entry.get("port") or 80))


def _count(phases: Mapping[str, int], phase: str) -> int:
    """Pods in that phase; one that has succeeded has run."""
    have = phases.get(phase, 0)
    return have + (phases.get("Succeeded", 0) if phase == "Running" else 0)
