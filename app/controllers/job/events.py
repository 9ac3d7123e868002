"""What has happened to a job and is not yet answered, read off what is there.

No transition has to be witnessed: an event lasts until what was done about it removes its cause,
so a controller that starts anew finds it again.

============= ============================================== ==================================
event         is there while                                 and goes away because
============= ============================================== ==================================
PodFailed     a pod of this version has failed, also one     the version grows; it gets our mark
              that others delete: its kubelet says so;
              but none that Pumice evicts
PodEvicted    a pod of this version is deleted by others,    the version grows; it gets our mark;
              or the status counts more than are there       the status is written anew
PodPending    a pod of this version is pending               it no longer is
TaskCompleted every replica of a task has succeeded          the version grows; pods are taken;
              (see ``completion``)                           the task shrank: they get a note
TaskFailed    the containers of a task restarted too often   the version grows; pods are taken
Unknown       the PodGroup is in that phase                  a kill takes the PodGroup
JobUpdated    the PodGroup is of another size of the job     a sync brings it up to date, once no
                                                             policy is to answer later
Stranded      the PodGroup says since when it runs below     a sync brings it up to date; a kill
              its minimum                                    takes the PodGroup
============= ============================================== ==================================

The second kind of PodEvicted needs every deletion of our own to be preceded by a status that no
longer counts the pod: then a pod that is missing was taken by another client. A pod that is made in
place of an evicted one carries the time, for policies that give it a while to run again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from app.controllers.job import completion, policies
from app.controllers.job.members import Member, by_task
from app.controllers.job.policies import Happening
from app.controllers.job.view import UNLIMITED_RETRIES, Job, Task, moment
from app.controllers.job.vocabulary import JOB_SIZE, Event, Phase
from app.core.gangs.stranded import STRANDED_SINCE
from app.wire import unstructured
from app.wire.unstructured import Object

_WATCHED: Final = frozenset({Phase.PENDING, Phase.RUNNING, Phase.RESTARTING})


def happenings(
    job: Job,
    members: Sequence[Member],
    group: Object | None,
    *,
    evicted: Mapping[str, float],
    failed: Sequence[Happening] = (),
) -> list[Happening]:
    """What is to be answered, in the order in which it happened.

    ``evicted``: names of evicted pods that are not replaced yet, and since when; ``failed``:
    failures of pods that are gone.
    """
    if job.phase not in _WATCHED or not policies.are_there_any(job):
        return []
    found = [*of_pods(job, members), *_of_tasks(job, members), *_gone(job, members, evicted)]
    found += [one for one in failed if _is_wanted(job, one)]
    if job.phase is not Phase.RESTARTING and group is not None:
        found += _of_group(job, group)
    return sorted(found, key=lambda one: (one.at or float("inf"), one.identity))


def of_pods(job: Job, members: Sequence[Member]) -> Iterator[Happening]:
    """What pods tell of themselves."""
    tasks = {task.name: task for task in job.tasks}
    for member in members:
        task = tasks.get(member.task)
        if task is None or member.marked or member.version < job.version:
            continue
        for event in _events(job, member, task):
            yield _about(event, member, task, at=_since(event, member))
        if member.evicted and member.phase == "Pending" and not member.deleting:
            yield _about(Event.POD_EVICTED, member, task, at=member.evicted)


def missing(job: Job, members: Sequence[Member], task: Task) -> list[int]:
    """Replicas of the task that the status counts and that are not there any more."""
    counted = sum(job.counted(task.name).values())
    there = [member for member in members if member.task == task.name]
    present = sum(not member.deleting or _is_evicted(job, member, task) for member in there)
    gone = min(counted, task.replicas) - present
    if gone <= 0:
        return []
    known = {member.index for member in there}
    return [index for index in range(task.replicas) if index not in known][:gone]


def _gone(job: Job, members: Sequence[Member], evicted: Mapping[str, float]) -> Iterator[Happening]:
    known = {member.name for member in members}
    of = by_task(members)
    for task in job.tasks:
        missed = frozenset(missing(job, of.get(task.name, ()), task))
        for index in range(task.replicas):
            name = f"{job.key.name}-{task.name}-{index}"
            if index in missed or (name in evicted and name not in known):
                yield Happening(
                    Event.POD_EVICTED,
                    at=evicted.get(name, 0.0),
                    task=task.name,
                    pod=name,
                    partition=task.partition_of(index),
                )


def _is_wanted(job: Job, about: Happening) -> bool:
    """Whether the job still has the replica."""
    task = job.task(about.task)
    index = about.pod.rpartition("-")[2]
    return task is not None and int(index) < task.replicas


def _events(job: Job, member: Member, task: Task) -> Iterator[Event]:
    if member.deleting and not _is_evicted(job, member, task):
        return
    if member.deleting:
        yield Event.POD_EVICTED
    elif member.phase == "Pending":
        yield Event.POD_PENDING
    if member.phase == "Failed" and not member.is_victim:
        yield Event.POD_FAILED


def _is_evicted(job: Job, member: Member, task: Task) -> bool:
    """Whether the member is being deleted, and not by us."""
    ours = member.marked or member.version < job.version or member.index >= task.replicas
    return member.deleting and not ours


def _since(event: Event, member: Member) -> float:
    if event is Event.POD_EVICTED:
        return member.deleted
    return member.finished if event is Event.POD_FAILED else member.created


def _of_tasks(job: Job, members: Sequence[Member]) -> Iterator[Happening]:
    of = by_task(members)
    for task in job.tasks:
        of_task = of.get(task.name, ())
        there = completion.there(task, of_task)
        last = completion.completed_by(job, task, of_task)
        if last is not None:
            yield _about(Event.TASK_COMPLETED, last, task, at=last.finished)
        current = [member for member in there if member.version >= job.version]
        going = [member for member in current if member.phase in {"Pending", "Running"}]
        # What has ended is not restarted any more.
        restarts = sum(m.restarts for m in there if not m.ended)
        if going and UNLIMITED_RETRIES != task.max_retry <= restarts:
            worst = max(going, key=lambda member: (member.restarts, member.name))
            yield _about(Event.TASK_FAILED, worst, task)


def _of_group(job: Job, group: Object) -> Iterator[Happening]:
    status = unstructured.status(group)
    if status.get("phase") == "Unknown":
        yield Happening(Event.UNKNOWN, at=_since_when(status))
    if unstructured.annotations(group).get(JOB_SIZE, job.size) != job.size:
        yield Happening(Event.JOB_UPDATED)
    since = moment(unstructured.annotations(group).get(STRANDED_SINCE))
    if since and job.stranded is not None:
        yield Happening(Event.STRANDED, at=since)


def _since_when(status: Mapping[str, object]) -> float:
    conditions = status.get("conditions") or ()
    assert isinstance(conditions, Sequence)
    true = (entry for entry in conditions if entry.get("status") == "True")
    return max((moment(entry.get("lastTransitionTime")) for entry in true), default=0.0)


def _about(event: Event, member: Member, task: Task, *, at: float = 0.0) -> Happening:
    return Happening(
        event,
        at=at,
        task=member.task,
        pod=member.name,
        uid=member.uid,
        partition=task.partition_of(member.index),
        exit_code=member.exit_code if event is Event.POD_FAILED else None,
    )
