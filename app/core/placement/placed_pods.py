"""The pods of a snapshot, asked in bulk: how many on each node answer to a question.

A :class:`Question` is a hashable value that gives a pod a weight (0: not counted). The same
question is asked of the placed pods here, vectorised over their labels, and of each placement of
the cycle by :mod:`~app.core.placement.census`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from app.core.placement.arrays import Counts
from app.core.placement.labels import satisfying
from app.core.placement.sieve import Sieve, named_by
from app.core.placement.terms import Side, TermBooks, TermIndex
from app.model.placed_pods import NO_LABELS
from app.model.resources import Mask, Rows
from app.model.shape import LabelSelector, PodShape, PodTerm
from app.model.snapshot import Snapshot
from app.model.workload import Namespace

Namespaces = Mapping[str, Namespace]


@dataclass(frozen=True, slots=True)
class Identity:
    """What inter-pod rules see of a pod: its namespace and labels."""

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()


class Seen(NamedTuple):
    """A pod that a question is asked about; ``leaving``: it terminates."""

    shape: PodShape
    identity: Identity
    leaving: bool = False


def identity_of(shape: PodShape, *, namespace: str) -> Identity:
    """The identity in ``shape``, or a pod without labels in ``namespace``."""
    if shape.spread_identity is None:
        return Identity(namespace)
    return Identity(*shape.spread_identity)


def covers(term: PodTerm, namespace: str, namespaces: Namespaces) -> bool:
    """Whether ``term`` looks into ``namespace``."""
    if namespace in term.namespaces:
        return True
    if term.namespace_selector is None:
        return False
    known = namespaces.get(namespace)
    return term.namespace_selector.matches(known.labels if known else NO_LABELS)


def selects(term: PodTerm, identity: Identity, namespaces: Namespaces) -> bool:
    """Whether ``term`` matches a pod of ``identity``."""
    return (
        term.selector is not None
        and covers(term, identity.namespace, namespaces)
        and term.selector.matches(dict(identity.labels))
    )


class Question(Protocol):
    """Gives each pod a weight; equal questions share their counts."""

    def __hash__(self) -> int: ...

    def of_placed_pods(self, placed_pods: "PlacedPodIndex") -> Counts:
        """The summed weights per node, shape ``(N,)``."""

    def of(self, pod: Seen, namespaces: Namespaces) -> int:
        """The weight of one pod."""

    def sieve(self) -> Sieve:
        """Which pods may have a weight."""


@dataclass(frozen=True, slots=True)
class Matching:
    """1 for pods that every one of ``terms`` selects; ``staying``: not for terminating ones."""

    terms: tuple[PodTerm, ...]
    staying: bool = False

    def of_placed_pods(self, placed_pods: "PlacedPodIndex") -> Counts:
        """See :class:`Question`."""
        mask = placed_pods.staying if self.staying else np.ones(len(placed_pods), dtype=np.bool_)
        for term in self.terms:
            mask &= placed_pods.covered(term)
            mask &= placed_pods.selected(term.selector)
        return placed_pods.per_node(placed_pods.rows[mask])

    def of(self, pod: Seen, namespaces: Namespaces) -> int:
        """See :class:`Question`."""
        if self.staying and pod.leaving:
            return 0
        return int(all(selects(term, pod.identity, namespaces) for term in self.terms))

    def sieve(self) -> Sieve:
        """See :class:`Question`; all terms have to select, so the first one will do."""
        return Sieve(selected=named_by(self.terms[:1]))


@dataclass(frozen=True, slots=True)
class Carried:
    """The weight of a pod's own terms with ``topology_key`` that select a pod of ``target``."""

    side: Side
    target: Identity
    topology_key: str

    def of_placed_pods(self, placed_pods: "PlacedPodIndex") -> Counts:
        """See :class:`Question`."""
        terms = placed_pods.terms(self.side)
        weights = np.zeros(len(terms.shapes) + 1, dtype=np.int64)
        for code in terms.looking_for(self.target.labels):
            weights[code] = self.of(Seen(terms.shapes[code], self.target), placed_pods.namespaces)
        carriers = placed_pods.carriers()
        return placed_pods.per_node(carriers.rows, weights.take(carriers.codes))

    def of(self, pod: Seen, namespaces: Namespaces) -> int:
        """See :class:`Question`; the carrier's own identity does not matter."""
        return sum(
            weight
            for weight, term in self.side.terms(pod.shape)
            if term.topology_key == self.topology_key and selects(term, self.target, namespaces)
        )

    def sieve(self) -> Sieve:
        """See :class:`Question`."""
        labels = frozenset(self.target.labels)
        if self.side is Side.REPELS:
            return Sieve(repelled=labels)
        return Sieve(attracted=labels)


