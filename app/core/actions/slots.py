"""Slots: room for members that nobody has created yet.

A gang that may run asks for its minimum, whether or not its pods exist: a member that is missing is
planned as a slot of the shape it will have, so that the whole gang's room is found at once and its
pods find it when they come. The shape of a missing member of a role is a sibling's, or what the
owning vcjob says; without either, an equal part of what ``minResources`` leaves after the known
members.
"""

from collections.abc import Iterator

import numpy as np

from app.model.gang import Gang, Task
from app.model.ids import PodUid
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import PODS, Amounts, ResourceAxis, amounts, is_best_effort
from app.model.shape import PodShape

_TOO_FEW = "Not enough valid tasks for gang-scheduling, valid: {valid}, min: {minimum}"


def missing(gang: Gang, axis: ResourceAxis) -> tuple[Task, ...] | Refusal:
    """Slots for the members that the minimum needs beyond those that exist.

    Refused (NotEnoughTasks) when nothing tells what they will ask for.
    """
    valid = gang.counts.ready + len(gang.waiting)
    if valid >= gang.min_member and not _lacking(gang):
        return ()
    slots: list[Task] = []
    unknown = max(gang.min_member - valid, 0)
    for role, count in _lacking(gang):
        shape = gang.role_shapes.get(role)
        if shape is not None:
            slots += _slots(role, shape, count, axis)
            unknown -= count
    if unknown <= 0:
        return tuple(slots)
    return _completed(gang, axis, slots, unknown)


def _completed(
    gang: Gang, axis: ResourceAxis, slots: list[Task], count: int
) -> tuple[Task, ...] | Refusal:
    role, shape = _any_shape(gang) or ("", _share(gang, axis, slots, count))
    if shape is None:
        valid = gang.counts.ready + len(gang.waiting)
        return Refusal(
            Cause.NOT_ENOUGH_TASKS,
            where=gang.key,
            shortfalls=(Shortfall(PODS, asked=gang.min_member, free=valid),),
            detail=_TOO_FEW.format(valid=valid, minimum=gang.min_member),
        )
    return (*slots, *_slots(role, shape, count, axis))


def _lacking(gang: Gang) -> list[tuple[str, int]]:
    """Per role: how many members its minimum still misses, by name."""
    return [
        (role, least - gang.role_valid.get(role, 0))
        for role, least in sorted(gang.role_minimum.items())
        if least > gang.role_valid.get(role, 0)
    ]


def _any_shape(gang: Gang) -> tuple[str, PodShape] | None:
    """The shape of the only role there is: with several, nobody knows which one is missing."""
    if len(gang.role_shapes) == 1:
        return next(iter(gang.role_shapes.items()))
    return None


def _share(gang: Gang, axis: ResourceAxis, slots: list[Task], count: int) -> PodShape | None:
    """An equal part of what ``minResources`` leaves, rounded up."""
    if gang.min_request is None:
        return next((gang.role_shapes[role] for role in sorted(gang.role_shapes)), None)
    known = gang.request + sum((s.request for s in slots), np.zeros_like(gang.request))
    rest = np.maximum(gang.min_request - known, 0)
    part = -(-rest // count)
    return PodShape(requests=_with_pod(axis.amounts(part)))


def _with_pod(requests: Amounts) -> Amounts:
    return amounts({**dict(requests), PODS: 1})


def _slots(role: str, shape: PodShape, count: int, axis: ResourceAxis) -> Iterator[Task]:
    request = axis.vector(shape.requests)
    for number in range(count):
        yield Task(
            uid=PodUid(""),
            name=f"{role}#{number}",
            role=role,
            shape=shape,
            request=request,
            priority=1,
            created=0.0,
            best_effort=is_best_effort(shape.requests),
        )
