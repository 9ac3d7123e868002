"""A search for victims, and what it can end in, as values.

``N`` nodes, ``R`` resources of the axis, rows are those of the node table. A set of units is told
in the order of the problem's units, so that equal sets are equal tuples.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from app.core.victim_rules import NodeExcess
from app.core.victims.units import Unit
from app.model.resources import Mask, Matrix, Rows, Vector
from app.model.running import Running

Places = tuple[tuple[int, ...], ...]
"""Rows of nodes for the members of each :class:`Wanted`, in their order."""


class Together(Protocol):
    """Units that go one after the other, as far as the rules about several victims let them.

    Of units in the same order fewer may go whenever more may.
    """

    def take(self, units: Sequence[Unit]) -> int | None:
        """Let all of these go as well, those whose pods are gone already in part.

        The position of the first that may not, and then none of them goes; None: all go.
        """

    def still_may(self) -> Mask:
        """Which units of the problem may go yet, each by itself, shape ``(U,)``."""


Prove = Callable[[Sequence[Unit], Places | None], Places | None]
"""Places for the whole preemptor under every filter once these units are gone; None: none found.

The second argument are places that have room, to be tried first.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """``count`` equal members: each asks for ``request``, shape ``(R,)``.

    ``mask`` has the nodes that static rules allow, shape ``(N,)``. ``per_node``: no node takes more
    of them (None: any number).
    """

    mask: Mask
    request: Vector
    count: int
    per_node: int | None = None

    def on(self, nodes: Rows) -> "Wanted":
        """Such members where there are only these ``nodes``."""
        return Wanted(self.mask[nodes], self.request, self.count, self.per_node)


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """What victims must free at least of what a queue may hold, ``short``, shape ``(R,)``.

    ``counts`` (shape ``(P,)``) has the running pods that the queue holds, on whatever node.
    """

    counts: Mask
    short: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The gang that room is made for, and the units that it is made of.

    ``units`` are in the order in which victims are preferred. ``room`` is the future idle room
    before any of them goes, shape ``(N, R)``. ``wanted`` is the minimum of the preemptor, equal
    members together. Victims free what ``limits`` lack besides. Inside ``together()`` units go
    together from none on. ``prove`` is expensive: it is called outside of that only, for sets that
    have room and are :meth:`compatible`.
    """

    units: Sequence[Unit]
    running: Running
    room: Matrix
    wanted: Sequence[Wanted]
    together: Callable[[], AbstractContextManager[Together]]
    prove: Prove
    limits: Sequence[Limit] = ()

    def compatible(self, units: Sequence[Unit]) -> bool:
        """Whether these units may go together, in this order."""
        with self.together() as going:
            return going.take(units) is None


class BoundKind(StrEnum):
    """What is too little."""

    NODE = "node"
    """The largest node has less of a resource than one member asks for."""
    PLACES = "places"
    """Nodes have fewer places for members of one shape than there are such members."""
    SUM = "sum"
    """All nodes that any member may go to have less of a resource than all members ask for."""
    LIMIT = "limit"
    """Victims free less of what a queue may hold than it lacks."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Proof that there is no placement: ``asked`` is more than what is ``there``.

    ``wanted`` is a position in the problem's ``wanted`` (-1: all together), or in its ``limits``,
    ``resource`` one on the axis (-1: places are counted).
    """

    kind: BoundKind
    wanted: int
    resource: int
    asked: int
    there: int


class WitnessKind(StrEnum):
    """Why a unit cannot be spared."""

    BOUND = "bound"
    """Without it a bound is exceeded."""
    EXHAUSTIVE = "exhaustive"
    """Every set of units without it that costs less has no room for all members."""
    PLANNER = "planner"
    """The planner found no places without it."""
    UNTRIED = "untried"
    """The planner was not asked: members have so many shapes that the search ended before."""
    EXCESS = "excess"
    """More is taken on its node than is wanted there; for ``shuffle``."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Why one unit of a solution is needed.

    ``bound`` holds without the unit, ``excess`` is on its node; each for its kind only.
    """

    kind: WitnessKind
    bound: Bound | None = None
    excess: NodeExcess | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The ``units`` go, then the preemptor has its ``places``. One witness per unit.

    No unit can be spared, as far as was tried. ``exact``: no other compatible set costs less.
    ``forbidden`` are sets of positions in the problem's units that cost less and are not
    compatible.
    """

    units: tuple[Unit, ...]
    places: Places
    witnesses: tuple[Witness, ...]
    exact: bool
    forbidden: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class NoSolution:
    """There is none; ``bound`` says why, None: the planner found no places for any set tried."""

    bound: Bound | None = None