class Carriers(NamedTuple):
    """Placed pods with terms of their own: the codes of these, and their rows."""

    codes: Rows
    rows: Rows


class PlacedPodIndex:
    """The placed pods of one snapshot; counts per question are kept."""

    def __init__(self, snapshot: Snapshot, books: TermBooks) -> None:
        self.nodes = len(snapshot.table.nodes)
        self.namespaces = snapshot.namespaces
        self.rows: Rows = snapshot.placed_pods.rows
        self._placed_pods = snapshot.placed_pods
        self._books = books
        self._terms: dict[Side, TermIndex] = {}
        self._carriers: Carriers | None = None
        self._counts: dict[Question, Counts] = {}

    def __len__(self) -> int:
        return len(self._placed_pods)

    @property
    def staying(self) -> Mask:
        """The mask of pods that are not terminating."""
        return ~self._placed_pods.leaving.present

    def covered(self, term: PodTerm) -> Mask:
        """The placed pods in namespaces that ``term`` looks into."""
        homes = self._placed_pods.homes
        per_namespace = [covers(term, name, self.namespaces) for name in homes.values]
        return np.array([*per_namespace, False], dtype=np.bool_).take(homes.codes)

    def selected(self, selector: LabelSelector | None) -> Mask:
        """The placed pods that ``selector`` selects; None selects nothing."""
        if selector is None or not len(self):
            return np.zeros(len(self), dtype=np.bool_)
        mask = np.ones(len(self), dtype=np.bool_)
        for requirement in selector.requirements:
            labels = self._placed_pods.labels[requirement.key]
            mask &= satisfying(labels.values, requirement).take(labels.codes)
        return mask

    def per_node(self, rows: Rows, weights: Counts | None = None) -> Counts:
        """How many of ``rows`` are each node's, or the sum of their ``weights``."""
        sums = np.bincount(rows, weights=weights, minlength=self.nodes + 1)
        return sums[: self.nodes].astype(np.int64, copy=False)

    def carriers(self) -> Carriers:
        """The placed pods that have terms of their own, on any side."""
        if self._carriers is None:
            codes = self._placed_pods.terms.codes
            those = np.flatnonzero(self._placed_pods.terms.present & (self.rows < self.nodes))
            self._carriers = Carriers(codes[those], self.rows[those])
        return self._carriers

    def terms(self, side: Side) -> TermIndex:
        """The index of the pods' terms on ``side``."""
        found = self._terms.get(side)
        if found is None:
            found = self._terms[side] = self._books.of(side, self._placed_pods.terms)
        return found

    def topology_keys(self, side: Side) -> list[str]:
        """The topology keys of the pods' terms on ``side``."""
        terms = self.terms(side)
        carried = np.zeros(len(terms.shapes), dtype=np.bool_)
        carried[self.carriers().codes] = True
        return terms.keys(carried)

    def counts(self, question: Question) -> Counts:
        """The answer to ``question`` per node; not to be written to."""
        counts = self._counts.get(question)
        if counts is None:
            counts = self._counts[question] = question.of_placed_pods(self)
            counts.setflags(write=False)
        return counts
