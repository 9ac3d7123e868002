"""Slots: room for members that do not exist yet.

A gang that may run asks for its minimum whether or not its pods exist, so that room is found for
all of it at once and the pods are created into it. A slot has the role of the member it waits for
where a role's minimum says which one is missing. Other missing members are the first ones that the
owning vcjob has replicas for, as in its ``minResources``; where nothing tells how many there are,
they are spread over the roles that are known. Its shape is that of the role (a sibling's, or what
the owning vcjob says), else any sibling's, else an equal part of what ``minResources`` leaves after
the known members.

Members that exist but cannot be placed (terminating, failed, held by a foreign gate) are not
missing: no room is kept for them, unless another one is awaited in the stead of one that the gang
has lost (:attr:`app.model.gang.Counts.lost`). Nor is room kept again for members that did not come
while it was kept, nor for a gang that lacks more of them than all nodes take: ``minMember`` is any
32-bit number, and a slot is an object. Nor for a gang that lacks whole sub-groups, or for members
of sub-groups that ask for a domain of the network: only the labels of members that exist tell in
which sub-group they are.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping

import numpy as np

from app.core.accounts import claimable
from app.model.amounts import PODS, Amounts, amounts, is_best_effort
from app.model.gang import Gang, Task
from app.model.ids import PodUid
from app.model.resources import PODS_COLUMN, ResourceAxis, Vector
from app.model.shape import PodShape
from app.model.snapshot import Snapshot

SMALL = 1_000
"""How many members may be missing whatever the nodes take: a cluster may be about to grow."""


def slots_of(
    gang: Gang, snapshot: Snapshot, *, made: MutableMapping[Amounts, PodShape]
) -> tuple[Task, ...]:
    """A slot for every member that the minimum needs and that does not exist.

    Empty when nothing tells what they will ask for, or when they are too many for the cluster.
    Shapes are made up once per request, in ``made``.
    """
    axis = snapshot.axis
    missing = _missing(gang, snapshot)
    roles = [role for role, count in missing.items() for _ in range(count)]
    if not roles:
        return ()
    if gang.role_shapes:
        by_role = {role: _shape_of(role, gang) for role in missing}
        shapes = [by_role[role] for role in roles]
    else:
        parts = _equal_parts(gang, axis, count=len(roles))
        shapes = [made.setdefault(part, PodShape(part)) for part in parts]
    return tuple(_slots(gang, zip(roles, shapes, strict=True), axis))


def least_slots(
    gang: Gang, snapshot: Snapshot, *, made: MutableMapping[Amounts, PodShape]
) -> list[tuple[Task, int]]:
    """One of the slots of :func:`slots_of` for each role, and how many there are.

    Where they are equal parts of ``minResources``, the one that asks for least.
    """
    missing = _missing(gang, snapshot)
    if not missing:
        return []
    if gang.role_shapes:
        shapes = {role: _shape_of(role, gang) for role in missing}
    else:
        parts = _unclaimed(gang) // sum(missing.values())
        part = amounts({**dict(snapshot.axis.amounts(parts)), PODS: 1})
        shapes = dict.fromkeys(missing, made.setdefault(part, PodShape(part)))
    return _one_of_each(gang, shapes, missing, snapshot.axis)


def other_slots(gang: Gang, snapshot: Snapshot) -> list[tuple[Task, int]]:
    """What else than :func:`least_slots` members that do not exist may be, as the owner says."""
    missing, there = _missing(gang, snapshot), _there(gang)
    others = {
        role: replicas - there[role] - missing.get(role, 0)
        for role, replicas in gang.role_replicas.items()
    }
    others = {role: count for role, count in others.items() if missing and count > 0}
    shapes = {role: _shape_of(role, gang) for role in others}
    return _one_of_each(gang, shapes, others, snapshot.axis)


def request_of(gang: Gang, snapshot: Snapshot) -> Vector:
    """What the slots of ``gang`` ask for together, shape ``(R,)``, without making them."""
    axis = snapshot.axis
    request = np.zeros(len(axis), dtype=np.int64)
    missing = _missing(gang, snapshot)
    if gang.role_shapes:
        for role, count in missing.items():
            request += count * axis.vector(_shape_of(role, gang).requests)
    elif gang.min_request is not None and missing:
        request += _unclaimed(gang)
        request[PODS_COLUMN] = sum(missing.values())
    return request


def is_described(gang: Gang) -> bool:
    """Whether anything tells what the gang's missing members will ask for."""
    return bool(gang.role_shapes) or gang.min_request is not None


