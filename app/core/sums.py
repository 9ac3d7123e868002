"""What the groups of each queue amount to, as sums of the parts of groups.

A group's *part* is a matrix of shape ``(6, R)`` whose rows are the vectors of
:class:`~app.model.snapshot.QueueUsage`, so that taking one part off and putting another on are two
additions.
"""

import numpy as np

from app.core.accounts import claimable, unadmitted_request
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.resources import Matrix, Vector
from app.model.snapshot import QueueUsage

Part = tuple[QueueName, Matrix]

_ALLOCATED, _REQUEST, _INQUEUE, _ELASTIC, _RELEASING, _COMMITTED = range(6)


def part_of(gang: Gang) -> Part:
    """What ``gang`` adds to its queue (volcano.md §3.6, proportion)."""
    part = np.zeros((6, len(gang.allocated)), dtype=np.int64)
    part[_ALLOCATED] = gang.allocated
    part[_REQUEST] = gang.allocated if gang.set_aside else gang.request + unadmitted_request(gang)
    if gang.claims:
        part[_INQUEUE] = claimable(gang)
        if gang.allocated.any() or gang.unplaced_claim:
            part[_COMMITTED] = part[_INQUEUE]
    least = 0 if gang.min_request is None else gang.min_request
    np.maximum(gang.allocated - least, 0, out=part[_ELASTIC])
    part[_RELEASING] = gang.releasing
    return gang.queue, part


def with_part(usage: QueueUsage | None, amounts: Matrix) -> QueueUsage:
    """``usage`` (None: a queue without groups) and one group more, which adds ``amounts``."""
    before = np.zeros_like(amounts) if usage is None else _matrix(usage)
    return usage_of(before + amounts, groups=1 if usage is None else usage.groups + 1)


def without_part(usage: QueueUsage, amounts: Matrix) -> QueueUsage:
    """``usage`` without a group that adds ``amounts``."""
    return usage_of(_matrix(usage) - amounts, groups=usage.groups - 1)


def _matrix(usage: QueueUsage) -> Matrix:
    zero = np.zeros_like(usage.allocated)
    releasing = zero if usage.releasing is None else usage.releasing
    committed = zero if usage.committed is None else usage.committed
    rows = usage.allocated, usage.request, usage.inqueue, usage.elastic, releasing, committed
    return np.stack(rows)


def usage_of(sums: Matrix, *, groups: int) -> QueueUsage:
    """The usage of a queue with those sums, shape ``(6, R)``, which are read-only from now on."""
    sums.flags.writeable = False
    allocated, request, inqueue, elastic, releasing, committed = sums
    return QueueUsage(
        allocated,
        request,
        inqueue,
        elastic,
        groups=groups,
        releasing=_unless_zero(releasing),
        committed=_unless_zero(committed),
    )


def _unless_zero(sums: Vector) -> Vector | None:
    return sums if sums.any() else None
