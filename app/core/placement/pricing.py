"""What free room is worth: leastrequested, mostrequested, balancedresource and binpack.

All of them look at the share of each resource that would be *left* on the node with the task on it.
Three are linear in these shares, so their weights fold into one coefficient per resource; balanced
adds the spread of the cpu and memory shares (the standard deviation of two numbers is half their
difference):

* leastrequested: mean share left of cpu and memory; mostrequested: mean share used;
* binpack: mean share used of the resources that have a weight and are asked for, by weight;
* balancedresource: ``1 - |left(cpu) - left(memory)| / 2``, not for tasks without requests.

The stock scheduler counts a task (and every placed pod) that asks for no cpu or memory as 100m and
200 MB, so that such tasks spread. Only real requests are known here, so a task that leaves one of
the two out has its share of ``pods`` in the mean as well: it sees load, and spreads by count.

All nodes are priced with NumPy, a touched one with plain numbers (NumPy's cost per call is that of
a dozen of those): the same operations in the same order, so both give the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.core.placement.arrays import FULL_SCORE, NOWHERE
from app.core.policy import Scoring
from app.model.gang import Task
from app.model.resources import (
    CPU_COLUMN,
    MEMORY_COLUMN,
    PODS_COLUMN,
    Mask,
    Matrix,
    ResourceAxis,
    Scores,
)


class Use(NamedTuple):
    """``asked`` of the resource at ``column``, and the coefficient of its share left.

    ``shared``: the share matters, for its coefficient or for the balance.
    """

    column: int
    asked: int
    coefficient: float
    shared: bool


class Terms(NamedTuple):
    """What requests that ask for the same resources have in common, however much they ask for.

    ``uses``: column, coefficient and ``shared`` of :class:`Use`.
    """

    uses: tuple[tuple[int, float, bool], ...]
    constant: float
    imbalance: float


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
        fits: Mask | None = None
        score: Scores | float = self.constant
        shares: list[Scores] = []
        for column, asked, coefficient, shared in self.uses:
            free = room[column]
            if asked:
                fits = free >= asked if fits is None else fits & (free >= asked)
            if shared:
                share = (free - asked).astype(np.float64)
                share *= inverse[column]
                shares.append(share)
                if coefficient:
                    part = coefficient * share
                    score = np.add(score, part, out=part)
        if self.imbalance:
            apart = np.abs(shares[0] - shares[1])
            apart *= self.imbalance
            score = np.subtract(score, apart, out=apart)
        nodes = room.shape[1]
        if not isinstance(score, np.ndarray):
            score = np.full(nodes, score)
        return np.ones(nodes, dtype=np.bool_) if fits is None else fits, score

    def price_one(self, room: Sequence[int], inverse: Sequence[float]) -> float:
        """The score on one node, ``NOWHERE`` where the request does not fit."""
        score = self.constant
        shares: list[float] = []
        for column, asked, coefficient, shared in self.uses:
            left = room[column] - asked
            if asked and left < 0:
                return NOWHERE
            if shared:
                share = left * inverse[column]
                shares.append(share)
                if coefficient:
                    score += coefficient * share
        if self.imbalance:
            score -= self.imbalance * abs(shares[0] - shares[1])
        return score


class Tariff:
    """What ``scoring`` makes of requests on ``axis``."""

    def __init__(self, scoring: Scoring, axis: ResourceAxis) -> None:
        self._slope = FULL_SCORE * (scoring.least_requested - scoring.most_requested)
        self._constant = FULL_SCORE * scoring.most_requested
        self._balanced = FULL_SCORE * scoring.balanced
        self._binpack = FULL_SCORE * scoring.binpack_weight
        self._packed = tuple(
            (axis.index[name], weight)
            for name, weight in scoring.binpack.items()
            if weight and name in axis.index
        )

        self._terms: dict[tuple[tuple[bool, ...], bool], Terms] = {}

    def pricing(self, task: Task) -> Pricing:
        """The pricing of ``task``'s request."""
        amounts: list[int] = task.request.tolist()
        kind = tuple(map(bool, amounts)), task.best_effort
        terms = self._terms.get(kind)
        if terms is None:
            terms = self._terms[kind] = self._terms_of(*kind)
        uses = [
            Use(column, amounts[column], coefficient, shared)
            for column, coefficient, shared in terms.uses
        ]
        return Pricing(tuple(uses), terms.constant, terms.imbalance)

    def _terms_of(self, asked: Sequence[bool], best_effort: bool) -> Terms:
        coefficients = [0.0] * len(asked)
        counted: tuple[int, ...] = (CPU_COLUMN, MEMORY_COLUMN)
        if not (asked[CPU_COLUMN] and asked[MEMORY_COLUMN]):
            counted += (PODS_COLUMN,)
        for column in counted:
            coefficients[column] = self._slope / len(counted)
        constant = self._constant + self._pack(asked, coefficients)
        imbalance = 0.0 if best_effort else self._balanced / 2
        uses: list[tuple[int, float, bool]] = []
        for column, is_asked in enumerate(asked):
            coefficient = coefficients[column]
            shared = coefficient != 0 or (imbalance != 0 and column <= MEMORY_COLUMN)
            if is_asked or shared:
                uses.append((column, coefficient, shared))
        return Terms(tuple(uses), constant + 2 * imbalance, imbalance)

    def _pack(self, asked: Sequence[bool], coefficients: list[float]) -> float:
        """Take binpack's part off ``coefficients``; returns its constant."""
        packed = [(column, weight) for column, weight in self._packed if asked[column]]
        total = sum(weight for _, weight in packed)
        if not total or not self._binpack:
            return 0.0
        for column, weight in packed:
            coefficients[column] -= self._binpack * weight / total
        return self._binpack
