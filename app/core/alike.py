"""Which candidates are alike for rules about victims, so that one of them is asked about.

``P`` running pods, ``C`` candidates among them, ``K`` kinds of running pods
(:class:`~app.model.running.PodKind`), ``D`` kinds that candidates have.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from app.core.victim_rules import Candidate, Preemptor, Trait
from app.model.ids import NO_QUEUE
from app.model.resources import Mask, Rows
from app.model.snapshot import Snapshot


class Traits:
    """The traits of all kinds, as codes of shape ``(K,)``, and the gang of each."""

    def __init__(self, snapshot: Snapshot) -> None:
        kinds = list(snapshot.running.kinds.values)
        gangs = [snapshot.gangs.get(kind.gang) for kind in kinds]
        self.gangs = tuple(kind.gang for kind in kinds)
        self.codes = {
            Trait.QUEUE: _codes(NO_QUEUE if gang is None else gang.queue for gang in gangs),
            Trait.GANG: _codes(self.gangs),
            Trait.GANG_PRIORITY: _codes(0 if gang is None else gang.priority for gang in gangs),
            Trait.PART: _codes(kind.part for kind in kinds),
            Trait.REQUEST: _codes(kind.request for kind in kinds),
            Trait.PRIORITY: _codes(kind.priority for kind in kinds),
        }


def _codes(values: Iterable[object]) -> NDArray[np.int64]:
    known: dict[object, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)


class Panel:
    """The candidates at ``rows`` of ``snapshot.running``, shape ``(C,)``, by their traits."""

    def __init__(
        self, snapshot: Snapshot, traits: Traits, preemptor: Preemptor, rows: Rows
    ) -> None:
        self.rows = rows
        self.preemptor = preemptor
        self._snapshot = snapshot
        self._traits = traits
        kinds, self._first, self._kind_of = np.unique(
            snapshot.running.kinds.codes[rows], return_index=True, return_inverse=True
        )
        self._kinds: Rows = kinds
        key = preemptor.gang.key
        self._own: Mask = np.array([traits.gangs[at] == key for at in kinds.tolist()], np.bool_)
        self._known: dict[frozenset[Trait], tuple[list[Candidate], Rows]] = {}

    def classes(self, traits: frozenset[Trait]) -> tuple[list[Candidate], Rows]:
        """One candidate of each class with these traits in common, and the class of each.

        That is shape ``(C,)``. No class has members of the preemptor's gang and others. Raises
        ``KeyError`` for a pod without a group here.
        """
        known = self._known.get(traits)
        if known is None:
            of: NDArray[np.int64] = self._own.astype(np.int64)
            for trait in traits:
                codes = self._traits.codes[trait][self._kinds]
                of = of * (int(codes.max(initial=0)) + 1) + codes
                of = np.unique(of, return_inverse=True)[1]
            _, first, of = np.unique(of, return_index=True, return_inverse=True)
            rows = self.rows[self._first[first]].tolist()
            known = [Candidate.of(self._snapshot, at) for at in rows], of[self._kind_of]
            self._known[traits] = known
        return known
