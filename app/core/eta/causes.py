"""Why an ETA is another one than before: the difference between two answers, with its cause.

What was said is kept as a :class:`Foretold`, and the next answer is compared with that. The first
cause that applies is told.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.model.ids import GroupKey, NodeName

WORTH_TELLING: Final = 0.1
"""Of the wait that was foretold: a smaller change is none."""
_LEAST_S: Final = 1.0
_MOST_NAMED: Final = 5


class ChangeKind(StrEnum):
    """What made the difference."""

    GANG = "gang"
    """The gang itself asks for something else."""
    CONFIGURATION = "configuration"
    NODES_GONE = "nodes-gone"
    OVERRAN = "ran-longer"
    """Gangs run longer than was expected."""
    CAME_BEFORE = "came-before"
    """Other gangs start before it that did not before."""
    NODES_CAME = "nodes-came"
    ENDED_EARLY = "ended-early"
    """Gangs ended sooner than was expected, or are expected to."""
    LEFT = "left"
    """Gangs that were to start before it do not any more."""
    ORDER = "order"
    """Other ends are expected, or the order of the line is another one."""


@dataclass(frozen=True, slots=True, eq=False)
class Foretold:
    """What an answer was made of; times are seconds since the epoch.

    ``ends`` are the ends of the gangs that it waits for, ``ahead`` the gangs that start before it,
    ``asks`` is whatever tells that the gang has not changed.
    """

    asked: float
    p50: float
    asks: object
    policies: object
    nodes: frozenset[NodeName]
    ends: Mapping[GroupKey, float]
    ahead: frozenset[GroupKey]


@dataclass(frozen=True, slots=True)
class EtaChange:
    """The p50 was ``before`` and is ``after`` that (seconds since the epoch), told first ``at``.

    ``groups`` and ``nodes`` are those that made the difference, a few of them.
    """

    at: float
    before: float
    after: float
    kind: ChangeKind
    groups: tuple[GroupKey, ...] = ()
    nodes: tuple[NodeName, ...] = ()


def change_of(
    before: Foretold,
    after: Foretold,
    *,
    ends: Mapping[GroupKey, float],
    began: Callable[[GroupKey], float | None],
) -> EtaChange | None:
    """What is different; None: not more than a tenth of the wait.

    ``ends`` are all ends that are expected by now of gangs that run, ``began`` is when one did.
    """
    wait = max(before.p50 - before.asked, _LEAST_S)
    if abs(after.p50 - before.p50) <= WORTH_TELLING * wait:
        return None
    kind, groups, nodes = next(_causes(before, after, ends, began))
    return EtaChange(
        after.asked,
        before.p50,
        after.p50,
        kind,
        tuple(sorted(groups)[:_MOST_NAMED]),
        tuple(sorted(nodes)[:_MOST_NAMED]),
    )


_Cause = tuple[ChangeKind, Collection[GroupKey], Collection[NodeName]]
_Began = Callable[[GroupKey], float | None]


def _causes(
    before: Foretold, after: Foretold, ends: Mapping[GroupKey, float], began: _Began
) -> Iterator[_Cause]:
    if before.asks != after.asks:
        yield ChangeKind.GANG, (), ()
    if before.policies is not after.policies:
        yield ChangeKind.CONFIGURATION, (), ()
    found = _of_delay if after.p50 > before.p50 else _of_gain
    for kind, groups, nodes in found(before, after, ends, began):
        if groups or nodes:
            yield kind, groups, nodes
    yield ChangeKind.ORDER, (), ()


def _of_delay(
    before: Foretold, after: Foretold, ends: Mapping[GroupKey, float], began: _Began
) -> Iterator[_Cause]:
    yield ChangeKind.NODES_GONE, (), before.nodes - after.nodes
    last = float("inf")
    overran = [
        key
        for key, end in before.ends.items()
        if began(key) is not None and ends.get(key, last) > end + _LEAST_S
    ]
    yield ChangeKind.OVERRAN, overran, ()
    others = (after.ahead | after.ends.keys()) - before.ahead - before.ends.keys()
    came = [key for key in others if _or(began(key), before.asked) >= before.asked]
    yield ChangeKind.CAME_BEFORE, came, ()


def _of_gain(
    before: Foretold, after: Foretold, ends: Mapping[GroupKey, float], began: _Began
) -> Iterator[_Cause]:
    yield ChangeKind.NODES_CAME, (), after.nodes - before.nodes
    early = [
        key
        for key, end in before.ends.items()
        if key not in after.ahead and _or(ends.get(key), after.asked) < end - _LEAST_S
    ]
    yield ChangeKind.ENDED_EARLY, early, ()
    left = [key for key in before.ahead - after.ahead if began(key) is None]
    yield ChangeKind.LEFT, left, ()


def _or(at: float | None, other: float) -> float:
    return other if at is None else at
