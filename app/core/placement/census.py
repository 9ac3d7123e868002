"""Counts of pods per node as the cycle goes on: placed pods plus what the ledger's journal holds.

Every question that a rule asks becomes a :class:`Tally`. Placed tasks are told by *kind* (shape and
namespace): each question is asked once of each kind, and a placement moves the tallies that count
its kind, however many others there are. A pod that is evicted is a kind of its own, of which there
is one less. :meth:`Census.follow` brings the tallies up to the journal.
"""

from dataclasses import dataclass, field

from app.core.entries import Entry, Placed
from app.core.placement.arrays import Counts
from app.core.placement.journal import JournalReader
from app.core.placement.placed_pods import (
    Identity,
    PlacedPodIndex,
    Question,
    Seen,
    identity_of,
)
from app.core.placement.sieve import Traits
from app.core.placement.terms import Side
from app.model.shape import PodShape


class Tally:
    """The answer to one question: ``counts`` per node row; ``version`` grows when they change."""

    __slots__ = ("counts", "question", "sieve", "version")

    def __init__(self, question: Question, counts: Counts) -> None:
        self.question = question
        self.sieve = question.sieve()
        self.counts = counts
        self.version = 0

    def add(self, row: int, weight: int) -> None:
        """Count ``weight`` more on the node of ``row``."""
        self.counts[row] += weight
        self.version += 1


@dataclass(frozen=True, slots=True, eq=False)
class _EqualPods:
    """Placed tasks that answer alike, or a pod that is evicted.

    ``rows`` tells by row how many more there are on a node, ``counted`` the tallies they count in,
    and for how much. ``keeps`` holds what the kind is told by, which must not end before it.
    """

    pod: Seen
    traits: Traits
    keeps: object
    rows: dict[int, int] = field(default_factory=dict)
    counted: list[tuple[Tally, int]] = field(default_factory=list)


class Census:
    """All tallies on one ledger."""

    def __init__(self, placed_pods: PlacedPodIndex, journal: JournalReader) -> None:
        self.placed_pods = placed_pods
        self._journal = journal
        self._tallies: dict[Question, Tally] = {}
        self._kinds: dict[tuple[int, str], _EqualPods] = {}
        self._keys: dict[Side, dict[str, None]] = {}

    def tally(self, question: Question) -> Tally:
        """The running answer to ``question``, right as of the last :meth:`follow`."""
        tally = self._tallies.get(question)
        if tally is None:
            tally = Tally(question, self.placed_pods.counts(question).copy())
            for kind in self._kinds.values():
                self._ask(kind, tally)
            self._tallies[question] = tally
        return tally

    def topology_keys(self, side: Side) -> tuple[str, ...]:
        """The topology keys of terms on ``side`` that placed pods or tasks carry."""
        keys = self._keys.get(side)
        if keys is None:
            keys = self._keys[side] = dict.fromkeys(self.placed_pods.topology_keys(side))
            for kind in self._kinds.values():
                _learn(keys, side, kind.pod.shape)
        return tuple(keys)

    def follow(self) -> None:
        """Take in what the journal has gained or lost since the last call."""
        for entry, row, sign in self._journal.changes():
            kind = self._kind(entry)
            kind.rows[row] = kind.rows.get(row, 0) + sign
            for tally, weight in kind.counted:
                tally.add(row, sign * weight)

    def _kind(self, entry: Entry) -> _EqualPods:
        """The kind of ``entry``."""
        told_by = entry.shape if isinstance(entry, Placed) else entry.pod
        namespace = entry.gang.namespace if isinstance(entry, Placed) else entry.pod.namespace
        kind = self._kinds.get((id(told_by), namespace))
        if kind is None:
            pod = _seen(entry, namespace)
            kind = _EqualPods(pod, Traits.of(pod.shape, pod.identity.labels), told_by)
            self._kinds[id(told_by), namespace] = kind
            for tally in self._tallies.values():
                self._ask(kind, tally)
            for side, keys in self._keys.items():
                _learn(keys, side, pod.shape)
        return kind

    def _ask(self, kind: _EqualPods, tally: Tally) -> None:
        if not tally.sieve.passes(kind.traits):
            return
        weight = tally.question.of(kind.pod, self.placed_pods.namespaces)
        if weight:
            kind.counted.append((tally, weight))
            for row, count in kind.rows.items():
                tally.add(row, count * weight)


def _seen(entry: Entry, namespace: str) -> Seen:
    if isinstance(entry, Placed):
        return Seen(entry.shape, identity_of(entry.shape, namespace=namespace))
    labels = tuple(entry.pod.labels.items())
    return Seen(entry.shape, Identity(namespace, labels), leaving=entry.pod.deleting)


def _learn(keys: dict[str, None], side: Side, shape: PodShape) -> None:
    if side.has_terms(shape):
        keys.update(dict.fromkeys(term.topology_key for _, term in side.terms(shape)))
