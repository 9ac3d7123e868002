"""What is seen of every job of a namespace, as clients that watch it see it.

One thread per kind follows a watch and puts what changed into one queue; whoever reads the queue
(`follow`) keeps the lives of the jobs. A watch that ends is taken up again where it ended, so every
state that the API server has stored is seen, and each phase that a job was ever in is on its list.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tests.clusters.client import ApiError, Event, Object
from tests.clusters.processes import wait_until
from tests.clusters.resources import COMMANDS, JOBS, POD_GROUPS, PODS, Resource
from tests.clusters.workloads import is_leaving
from tests.scenarios.jobs.ground import Ground

_WATCH_S = 3.0
_TOO_EARLY = 429
_ACCEPTED = "pumice.sh/command"
"""On a job while a Command is executed: `action/uid`."""


@dataclass(slots=True)
class Life:
    """One job so far; pods by their names without the job's."""

    name: str
    job: Object = field(default_factory=dict)
    phases: list[str] = field(default_factory=list)
    """Those that followed each other."""
    times: list[float] = field(default_factory=list)
    """When each was seen."""
    pods: dict[str, Object] = field(default_factory=dict)
    group: Object | None = None
    taken: dict[str, int] = field(default_factory=dict)
    """UIDs of Commands that are gone, and the version that the job had when that was seen."""

    @property
    def status(self) -> dict[str, Any]:
        """The status as stored."""
        found: dict[str, Any] = self.job.get("status") or {}
        return found

    @property
    def phase(self) -> str:
        """The phase it is in; empty before the first."""
        return self.phases[-1] if self.phases else ""

    @property
    def leaving(self) -> list[str]:
        """Pods that are being deleted."""
        return sorted(name for name, pod in self.pods.items() if is_leaving(pod))

    @property
    def staying(self) -> dict[str, str]:
        """UIDs of the others."""
        pods = self.pods.items()
        return {name: pod["metadata"]["uid"] for name, pod in pods if not is_leaving(pod)}

    @property
    def group_uid(self) -> str:
        """Of its PodGroup; empty without one."""
        return "" if self.group is None else str(self.group["metadata"]["uid"])

    def counts(self, **expected: int) -> bool:
        """Whether the status counts so many pods in these phases, and none in others.

        And the pods that it counts were seen: they have a watch of their own, which may be behind.
        """
        phases = ("pending", "running", "succeeded", "failed", "unknown", "terminating")
        found = {phase: self.status[phase] for phase in phases if self.status.get(phase)}
        wanted = {phase: count for phase, count in expected.items() if count}
        return found == wanted and len(self.pods) == sum(found.values())

    def has_executed(self, command: str) -> bool:
        """Whether the Command with that UID was taken or refused, and is over.

        One that was taken is noted on the job before it is deleted, until it is executed.
        """
        metadata = self.job["metadata"]
        seen = int(metadata["resourceVersion"]) >= self.taken.get(command, sys.maxsize)
        return seen and not (metadata.get("annotations") or {}).get(_ACCEPTED)

    def take_job(self, item: Object) -> None:
        """The job has changed."""
        self.job = item
        phase = self.status.get("state", {}).get("phase", "")
        if phase and phase != self.phase:
            self.phases.append(phase)
            self.times.append(time.monotonic())


class Record:
    """The lives of all jobs, seen while `with` lasts."""

    def __init__(self, ground: Ground) -> None:
        self.lives: dict[str, Life] = {}
        self._api, self._namespace = ground.api, ground.name
        self._changes: queue.SimpleQueue[tuple[Resource, Event]] = queue.SimpleQueue()
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        for resource in (JOBS, PODS, POD_GROUPS, COMMANDS):
            version = self._version(resource)
            watching = threading.Thread(target=self._watch, args=[resource, version])
            self._threads.append(watching)
            watching.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def follow(self, *, timeout_s: float) -> Life | None:
        """Take the next change in; the life it belongs to, None when nothing comes."""
        try:
            resource, event = self._changes.get(timeout=max(timeout_s, 0.0))
        except queue.Empty:
            return None
        assert event.kind != "ERROR", event.object
        name = _job_of(resource, event.object)
        life = self.lives.setdefault(name, Life(name))
        gone = event.kind == "DELETED"
        if resource is PODS:
            pod = event.object["metadata"]["name"].removeprefix(f"{name}-")
            life.pods[pod] = event.object
            if gone:
                del life.pods[pod]
        elif resource is POD_GROUPS:
            life.group = None if gone else event.object
        elif resource is COMMANDS:
            if gone:
                job = self._api.get(JOBS, name, namespace=self._namespace)
                version = int(job["metadata"]["resourceVersion"])
                life.taken[event.object["metadata"]["uid"]] = version
        elif not gone:
            life.take_job(event.object)
        return life

    def _version(self, resource: Resource) -> str:
        """Where to begin; a kind that was never read before is not served at once."""
        found: list[str] = []

        def is_served() -> bool:
            try:
                _, version = self._api.list_with_version(resource, namespace=self._namespace)
            except ApiError as error:
                if error.code != _TOO_EARLY:
                    raise
                return False
            found.append(version)
            return True

        wait_until(is_served, timeout_s=30, what=f"{resource.plural} are served")
        return found[0]

    def _watch(self, resource: Resource, version: str) -> None:
        while not self._ends.is_set():
            for event in self._api.watch(
                resource,
                namespace=self._namespace,
                resource_version=version,
                timeout_s=_WATCH_S,
            ):
                self._changes.put((resource, event))
                if event.kind == "ERROR":
                    return
                version = event.object["metadata"]["resourceVersion"]


def _job_of(resource: Resource, item: Object) -> str:
    metadata = item["metadata"]
    if resource is JOBS:
        return str(metadata["name"])
    if resource is PODS:
        return str(metadata["labels"]["volcano.sh/job-name"])
    return str(metadata["ownerReferences"][0]["name"])
