"""When a task has completed: as a pod of it succeeds, and with that all its replicas have.

A task that shrinks to replicas that had succeeded before has not completed: none has succeeded by
that. Seen at the first look after the change: the status still counts more pods than the task has
replicas, not all of them succeeded, and there are no more successes than it counts. So before a
status is written that counts the rest only, those pods are noted as settled, and what is settled
completes nothing. The note goes with the pod: one that is made in its place may complete the task.
"""

from collections.abc import Sequence

from app.controllers.job import policies
from app.controllers.job.members import Member, by_task
from app.controllers.job.policies import Happening
from app.controllers.job.view import Job, Task
from app.controllers.job.vocabulary import Event

_SUCCEEDED = "Succeeded"


def completed_by(job: Job, task: Task, members: Sequence[Member]) -> Member | None:
    """The pod whose success completed the task; None when it has not completed."""
    done = _news(job, task, members)
    if not done or _has_only_shrunk(job, task, members):
        return None
    return max(done, key=lambda member: (member.finished, member.name))


def to_settle(job: Job, members: Sequence[Member]) -> list[Member]:
    """Pods to be noted as settled, of tasks whose completion a policy would answer."""
    if not policies.are_there_any(job):
        return []
    of = by_task(members)
    return [
        member
        for task in job.tasks
        if policies.decide(job, Happening(Event.TASK_COMPLETED, task=task.name)) is not None
        and _has_only_shrunk(job, task, of.get(task.name, ()))
        for member in _news(job, task, of.get(task.name, ()))
    ]


def there(task: Task, members: Sequence[Member]) -> list[Member]:
    """The pods of its replicas but those that are being taken away.

    Of these the task would tell the same of the next.
    """
    return [
        member
        for member in members
        if member.task == task.name
        and member.index < task.replicas
        and not (member.deleting or member.marked)
    ]


def _news(job: Job, task: Task, members: Sequence[Member]) -> list[Member]:
    """When all replicas have succeeded, those that are not settled and not of older versions."""
    done = [member for member in there(task, members) if member.phase == _SUCCEEDED]
    if len(done) < task.replicas:
        return []
    return [member for member in done if member.version >= job.version and not member.settled]


def _has_only_shrunk(job: Job, task: Task, members: Sequence[Member]) -> bool:
    counted = job.counted(task.name)
    before = counted.get(_SUCCEEDED, 0)
    if not before < sum(counted.values()) > task.replicas:
        return False
    now = sum(m.task == task.name and m.phase == _SUCCEEDED and not m.deleting for m in members)
    return now <= before
