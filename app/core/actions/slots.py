"""Slots: room for members that nobody has created yet.

A gang that may run asks for its minimum whether or not its pods exist, so that room is found for
all of it at once and the pods are created into it. A slot has the role of the member it waits for
where a role's minimum says which one is missing; other missing members are spread over the roles
that are known. Its shape is that of the role (a sibling's, or what the owning vcjob says), else any
sibling's, else an equal part of what ``minResources`` leaves after the known members.

Members that exist but cannot be placed (terminating, failed, held by somebody else's gate) are not
missing: no room is kept for them.
"""

from collections.abc import Iterator, MutableMapping
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
        fallback = gang.role_shapes[min(gang.role_shapes)]
    elif gang.min_request is not None:
        requests = _equal_part(gang, axis, of=len(roles))
        fallback = made.setdefault(requests, PodShape(requests))
    else:
        return ()
    return tuple(_slots(gang, roles, axis, fallback))


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


def _equal_part(gang: Gang, axis: ResourceAxis, *, of: int) -> Amounts:
    """One of ``of`` parts of what ``minResources`` leaves, rounded up, and one pod."""
    waiting: Vector = sum((t.request for t in gang.waiting), np.zeros_like(gang.allocated))
    rest = np.maximum(claimable(gang) - waiting, 0)
    return amounts({**dict(axis.amounts(-(-rest // of))), PODS: 1})


def _slots(gang: Gang, roles: list[str], axis: ResourceAxis, fallback: PodShape) -> Iterator[Task]:
    number: dict[str, int] = {}
    vectors: dict[int, Vector] = {}
    for role in roles:
        shape = gang.role_shapes.get(role, fallback)
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
