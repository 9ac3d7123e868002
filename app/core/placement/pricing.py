"""What free room is worth: leastrequested, mostrequested, balancedresource and binpack.

All of them look at the share of each resource that would be *left* on the node with the task on it.
Three are linear in these shares, so their weights fold into one coefficient per resource; balanced
adds the spread of the cpu and memory shares (the standard deviation of two numbers is half their
difference):

* leastrequested: mean share left of cpu and memory; mostrequested: mean share used;
* binpack: mean share used of the resources that have a weight and are asked for, by weight;
* balancedresource: ``1 - |left(cpu) - left(memory)| / 2``, not for tasks without requests.

The stock scheduler counts a task (and every resident) that asks for no cpu or memory as 100m and
200 MB, so that such tasks spread. Only real requests are known here, so a task that leaves one of
the two out has its share of ``pods`` in the mean as well: it sees load, and spreads by count.

The same function prices all nodes and a few touched ones, with the same operations in the same
order, so both give the same bits.
"""

from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import FULL_SCORE, Mask, Scores
from app.core.policy import Scoring
from app.model.gang import Task
from app.model.resources import Matrix, ResourceAxis

CPU_COLUMN, MEMORY_COLUMN, PODS_COLUMN = 0, 1, 2
"""Every axis begins with these."""


@dataclass(frozen=True, slots=True)
class Use:
    """``asked`` of the resource at ``column``, and the coefficient of its share left."""

    column: int
    asked: int
    coefficient: float


@dataclass(frozen=True, slots=True)
class Pricing:
    """How nodes are priced for one request."""

    uses: tuple[Use, ...]
    constant: float
    imbalance: float
    """What a difference of 1 between the shares left of cpu and memory costs."""

    def price(self, room: Matrix, inverse: Scores) -> tuple[Mask, Scores]:
        """Whether the request fits, and the score, per column of ``room``.

        ``room`` is what is free and ``inverse`` one over what is allocatable, both ``(R, K)``.
        """
        fits = np.ones(room.shape[1], dtype=np.bool_)
        score = np.full(room.shape[1], self.constant)
        shares: list[Scores] = []
        for use in self.uses:
            left = room[use.column] - use.asked
            if use.asked:
                fits &= left >= 0
            if use.coefficient or (self.imbalance and use.column <= MEMORY_COLUMN):
                share = left * inverse[use.column]
                shares.append(share)
                if use.coefficient:
                    score += use.coefficient * share
        if self.imbalance:
            score -= self.imbalance * np.abs(shares[0] - shares[1])
        return fits, score


def pricing(task: Task, scoring: Scoring, axis: ResourceAxis) -> Pricing:
    """The pricing of ``task``'s request under ``scoring``."""
    asked: list[int] = task.request.tolist()
    coefficients = [0.0] * len(asked)
    counted = [CPU_COLUMN, MEMORY_COLUMN]
    if not (asked[CPU_COLUMN] and asked[MEMORY_COLUMN]):
        counted.append(PODS_COLUMN)
    slope = FULL_SCORE * (scoring.least_requested - scoring.most_requested) / len(counted)
    for column in counted:
        coefficients[column] += slope
    constant = FULL_SCORE * scoring.most_requested
    packed = _packed(asked, scoring, axis)
    total = sum(packed.values())
    if total:
        constant += FULL_SCORE * scoring.binpack_weight
        for column, weight in packed.items():
            coefficients[column] -= FULL_SCORE * scoring.binpack_weight * weight / total
    imbalance = 0.0
    if not task.best_effort:
        constant += FULL_SCORE * scoring.balanced
        imbalance = FULL_SCORE * scoring.balanced / 2
    uses = tuple(
        Use(column, amount, coefficients[column])
        for column, amount in enumerate(asked)
        if amount or coefficients[column] or (imbalance and column <= MEMORY_COLUMN)
    )
    return Pricing(uses, constant, imbalance)


def _packed(asked: list[int], scoring: Scoring, axis: ResourceAxis) -> dict[int, int]:
    if not scoring.binpack_weight:
        return {}
    columns = {axis.index[name]: w for name, w in scoring.binpack.items() if name in axis.index}
    return {column: w for column, w in columns.items() if w and asked[column]}