def has_guessed_slots(gang: Gang) -> bool:
    """Whether a slot of ``gang`` may ask for something else than the member that it stands for.

    So where it is an equal part of ``minResources``, or has the shape of a sibling of another role.
    So also where no owner describes the members and none lives: the shape is that of members that
    are gone, and nothing tells that others will come.
    """
    if not gang.awaits_members:
        return False
    living = gang.counts.ready_members + gang.counts.pending
    if not living and not gang.role_replicas:
        return True
    roles = gang.role_shapes
    return not roles or any(role not in roles for role in _lacking(gang))


def _missing(gang: Gang, snapshot: Snapshot) -> dict[str, int]:
    """How many members of each role do not exist, by role name.

    None when they are too many, when nothing tells what they will ask for or in which sub-group
    they will be, or when no member is awaited.
    """
    if not is_described(gang) or not gang.awaits_members:
        return {}
    if gang.lacking_of_policies(gang.sub_group_valid):
        return {}
    lacking = _lacking(gang)
    missing = _count_missing(gang, lacking)
    if not 0 < missing <= max(int(snapshot.total[PODS_COLUMN]), SMALL):
        return {}
    found = _by_role(gang, lacking, missing)
    return {} if _may_need_domains(gang, found) else found


def _may_need_domains(gang: Gang, missing: Mapping[str, int]) -> bool:
    """Whether members of these roles may be of a sub-group that asks for a domain.

    The policies of a vcjob are called as its tasks, which are the roles.
    """
    asking = {policy.name for policy in gang.sub_groups if policy.topology is not None}
    return bool(asking & missing.keys() or asking - gang.role_replicas.keys())


def _shape_of(role: str, gang: Gang) -> PodShape:
    """The role's, or a sibling's; some role has one."""
    shapes = gang.role_shapes
    return shapes[role] if role in shapes else shapes[min(shapes)]


def _lacking(gang: Gang) -> dict[str, int]:
    """How many members that do not exist roles lack of their minimums, by name."""
    return dict(sorted(gang.lacking_of_roles(_there(gang)).items()))


def _there(gang: Gang) -> Counter[str]:
    """How many members, and slots, each role has."""
    there = Counter(gang.role_valid)
    there.update(gang.role_hidden)
    return there


def _count_missing(gang: Gang, lacking: Mapping[str, int]) -> int:
    """How many members do not exist.

    Of those that exist, cannot be placed and name no role, any may be of one that lacks some.
    """
    counts = gang.counts
    existing = counts.there
    hidden = existing - counts.ready - len(gang.waiting) - counts.gated
    named = sum(count for role, count in gang.role_hidden.items() if role)
    return max(gang.min_member - existing, sum(lacking.values()) - (hidden - named), 0)


def _by_role(gang: Gang, lacking: Mapping[str, int], missing: int) -> dict[str, int]:
    """``missing`` parted: what roles lack first, then what more there will be, in order.

    The rest in turn over all known.
    """
    counts: Counter[str] = Counter()
    left = missing
    for role, lack in lacking.items():
        counts[role] = min(lack, left)
        left -= counts[role]
    there = _there(gang)
    for role, replicas in gang.role_replicas.items():
        more = min(left, max(replicas - there[role] - counts[role], 0))
        counts[role] += more
        left -= more
    known = sorted(gang.role_shapes) or [""]
    each, more = divmod(left, len(known))
    for number, role in enumerate(known):
        counts[role] += each + (number < more)
    return {role: counts[role] for role in sorted(counts) if counts[role]}


def _one_of_each(
    gang: Gang, shapes: Mapping[str, PodShape], counts: Mapping[str, int], axis: ResourceAxis
) -> list[tuple[Task, int]]:
    return [(task, counts[task.role]) for task in _slots(gang, shapes.items(), axis)]


def _equal_parts(gang: Gang, axis: ResourceAxis, *, count: int) -> list[Amounts]:
    """What ``minResources`` leaves, in ``count`` parts, each with room for one pod.

    Together they are no more than that: the first ones have what cannot be divided.
    """
    least, left = np.divmod(_unclaimed(gang), count)
    return [
        amounts({**dict(axis.amounts(least + (number < left))), PODS: 1}) for number in range(count)
    ]


def _unclaimed(gang: Gang) -> Vector:
    """What ``minResources`` leaves after the known members."""
    waiting: Vector = sum((t.request for t in gang.waiting), np.zeros_like(gang.allocated))
    rest: Vector = np.maximum(claimable(gang) - waiting, 0)
    return rest


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
            priority=0,
            created=gang.created,
            best_effort=is_best_effort(shape.requests),
        )
