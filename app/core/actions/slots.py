"""Slots: room for members that nobody has created yet.

A gang that may run asks for its minimum whether or not its pods exist, so that room is found for
all of it at once and the pods are created into it. A slot has the role of the member it waits for
where a role's minimum says which one is missing; other missing members are spread over the roles
that are known. Its shape is that of the role (a sibling's, or what the owning vcjob says), else any
sibling's, else an equal part of what ``minResources`` leaves after the known members.

Members that exist but cannot be placed (terminating, failed, held by somebody else's gate) are not
missing: no room is kept for them.
"""

from collections.abc import Iterable, Iterator, MutableMapping
from itertools import cycle, islice

import numpy as np

from app.core.actions.need import role_minimums
from app.core.ledger import claimable
from app.model.gang import Gang, Task
from app.model.ids import PodUid
from app.model.resources import PODS, Amounts, ResourceAxis, Vector, amounts, is_best_effort
from app.model.shape import PodShape


def slots_of(
    gang: Gang, axis: ResourceAxis, *, made: MutableMapping[Amounts, PodShape]
) -> tuple[Task, ...]:
    """A slot for every member that the minimum needs and that does not exist.

    Empty when nothing tells what they will ask for. Shapes are made up once per request, in
    ``made``.
    """
    roles = _missing_roles(gang)
    if not roles:
        return ()
    if gang.role_shapes:
        sibling = gang.role_shapes[min(gang.role_shapes)]
        shapes = [gang.role_shapes.get(role, sibling) for role in roles]
    elif gang.min_request is not None:
        parts = _equal_parts(gang, axis, count=len(roles))
        shapes = [made.setdefault(part, PodShape(part)) for part in parts]
    else:
        return ()
    return tuple(_slots(gang, zip(roles, shapes, strict=True), axis))


def _missing_roles(gang: Gang) -> list[str]:
    """The role of each missing member, by name."""
    counts = gang.counts
    existing = counts.tasks + counts.slots
    if existing >= gang.min_member and not gang.role_minimum:
        return []
    hidden = existing - counts.ready - len(gang.waiting)
    lacking = [
        role
        for role, least in sorted(role_minimums(gang).items())
        for _ in range(least - gang.role_valid.get(role, 0))
    ]
    missing = max(gang.min_member - existing, len(lacking) - hidden, 0)
    others = missing - len(lacking)
    known = sorted(gang.role_shapes) or [""]
    return sorted([*lacking[:missing], *islice(cycle(known), max(others, 0))])


def _equal_parts(gang: Gang, axis: ResourceAxis, *, count: int) -> list[Amounts]:
    """What ``minResources`` leaves, in ``count`` parts, each with room for one pod.

    Together they are no more than that: the first ones have what cannot be divided.
    """
    waiting: Vector = sum((t.request for t in gang.waiting), np.zeros_like(gang.allocated))
    rest = np.maximum(claimable(gang) - waiting, 0)
    least, left = np.divmod(rest, count)
    return [
        amounts({**dict(axis.amounts(least + (number < left))), PODS: 1}) for number in range(count)
    ]


def _slots(
    gang: Gang, wanted: Iterable[tuple[str, PodShape]], axis: ResourceAxis
) -> Iterator[Task]:
    number: dict[str, int] = {}
    vectors: dict[int, Vector] = {}
    for role, shape in wanted:
        request = vectors.get(id(shape))
        if request is None:
            request = vectors[id(shape)] = axis.vector(shape.requests)
        number[role] = number.get(role, -1) + 1
        yield Task(
            uid=PodUid(""),
            name=f"{role}#{number[role]}",
            role=role,
            shape=shape,
            request=request,
            priority=1,
            created=gang.created,
            best_effort=is_best_effort(shape.requests),
        )
