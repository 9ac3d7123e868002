"""Which pods are made now where a ResourceQuota of the namespace counts those that wait.

A pod that waits takes its part of the quota as one that runs does. So pods beyond the minimum of
the job are made only when its queue can hold them. Not so pods with ``queue-allocation-gate``,
which an autoscaler is to see, and pods of schedulers that are not ours.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from app.controllers import inherited
from app.controllers.job import group
from app.controllers.job.members import Member
from app.controllers.job.sync import Replica
from app.controllers.job.view import Job
from app.model.pod import QUEUE_GATE
from app.wire import unstructured


def made_now(
    job: Job,
    missing: Sequence[Replica],
    members: Sequence[Member],
    *,
    priorities: Mapping[str, int],
    bearable: Mapping[str, int],
    is_ours: Callable[[Replica], bool],
) -> list[Replica]:
    """What is made now of ``missing``; ``bearable``: how many of a task its queue can hold.

    Pods of the job that have no node yet come first. Of partitions all that is missing of one is
    made, or nothing.
    """
    lacking = _lacking(job, members, priorities)
    ahead = sum(not (member.bound or member.ended) for member in members)
    used = 0
    chosen: list[Replica] = []
    for unit in _units(missing):
        task = unit[0].task
        if lacking[task.name] > 0 or not is_ours(unit[0]) or is_shown(job, unit[0]):
            lacking[task.name] -= len(unit)
            chosen += unit
        elif ahead + used + len(unit) <= bearable.get(task.name, 0):
            used += len(unit)
            chosen += unit
    return chosen


def is_shown(job: Job, replica: Replica) -> bool:
    """Whether the replica's pod is to be seen by autoscalers as soon as its queue has room."""
    template = unstructured.annotations(replica.task.template)
    own = inherited.annotations_of(unstructured.annotations(job.item))
    return {**template, **own}.get(QUEUE_GATE) == "true"


def _lacking(job: Job, members: Sequence[Member], priorities: Mapping[str, int]) -> Counter[str]:
    """How many pods of each task the minimum of the job lacks."""
    lacking = Counter(group.needed(job, priorities))
    lacking.subtract(
        member.task for member in members if not member.deleting and member.phase != "Failed"
    )
    return lacking


def _units(missing: Sequence[Replica]) -> Iterator[list[Replica]]:
    """Replicas one by one; those of a partition together."""
    for (_, partition), found in groupby(
        missing, key=lambda each: (each.task.name, each.task.partition_of(each.index))
    ):
        unit = list(found)
        if partition:
            yield unit
        else:
            yield from ([replica] for replica in unit)
