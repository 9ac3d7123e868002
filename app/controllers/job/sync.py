"""Which pods of a job are missing, and which are too much."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.controllers.job import counts, machine
from app.controllers.job.counts import Counts
from app.controllers.job.machine import Keep
from app.controllers.job.members import Member, by_task
from app.controllers.job.policies import Happening
from app.controllers.job.view import Job, Task
from app.controllers.job.vocabulary import TARGETED, Action, Phase

_TARGETED = frozenset(action.value for action in TARGETED)


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica of a task."""

    task: Task
    index: int


def pod_name(job: Job, replica: Replica) -> str:
    """``<job>-<task>-<index>``."""
    return f"{job.key.name}-{replica.task.name}-{replica.index}"


def missing(job: Job, members: Sequence[Member]) -> list[Replica]:
    """Replicas without a pod, of tasks that need not wait for others."""
    taken = {member.name for member in members}
    of = by_task(members)
    return [
        replica
        for task in job.tasks
        if is_ready(job, task, of)
        for replica in (Replica(task, index) for index in range(task.replicas))
        if pod_name(job, replica) not in taken
    ]


def is_ready(job: Job, task: Task, members: Mapping[str, Sequence[Member]]) -> bool:
    """Whether what the task depends on is up; ``members`` by their task."""
    wanted = task.depends_on
    if wanted is None:
        return True
    up = (_is_up(job.task(name), members.get(name, ())) for name in wanted.names)
    return any(up) if wanted.any_of and len(wanted.names) > 1 else all(up)


def _is_up(task: Task | None, members: Sequence[Member]) -> bool:
    """Whether ``task`` has its minimum up; one that does not exist keeps no other waiting."""
    if task is None:
        return True
    up = sum(not member.deleting and member.is_up for member in members)
    return up >= task.minimum


def too_much(job: Job, members: Sequence[Member]) -> list[Member]:
    """Pods that no replica stands for, or that are marked or left by a kill."""
    replicas = {task.name: task.replicas for task in job.tasks}
    return [
        member
        for member in members
        if not member.deleting
        and (
            member.index >= replicas.get(member.task, 0)
            or member.marked
            or (member.version < job.version and not member.ended)
        )
    ]


def refused(members: Iterable[Member], *, spared: Collection[str]) -> list[Member]:
    """Pods whose one node refused them; ``spared``: UIDs of those that stay for now."""
    return [
        member
        for member in members
        if member.refused_node and not member.marked and member.uid not in spared
    ]


def count_without_surplus(job: Job, members: Sequence[Member]) -> Counts:
    """What is too much counts as terminating, even while its deletion fails.

    The deletion may have been done all the same; a pod that is counted and then missing would be
    taken for an evicted one.
    """
    return counts.count(members, leaving=uids(too_much(job, members)))


def uids(members: Iterable[Member]) -> frozenset[str]:
    """The UIDs of ``members``."""
    return frozenset(member.uid for member in members)


def killed(job: Job, members: Sequence[Member]) -> list[Member]:
    """Pods that the job's phase takes away."""
    there = [member for member in members if not member.deleting]
    if job.phase is not Phase.RESTARTING:
        return [member for member in there if not member.ended or member.marked]
    if is_targeted(job):
        return [member for member in there if member.marked]
    keep = restart_keeps(job)
    return [m for m in there if m.version < job.version and not (m.ended and keep is Keep.SOFT)]


def restart_keeps(job: Job) -> Keep:
    """What the restart that goes on leaves."""
    resumed = job.state.get("reason") == Action.RESUME_JOB.value
    return Keep.SOFT if resumed or machine.is_last_retry(job) else Keep.NONE


def is_targeted(job: Job) -> bool:
    """Whether the restart that goes on is one of marked pods only."""
    return job.state.get("reason") in _TARGETED


def targets(job: Job, action: Action, about: Happening, *, among: Sequence[Member]) -> list[Member]:
    """The pods that an action is about, whether or not they are being deleted."""
    task = job.task(about.task)
    of_task = [member for member in among if member.task == about.task]
    if action is Action.RESTART_TASK:
        return of_task
    if action is Action.RESTART_PARTITION and task is not None:
        return [m for m in of_task if task.partition_of(m.index) == about.partition]
    return [member for member in of_task if member.name == about.pod]
