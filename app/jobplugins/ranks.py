"""Numbering the pods of two tasks as one sequence: all of the first, then all of the second."""

from dataclasses import dataclass

from app.jobplugins.plugin import PodOfJob
from app.jobplugins.rules.job_tasks import JobTasks, TaskRow


@dataclass(frozen=True, slots=True)
class Ranks:
    """``first`` and ``second`` are tasks; either may be missing from the job."""

    first: TaskRow | None
    second: TaskRow | None

    @property
    def size(self) -> int:
        """How many pods there are."""
        return sum(task.replicas for task in (self.first, self.second) if task is not None)

    @property
    def leader(self) -> TaskRow | None:
        """The task of the pod with rank 0, or where it would be if there is no pod at all."""
        tasks = [task for task in (self.first, self.second) if task is not None]
        return next((task for task in tasks if task.replicas), tasks[0] if tasks else None)

    @property
    def least(self) -> int:
        """How many pods there are at least while the job runs."""
        tasks = [task for task in (self.first, self.second) if task is not None]
        return sum(
            task.replicas if task.min_available is None else task.min_available for task in tasks
        )

    def of(self, place: PodOfJob) -> int | None:
        """The rank of a pod; None: it is in neither task."""
        if self.first is not None and place.task == self.first.name:
            return place.index
        if self.second is not None and place.task == self.second.name:
            return place.index + (self.first.replicas if self.first is not None else 0)
        return None


def ranks(job_tasks: JobTasks, first: str, second: str) -> Ranks:
    """The sequence of the tasks with these names."""
    task = job_tasks.task(second)
    return Ranks(job_tasks.task(first), None if first == second else task)
