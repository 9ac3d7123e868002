"""How full nodes leave the storage that a pod's new volumes come from.

That of kube-scheduler's VolumeBinding. Each StorageClass counts once: what the pod's claims of it
ask for, as a part of the free volumes that they get, or of the storage that is left for new ones.
A *shape* tells how much that part is worth, in a line from point to point. Claims whose volumes are
there, and those of drivers that do not say what is left, do not count.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from app.core.conf_error import ConfError
from app.core.placement.volume_books import VolumeBooks
from app.core.placement.volume_rules import VolumeRules
from app.core.placement.volumes import class_name
from app.core.policy import NodeScore, NodesNow
from app.model.gang import Gang, Task
from app.model.resources import Scores
from app.model.shape import VolumeAsk

_MOST_UTILIZATION = 100
_MOST_SCORE = 10
_TIMES = 10.0
"""Scores of a shape are 0 to 10, those of nodes 0 to 100."""


class Point(NamedTuple):
    """What a ``utilization`` is worth, in percent: a ``score`` of 0 to 10."""

    utilization: int
    score: int


def shape_of(given: object, where: str) -> tuple[Point, ...]:
    """The shape in an argument, its utilizations growing; raises ``ConfError``. None: no points."""
    if given is None:
        return ()
    if not isinstance(given, list) or not given:
        raise ConfError(f"{where}: {given!r} is no list of points with utilization and score")
    points = tuple(_point(each, f"{where}: point {at}") for at, each in enumerate(given, start=1))
    for one, next_ in pairwise(points):
        if one.utilization >= next_.utilization:
            raise ConfError(
                f"{where}: utilization {next_.utilization} does not come after {one.utilization}"
            )
    return points


def _point(given: Any, where: str) -> Point:
    if not isinstance(given, Mapping) or set(given) != {"utilization", "score"}:
        raise ConfError(f"{where}: {given!r} is no utilization with its score")
    return Point(
        _number(given["utilization"], f"{where}: utilization", _MOST_UTILIZATION),
        _number(given["score"], f"{where}: score", _MOST_SCORE),
    )


def _number(value: object, where: str, most: int) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or int(text) > most:
        raise ConfError(f"{where}: {value!r} is not a whole number from 0 to {most}")
    return int(text)


def worth(shape: Sequence[Point], *, asked: int, there: int) -> int:
    """The worth of using ``asked`` bytes of those that are ``there``, 0 to 100."""
    full = there <= 0 or asked > there
    utilization = _MOST_UTILIZATION if full else asked * _MOST_UTILIZATION // there
    at, values = zip(*shape, strict=True)
    return int(np.interp(utilization, at, [value * _TIMES for value in values]))


class VolumeScores:
    """The score on the nodes of one cycle."""

    def __init__(self, rules: VolumeRules, shape: Sequence[Point], weight: int) -> None:
        self._rules = rules
        self._shape = shape
        self._weight = weight

    def score(self) -> NodeScore:
        """The score, and which tasks it is about."""
        return NodeScore(self._key, self._score)

    def _key(self, _gang: Gang, task: Task) -> Hashable | None:
        return self._rules.wish_key(task)

    def _score(self, _gang: Gang, task: Task, nodes: NodesNow) -> Scores:
        ask = task.shape.volumes
        each = [0 if ask is None else self._of_node(ask, row) for row in nodes.rows.tolist()]
        return np.array(each, dtype=np.float64) * self._weight

    def _of_node(self, ask: VolumeAsk, row: int) -> int:
        parts = _parts(self._rules.books(), ask, row)
        each = [worth(self._shape, asked=asked, there=there) for asked, there in parts]
        return round(sum(each) / len(each)) if each else 0


def _parts(books: VolumeBooks, ask: VolumeAsk, row: int) -> Collection[tuple[int, int]]:
    """By StorageClass: how many bytes a pod on the node asks for, and how many are there."""
    storage = books.storage
    sums: dict[str, tuple[int, int]] = {}
    pools: set[str] = set()
    for wish, volume, pool in books.gets(ask, row):
        of = class_name(wish.spec, storage)
        asked, there = sums.get(of, (0, 0))
        if volume:
            there += storage.volumes[volume].size
        elif pool not in pools:
            there += books.left_of(storage.capacities[pool]) if pool else 0
            pools.add(pool)
        if volume or pool:
            sums[of] = asked + wish.spec.size, there
    return sums.values()
