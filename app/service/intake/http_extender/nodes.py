"""About which nodes the HTTP extender is to be asked, and what it said, of one subject.

Nodes that rules about nodes bar are left out. Those with room for a member now are asked about
first, as many as it takes until enough of them are allowed, and more where the gang finds no places
on these; the others only where pods may be evicted from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from app.core.placement.statics import NodeFacts
from app.core.policy import Predicates, Scoring
from app.model.gang import Gang, Task
from app.model.http_extender import Answered
from app.model.ids import NodeName
from app.model.resources import Mask, Matrix
from app.model.snapshot import NodeTable

AGAIN_FULL_S: Final = 40.0
"""An answer about a node that has no room now is asked for again after so long."""
ENOUGH: Final = 100
"""Allowed nodes with room that do, as in Volcano; or two for each member that waits."""


@dataclass(frozen=True, slots=True, eq=False)
class IdleNodes:
    """The nodes and what is free there, shape ``(N, R)``; ``predicates`` are the rules in force."""

    table: NodeTable
    free: Matrix
    facts: NodeFacts
    predicates: Predicates

    def fits(self, task: Task, *, if_empty: bool = False) -> Mask:
        """The nodes that have room for the task, and that no rule about nodes bars, shape (N,)."""
        request = task.request
        have = self.table.allocatable if if_empty else self.free
        width = min(have.shape[1], len(request))
        short = (have[:, :width] < request[:width]) & (request[:width] > 0)
        fit = self.facts.fit(task.shape, predicates=self.predicates, scoring=Scoring())
        mask: Mask = fit.mask & ~short.any(axis=1)
        if task.pinned:
            mask &= np.arange(len(mask)) == self.table.index.get(task.pinned, -1)
        return mask


@dataclass(slots=True, eq=False)
class AskedNodes:
    """The answers about nodes for members of ``gang`` that are like ``task``."""

    gang: Gang
    task: Task
    body: Raw = field(default_factory=Raw)
    """The task as it is told."""
    answers: dict[NodeName, Answered[str]] = field(default_factory=dict)
    scores: Answered[Mapping[NodeName, float]] | None = None
    scored: int = 0
    """How many nodes were scored."""
    asked_at: float = 0.0
    """When something was asked last; 0: never."""
    _more: int = 0
    """How many allowed nodes there are to be beyond the first ones."""
    _enough_since: int | None = None
    """The cycle after which enough nodes were allowed; None: they are not."""
    _told: Mapping[NodeName, Answered[str]] | None = None
    _table: NodeTable | None = None
    _due: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def renew(self, gang: Gang, task: Task) -> None:
        """Take the gang as it is now; ``task`` is of the same shape as before."""
        self.gang, self.task = gang, task

    """When a node is to be asked about again, shape ``(N,)``."""

    def wanted(self, room: IdleNodes, *, now: float, also_full: bool) -> Sequence[int]:
        """Rows to ask about now, those with room first; ``also_full``: the others too."""
        self._follow(room.table)
        fits = room.fits(self.task)
        wanted = [] if self.allowed(room, now) >= self._enough else self._by_turn(fits, now)
        if also_full:
            wanted += self._by_turn(room.fits(self.task, if_empty=True) & ~fits, now)
        return wanted

    def widen(self, room: IdleNodes, *, now: float, cycle: int, lacks_nodes: bool) -> None:
        """Ask for more nodes where the gang lacks some though it was planned with those allowed.

        ``cycle`` is the number of cycles so far: one may be under way, so the second one counts.
        """
        self._follow(room.table)
        if self.allowed(room, now) < self._enough:
            self._enough_since = None
        elif self._enough_since is None:
            self._enough_since = cycle
        elif lacks_nodes and cycle >= self._enough_since + 2:
            self._more, self._enough_since = self._more + ENOUGH, None

    def _by_turn(self, rows: Mask, now: float) -> list[int]:
        """Those due, nodes first that were never asked about."""
        due = np.flatnonzero(rows & (self._due <= now))
        found: list[int] = due[np.argsort(self._due[due], kind="stable")].tolist()
        return found

    def allowed(self, room: IdleNodes, now: float) -> int:
        """How many nodes with room are allowed, as was answered lately."""
        fits = room.fits(self.task) & (self._due > now)
        names = (room.table.nodes[row].name for row in np.flatnonzero(fits).tolist())
        return sum(1 for name in names if (a := self.answers.get(name)) and a.value == "")

    def note(self, row: int, answer: Answered[str], *, due: float) -> bool:
        """Take over an answer; returns whether it is another one than before."""
        assert self._table is not None
        name = self._table.nodes[row].name
        before, self.answers[name] = self.answers.get(name), answer
        self._due[row], self._told = due, None
        return answer.differs_from(before)

    def told(self) -> Mapping[NodeName, Answered[str]]:
        """The answers by now, which never change."""
        if self._told is None:
            self._told = dict(self.answers)
        return self._told

    def to_score(self, *, now: float, all_of: IdleNodes | None) -> list[NodeName]:
        """Nodes that may be scored: the allowed ones, or all (``all_of``) where none is asked."""
        if all_of is not None:
            fits = all_of.fits(self.task, if_empty=True)
            return [all_of.table.nodes[row].name for row in np.flatnonzero(fits).tolist()]
        return sorted(name for name, each in self.answers.items() if each.fresh(now) == "")

    @property
    def _enough(self) -> int:
        return max(ENOUGH, 2 * len(self.gang.waiting)) + self._more

    def _follow(self, table: NodeTable) -> None:
        """Nodes come and go: what was asked stays with its node."""
        if self._table is table:
            return
        due = np.zeros(len(table.nodes))
        if self._table is not None:
            known = self._table.index
            for row, node in enumerate(table.nodes):
                before = known.get(node.name)
                if before is not None and self._table.nodes[before].places_like(node):
                    due[row] = self._due[before]
            for name in self.answers.keys() - table.index.keys():
                del self.answers[name]
            self._told = None
        self._table, self._due = table, due
