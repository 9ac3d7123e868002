"""Slots: room for members that nobody has created yet.

A gang that may run asks for its minimum, whether or not its pods exist: a member that is missing is
planned as a slot of the shape it will have, so that the whole gang's room is found at once and its
pods find it when they come. The shape of a missing member of a role is a sibling's, or what the
owning vcjob says; without either, an equal part of what ``minResources`` leaves after the known
members.
"""

import numpy as np

from app.model.gang import Gang, Task
from app.model.ids import PodUid
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import PODS, Amounts, ResourceAxis, Vector, amounts, is_best_effort
from app.model.shape import PodShape

_TOO_FEW = "Not enough valid tasks for gang-scheduling, valid: {valid}, min: {minimum}"


def missing(gang: Gang, axis: ResourceAxis) -> tuple[Task, ...] | Refusal:
    """Slots for the members that the minimum needs beyond those that exist.

    Refused (NotEnoughTasks) when nothing tells what they will ask for.
    """
    roles = _missing_roles(gang)
    if not roles:
        return ()
    shapes = {role: _shape_of(gang, role) for role in roles}
    unknown = [role for role in roles if shapes[role] is None]
    known = [
        _slot(role, shape, number, axis)
        for number, role in enumerate(roles)
        if (shape := shapes[role]) is not None
    ]
    if not unknown:
        return tuple(known)
    if gang.min_request is None:
        return _too_few(gang)
    taken = gang.request + sum((slot.request for slot in known), np.zeros_like(gang.request))
    parts = _parts(np.maximum(gang.min_request - taken, 0), len(unknown), axis)
    return (
        *known,
        *(
            _slot(role, PodShape(requests=part), number, axis)
            for number, (role, part) in enumerate(zip(unknown, parts, strict=True))
        ),
    )


def _missing_roles(gang: Gang) -> list[str]:
    """The role of each missing member, empty where any role will do."""
    roles = [role for role, count in _lacking(gang) for _ in range(count)]
    valid = gang.counts.ready + len(gang.waiting)
    return roles + [""] * max(gang.min_member - valid - len(roles), 0)


def _shape_of(gang: Gang, role: str) -> PodShape | None:
    """A sibling's shape; for a member of any role, that of the only role, else of the first."""
    if role in gang.role_shapes:
        return gang.role_shapes[role]
    if role or (len(gang.role_shapes) > 1 and gang.min_request is not None):
        return None
    return next((gang.role_shapes[name] for name in sorted(gang.role_shapes)), None)


def _too_few(gang: Gang) -> Refusal:
    valid = gang.counts.ready + len(gang.waiting)
    return Refusal(
        Cause.NOT_ENOUGH_TASKS,
        where=gang.key,
        shortfalls=(Shortfall(PODS, asked=gang.min_member, free=valid),),
        detail=_TOO_FEW.format(valid=valid, minimum=gang.min_member),
    )


def _parts(rest: Vector, count: int, axis: ResourceAxis) -> list[Amounts]:
    """``rest`` in ``count`` parts as equal as integers can be, adding up to it exactly."""
    return [
        amounts({**dict(axis.amounts(rest * (n + 1) // count - rest * n // count)), PODS: 1})
        for n in range(count)
    ]


def _lacking(gang: Gang) -> list[tuple[str, int]]:
    """Per role: how many members its minimum still misses, by name."""
    return [
        (role, least - gang.role_valid.get(role, 0))
        for role, least in sorted(gang.role_minimum.items())
        if least > gang.role_valid.get(role, 0)
    ]


def _slot(role: str, shape: PodShape, number: int, axis: ResourceAxis) -> Task:
    return Task(
        uid=PodUid(""),
        name=f"{role}#{number}",
        role=role,
        shape=shape,
        request=axis.vector(shape.requests),
        priority=1,
        created=0.0,
        best_effort=is_best_effort(shape.requests),
    )
