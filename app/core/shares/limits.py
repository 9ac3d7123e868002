"""What a queue may hold, and the refusal when a group would take it beyond that.

All limits are vectors on the snapshot's axis with ``UNLIMITED`` where nothing is set. The numbers
in a refusal are those of the very comparison that failed: ``asked`` is what the group or pod still
needs, ``free`` what the queue has left of ``limit``. Where that is not its capability but what the
cluster leaves to it, the queues that are guaranteed the rest hold it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from app.core.arguments import Arguments
from app.model.amounts import UNLIMITED, Amounts
from app.model.conf import PluginConf
from app.model.device_claims import CountedClaims
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import GUARANTEE, Cause, Holder, Refusal, Shortfall
from app.model.resources import PODS_COLUMN, ResourceAxis, Vector
from app.model.snapshot import Snapshot
from app.model.workload import Queue

_MOST_RIVALS: Final = 3


def counted_claims_of(conf: PluginConf) -> CountedClaims:
    """What of the devices that pods claim counts as room of their queue; raises ``ConfError``."""
    arguments = Arguments(conf)
    return CountedClaims(
        devices=arguments.flag("capacity.DynamicResourceAllocationEnable", default=True),
        amounts=arguments.flag("capacity.DRAConsumableCapacityEnable", default=True),
    )


def on_axis(values: Amounts, axis: ResourceAxis, *, absent: int = 0) -> Vector:
    """``values`` on ``axis``; names off the axis are left out, as no node has them."""
    known = tuple((name, amount) for name, amount in values if name in axis.index)
    return axis.vector(known, absent=absent)


def capability(queue: Queue, axis: ResourceAxis) -> Vector:
    """The queue's own hard limit; what it does not name is unlimited."""
    return on_axis(queue.capability, axis, absent=UNLIMITED)


def capability_of(queue: Queue, resource: str) -> int:
    """The queue's own hard limit of one ``resource``."""
    return _amount(queue.capability, resource)


def real_capabilities(snapshot: Snapshot) -> dict[QueueName, Vector]:
    """What each queue of a flat set can ever hold.

    The cluster less what is guaranteed to the others, and not more than its own capability.
    """
    axis, queues = snapshot.axis, snapshot.queues
    guaranteed = total([on_axis(q.guarantee, axis) for q in queues.values() if q.guarantee], axis)
    unreserved: Vector = np.maximum(snapshot.total - guaranteed, 0)
    limits: dict[QueueName, Vector] = {}
    for name, queue in queues.items():
        mine = unreserved + on_axis(queue.guarantee, axis) if queue.guarantee else unreserved
        limits[name] = np.minimum(mine, capability(queue, axis)) if queue.capability else mine
    return limits


def guaranteed(queues: Iterable[Queue]) -> tuple[Queue, ...]:
    """Queues that are guaranteed something."""
    return tuple(queue for queue in queues if queue.guarantee)


def needs_guarantee(
    queue: Queue | None, request: Vector, *, held: Vector, axis: ResourceAxis
) -> bool:
    """Whether a queue that has ``held`` keeps less than it is guaranteed without ``request``."""
    if queue is None or not queue.guarantee:
        return False
    least = on_axis(queue.guarantee, axis)
    return bool(((request > 0) & (least > 0) & (held - request < least)).any())


def total(vectors: Iterable[Vector], axis: ResourceAxis) -> Vector:
    """The sum of ``vectors``."""
    out = np.zeros(len(axis), dtype=np.int64)
    for vector in vectors:
        out += vector
    return out


def missing(gang: Gang) -> Vector | None:
    """What ``gang`` still needs of its ``minResources``, None when they are not set.

    Members that hold room already are not asked for twice: a gang that lost a member asks for that
    member only, so it cannot be kept out by its own remains.
    """
    if gang.min_request is None or not gang.allocated.any():
        return gang.min_request
    rest: Vector = np.maximum(gang.min_request - gang.allocated, 0)
    return rest


def exceeding(asked: Vector, *, held: Vector, limit: Vector) -> tuple[int, ...]:
    """Axis positions of what is asked for and would exceed ``limit``; never that of ``pods``.

    Volcano's ``LessEqualWithDimension`` (volcano.md §3.1). Every gang and every member is compared
    with several limits, so this is plain Python (:mod:`app.core.shares.shares`).
    """
    amounts = zip(asked.tolist(), held.tolist(), limit.tolist(), strict=True)
    return tuple(
        [
            position
            for position, (more, now, most) in enumerate(amounts)
            if more > 0 and now + more > most and position != PODS_COLUMN
        ]
    )


def with_terminating(held: Vector, terminating: Vector | None) -> Vector:
    """What counts against a limit for what is to be placed now."""
    return held if terminating is None else held + terminating


def excess(held: Vector, *, limit: Vector) -> Vector:
    """By how much ``held`` exceeds ``limit``, shape ``(R,)``; never in ``pods``."""
    over: Vector = np.maximum(held - limit, 0)
    over[PODS_COLUMN] = 0
    return over


def shortfalls(
    short: tuple[int, ...],
    *,
    axis: ResourceAxis,
    asked: Vector,
    held: Vector,
    limit: Vector,
    terminating: Vector | None = None,
) -> tuple[Shortfall, ...]:
    """The numbers at the positions ``short``; ``terminating`` is part of what is ``held``."""
    return tuple(
        Shortfall(
            resource=axis.names[i],
            asked=int(asked[i]),
            free=max(int(limit[i]) - int(held[i]), 0),
            limit=int(limit[i]),
            terminating=0 if terminating is None else int(terminating[i]),
        )
        for i in short
    )


def insufficient(lack: tuple[Shortfall, ...]) -> str:
    """Volcano's event text for a queue without room (volcano.md §3.6, proportion)."""
    return "queue resource quota insufficient: " + ", ".join(
        f"insufficient {s.resource}" for s in lack
    )


def no_room(queue: QueueName, lack: tuple[Shortfall, ...], *, cause: Cause) -> Refusal:
    """The refusal that ``queue`` has no room for ``lack``."""
    return Refusal(cause=cause, where=queue, shortfalls=lack, detail=insufficient(lack))


def over_limit(queue: Queue, lack: tuple[Shortfall, ...], *, rivals: Sequence[Queue]) -> Refusal:
    """The refusal that ``queue`` may not hold so much: by its capability, or for its ``rivals``.

    Those are the queues whose guarantees it cannot touch; it may be one of them itself.
    """
    first = lack[0]
    if first.limit is None or first.limit >= capability_of(queue, first.resource):
        return no_room(queue.name, lack, cause=Cause.QUEUE_QUOTA)
    kept = {q.name: _amount(q.guarantee, first.resource, absent=0) for q in rivals}
    ranked = sorted((-amount, name) for name, amount in kept.items() if name != queue.name)
    holders = tuple(
        Holder(f"{GUARANTEE} queue {name}", first.resource, -amount)
        for amount, name in ranked[:_MOST_RIVALS]
        if amount
    )
    return replace(no_room(queue.name, lack, cause=Cause.QUEUE_ROOM), holders=holders)


def _amount(amounts: Amounts, resource: str, *, absent: int = UNLIMITED) -> int:
    return next((amount for name, amount in amounts if name == resource), absent)
