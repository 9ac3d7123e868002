"""The tasks of a job, and the host names of its pods.

A pod is ``<job>-<task>-<index>``; its host is ``<hostname>.<subdomain>``, from the task's template
where it sets them, else the pod's name and the job's. A template's hostname is one host whatever
the replicas. Both parts must be DNS labels (63 characters, no dots), which names of jobs need not
be: :func:`label` makes one of any name, the same one wherever it is asked, and of every label
itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST = 63
_MARK = 8


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task; ``hostname`` and ``subdomain`` are the template's, ``min_available`` None: all."""

    name: str
    replicas: int
    min_available: int | None = None
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobTasks:
    """The tasks of the job named ``job``."""

    job: str
    tasks: tuple[TaskRow, ...]

    def task(self, name: str) -> TaskRow | None:
        """The task of that name."""
        return next((task for task in self.tasks if task.name == name), None)

    def hostnames(self, task: TaskRow) -> Iterator[str]:
        """The host names of a task's pods, in order."""
        if task.hostname:
            if task.replicas:
                yield task.hostname
            return
        for index in range(task.replicas):
            yield label(f"{self.job}-{task.name}-{index}")

    def subdomain(self, task: TaskRow) -> str:
        """The subdomain of a task's pods."""
        return task.subdomain or label(self.job)

    def hosts(self, task: TaskRow) -> tuple[str, ...]:
        """The names that a task's pods are reached by."""
        subdomain = self.subdomain(task)
        return tuple(f"{hostname}.{subdomain}" for hostname in self.hostnames(task))

    def first_host(self, task: TaskRow) -> str:
        """The name of the task's pod 0, whether it is wanted now or not."""
        hostname = task.hostname or label(f"{self.job}-{task.name}-0")
        return f"{hostname}.{self.subdomain(task)}"


def label(name: str) -> str:
    """``name`` if it is a DNS label, else one that no other name has."""
    if len(name) <= _LONGEST and _LABEL.fullmatch(name):
        return name
    mark = sha256(name.encode()).hexdigest()[:_MARK]
    kept = re.sub(r"[^a-z0-9]+", "-", name.lower())[: _LONGEST - _MARK - 1].strip("-")
    return f"{kept}-{mark}" if kept else f"x-{mark}"


def variable(task: str) -> str:
    """How a task is called in variables."""
    return task.replace("-", "_").upper()
