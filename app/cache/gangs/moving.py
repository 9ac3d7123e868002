"""What becomes of a place when its pod moves to another group.

A reservation was made for the old group and stays there. Not when the Binding is under way: that
cannot be taken back, and the new group does not count on it before the pod is bound. Nor when a
controller made a PodGroup for a pod that had its place without one: that is as good there, and so
is a Binding under way.
"""

from dataclasses import replace

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, Stage
from app.model.gang import Task
from app.model.pod import Pod, TaskStatus

_BROUGHT = frozenset({Stage.PLANNED, Stage.BINDING})
"""A call of Bind that is held is for the old group."""


def brings_place(member: Member, pod: Pod, before: Group, group: Group | None) -> bool:
    """Whether ``member`` of ``before``, which is ``pod`` now, keeps its place in ``group``."""
    if group is None or group.pod_group is None or group.deleting:
        return False
    if member.stage not in _BROUGHT or pod.status is not TaskStatus.PENDING:
        return False
    alone = before.solo and group.needs_any_one
    return alone and before.queue == group.queue


def moved(member: Member, pod: Pod, task: Task, *, brings: bool, now: float) -> Member:
    """The member of the new group; ``brings``: with its place."""
    fresh = Member(
        pod,
        pod.group,
        task,
        since=now,
        refused=member.refused,
        hinted=member.hinted,
        chosen=member.chosen,
        chosen_at=member.chosen_at,
        lost=member.lost or pod.failed_leaving,
        story=member.story,
    )
    if not (brings or member.stage is Stage.BINDING or pod.node):
        return fresh
    return replace(
        fresh,
        stage=member.stage,
        node=member.node,
        exchange=member.exchange,
        since=member.since,
        told=member.told,
        sent=member.sent,
        answer=member.answer,
        void=member.void if brings else member.stage is not Stage.WAITING and not pod.node,
    )
