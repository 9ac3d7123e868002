"""How many more members of a gang its queue could hold now, be there nodes for them or not."""

from dataclasses import replace

from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.policy import Policies
from app.core.tiers import open_policies
from app.model.amounts import is_best_effort
from app.model.gang import Gang, Task
from app.model.ids import PodUid
from app.model.resources import Vector
from app.model.shape import PodShape
from app.model.snapshot import Snapshot


def bearable(snapshot: Snapshot, policies: Policies, *, gang: Gang, now: float) -> dict[str, int]:
    """By role: how many more of its members, were they the only ones that came.

    What waits in the queue is not looked at. The queue is taken to ask for as much as the cluster
    has, or it would deserve nothing for members that do not exist.
    """
    opened = open_policies(policies, Ledger(_asking(snapshot, gang)), now=now, explain=False)
    if opened.overused(gang.queue) is not None:
        return dict.fromkeys(gang.role_shapes, 0)
    found: dict[str, int] = {}
    known: dict[object, int] = {}
    for role, shape in gang.role_shapes.items():
        if shape.requests not in known:
            known[shape.requests] = _most(opened, gang, _member(role, shape, snapshot), snapshot)
        found[role] = known[shape.requests]
    return found


def _asking(snapshot: Snapshot, gang: Gang) -> Snapshot:
    usage = snapshot.usage[gang.queue]
    more = replace(usage, request=usage.request + snapshot.total)
    return replace(snapshot, usage={**snapshot.usage, gang.queue: more})


def _member(role: str, shape: PodShape, snapshot: Snapshot) -> Task:
    return Task(
        uid=PodUid(""),
        name="",
        role=role,
        shape=shape,
        request=snapshot.axis.vector(shape.requests),
        priority=0,
        created=0.0,
        best_effort=is_best_effort(shape.requests),
    )


def _most(opened: Opened, gang: Gang, task: Task, snapshot: Snapshot) -> int:
    """How many like ``task``: what the queue bears of them together it bears one by one."""
    fits, too_many = 0, _in_cluster(task.request, snapshot.total) + 1
    while too_many - fits > 1:
        count = (fits + too_many) // 2
        together = replace(task, request=task.request * count)
        if opened.allocatable(gang.queue, together) is None:
            fits = count
        else:
            too_many = count
    return fits


def _in_cluster(request: Vector, total: Vector) -> int:
    asked = request > 0
    return int((total[asked] // request[asked]).min()) if asked.any() else 0
