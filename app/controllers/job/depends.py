"""Tasks that wait for others: their pods are made when those are up."""

from collections.abc import Mapping, Sequence

from app.controllers.job.members import Member
from app.controllers.job.view import Job, Task


def is_ready(job: Job, task: Task, members: Mapping[str, Sequence[Member]]) -> bool:
    """Whether what the task depends on is up; ``members`` by their task."""
    wanted = task.depends_on
    if wanted is None:
        return True
    up = (_is_up(job.task(name), members.get(name, ())) for name in wanted.names)
    return any(up) if wanted.any_of and len(wanted.names) > 1 else all(up)


def _is_up(task: Task | None, members: Sequence[Member]) -> bool:
    """A task that does not exist keeps no other waiting."""
    if task is None:
        return True
    up = sum(not member.deleting and member.is_up for member in members)
    return up >= task.minimum
