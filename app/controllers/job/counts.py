"""How many pods of a job are in which phase; every pod counts once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.controllers.job.members import Member

_PHASES = ("Pending", "Running", "Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Pods of one task by phase; those being deleted are in none."""

    phases: Mapping[str, int] = field(default_factory=dict)

    @property
    def succeeded(self) -> int:
        """Pods that ended well."""
        return self.phases.get("Succeeded", 0)


@dataclass(frozen=True, slots=True)
class Counts:
    """Pods of a job."""

    pending: int
    running: int
    succeeded: int
    failed: int
    unknown: int
    terminating: int
    tasks: Mapping[str, TaskCounts]

    @property
    def active(self) -> int:
        """Pods that a drain waits for."""
        return self.pending + self.running + self.terminating

    def of(self, task: str) -> TaskCounts:
        """The counts of one task."""
        return self.tasks.get(task) or TaskCounts()


def count(members: Iterable[Member], *, leaving: frozenset[str] = frozenset()) -> Counts:
    """``leaving``: UIDs of pods that are about to be deleted, and count as if they were."""
    phases: dict[str, int] = {}
    tasks: dict[str, dict[str, int]] = {}
    terminating = 0
    for member in members:
        if member.deleting or member.uid in leaving:
            terminating += 1
            continue
        phase = member.phase if member.phase in _PHASES else "Unknown"
        phases[phase] = phases.get(phase, 0) + 1
        of_task = tasks.setdefault(member.task, {})
        of_task[phase] = of_task.get(phase, 0) + 1
    return Counts(
        pending=phases.get("Pending", 0),
        running=phases.get("Running", 0),
        succeeded=phases.get("Succeeded", 0),
        failed=phases.get("Failed", 0),
        unknown=phases.get("Unknown", 0),
        terminating=terminating,
        tasks={name: TaskCounts(of_task) for name, of_task in tasks.items()},
    )
