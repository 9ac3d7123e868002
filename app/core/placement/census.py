"""Counts of pods per node as the cycle goes on: residents plus what the ledger's journal holds.

Every question that a rule asks becomes a :class:`Tally`; :meth:`Census.follow` brings all of them
up to the journal, asking each question once per distinct shape.
"""

from app.core.ledger import Entry
from app.core.placement.arrays import Counts
from app.core.placement.journal import JournalReader
from app.core.placement.residents import Question, ResidentIndex, Seen, Side, identity_of
from app.model.shape import PodShape


class Tally:
    """The answer to one question: ``counts`` per node row; ``version`` grows when they change."""

    __slots__ = ("_weights", "counts", "question", "version")

    def __init__(self, question: Question, counts: Counts) -> None:
        self.question = question
        self.counts = counts
        self.version = 0
        self._weights: dict[tuple[int, str], tuple[PodShape, int]] = {}

    def record(self, entry: Entry, sign: int, residents: ResidentIndex) -> None:
        """Count ``entry`` in (or out, with ``sign`` -1)."""
        shape, namespace = entry.task.shape, entry.gang.namespace
        known = self._weights.get((id(shape), namespace))
        if known is None:
            pod = Seen(shape, identity_of(shape, namespace=namespace))
            weight = self.question.of(pod, residents.namespaces)
            # The shape is kept beside its weight: its id must not be used again.
            known = self._weights[id(shape), namespace] = (shape, weight)
        if known[1]:
            self.counts[entry.node] += sign * known[1]
            self.version += 1


class Census:
    """All tallies on one ledger."""

    def __init__(self, residents: ResidentIndex, journal: JournalReader) -> None:
        self.residents = residents
        self._journal = journal
        self._tallies: dict[Question, Tally] = {}
        self._keys: dict[Side, dict[str, None]] = {}

    def tally(self, question: Question) -> Tally:
        """The running answer to ``question``, right as of the last :meth:`follow`."""
        tally = self._tallies.get(question)
        if tally is None:
            tally = Tally(question, self.residents.counts(question).copy())
            for entry in self._journal.seen:
                tally.record(entry, 1, self.residents)
            self._tallies[question] = tally
        return tally

    def topology_keys(self, side: Side) -> tuple[str, ...]:
        """The topology keys of terms on ``side`` that residents or placed tasks carry."""
        keys = self._keys.get(side)
        if keys is None:
            keys = self._keys[side] = {}
            for shape, _ in self.residents.carriers(side).values():
                keys.update(dict.fromkeys(term.topology_key for _, term in side.terms(shape)))
            for entry in self._journal.seen:
                self._learn(entry)
        return tuple(keys)

    def follow(self) -> None:
        """Take in what the journal has gained or lost since the last call."""
        for entry, sign in self._journal.changes():
            if sign > 0:
                self._learn(entry)
            for tally in self._tallies.values():
                tally.record(entry, sign, self.residents)

    def _learn(self, entry: Entry) -> None:
        shape = entry.task.shape
        if not shape.looks_at_pods:
            return
        for side, keys in self._keys.items():
            keys.update(dict.fromkeys(term.topology_key for _, term in side.terms(shape)))
