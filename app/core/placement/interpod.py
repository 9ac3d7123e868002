"""Inter-pod affinity and anti-affinity, required and preferred.

1. Affinity: every term's topology label must be on the node, and in the node's domain of every term
   there must be a pod that *all* terms select. When no pod in any domain is selected and the
   task itself would be, it may start the group anywhere the labels are.
2. Anti-affinity: no domain of the node may hold a pod that a term selects.
3. Symmetry: no domain of the node may hold a pod whose own required anti-affinity selects the task.
4. Preferred terms count their weight per selected pod in the domain, in both directions; a placed
   pod's required affinity attracts with weight 1. The sum is scaled to 0..100.

A node without a term's topology label is in no domain of that term.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import FULL_SCORE, all_of
from app.core.placement.census import Tally
from app.core.placement.labels import Column
from app.core.placement.placed_pods import Carried, Matching, selects
from app.core.placement.rules import Preference, Rule, Subject
from app.core.placement.terms import Side
from app.model.resources import Mask, Scores
from app.model.shape import PodTerm


def rules(subject: Subject) -> list[Rule]:
    """The required rules that bind ``subject``."""
    shape, found = subject.shape, list[Rule]()
    if shape.pod_affinity:
        found.append(_affinity(subject))
    if shape.pod_anti_affinity:
        parts = tuple(
            (subject.census.tally(Matching((term,))), _column(subject, term))
            for term in shape.pod_anti_affinity
        )
        found.append(AntiAffinity(parts))
    if shape.spread_identity is not None:
        found.append(OthersAntiAffinity(subject))
    return found


def preference(subject: Subject, *, weight: int) -> Preference | None:
    """What preferred terms make of the nodes; None: they cannot differ."""
    if not weight or subject.shape.spread_identity is None:
        return None
    terms = tuple(
        (w, subject.census.tally(Matching((term,))), _column(subject, term))
        for w, term in subject.shape.preferred_pods
    )
    return PodPreference(subject, terms, weight)


@dataclass(frozen=True, slots=True, eq=False)
class Affinity:
    """Rule 1; ``starts_group`` when the task itself satisfies all terms."""

    tally: Tally
    columns: tuple[Column, ...]
    starts_group: bool

    @property
    def text(self) -> str:
        """See :class:`~app.core.placement.rules.Rule`."""
        return "node(s) didn't match pod affinity rules"

    def version(self) -> Hashable:
        """See :class:`~app.core.placement.rules.Rule`."""
        return self.tally.version

    def mask(self) -> Mask:
        """See :class:`~app.core.placement.rules.Rule`."""
        labelled = all_of([column.present for column in self.columns])
        domains = [_per_domain(self.tally, column) for column in self.columns]
        if self.starts_group and not any(domain.any() for domain in domains):
            return labelled
        pairs = zip(domains, self.columns, strict=True)
        inhabited = [(domain > 0).take(column.codes) for domain, column in pairs]
        return all_of([labelled, *inhabited])


@dataclass(frozen=True, slots=True, eq=False)
class AntiAffinity:
    """Rule 2."""

    parts: tuple[tuple[Tally, Column], ...]

    @property
    def text(self) -> str:
        """See :class:`~app.core.placement.rules.Rule`."""
        return "node(s) didn't match pod anti-affinity rules"

    def version(self) -> Hashable:
        """See :class:`~app.core.placement.rules.Rule`."""
        return tuple(tally.version for tally, _ in self.parts)

    def mask(self) -> Mask:
        """See :class:`~app.core.placement.rules.Rule`."""
        return all_of([_uninhabited(tally, column) for tally, column in self.parts])


@dataclass(frozen=True, slots=True, eq=False)
class OthersAntiAffinity:
    """Rule 3; the topology keys grow as tasks with such terms are placed."""

    subject: Subject

    @property
    def text(self) -> str:
        """See :class:`~app.core.placement.rules.Rule`."""
        return "node(s) didn't satisfy existing pods anti-affinity rules"

    def version(self) -> Hashable:
        """See :class:`~app.core.placement.rules.Rule`."""
        return tuple(tally.version for tally, _ in _carried(self.subject, Side.REPELS))

    def mask(self) -> Mask:
        """See :class:`~app.core.placement.rules.Rule`."""
        mask = np.ones(len(self.subject.facts.ready), dtype=np.bool_)
        for tally, column in _carried(self.subject, Side.REPELS):
            mask &= _uninhabited(tally, column)
        return mask


@dataclass(frozen=True, slots=True, eq=False)
class PodPreference:
    """Rule 4; see :class:`~app.core.placement.rules.Preference`."""

    subject: Subject
    terms: tuple[tuple[int, Tally, Column], ...]
    weight: int

    def version(self) -> Hashable:
        """See :class:`~app.core.placement.rules.Preference`."""
        own = tuple(tally.version for _, tally, _ in self.terms)
        return own, tuple(tally.version for tally, _ in _carried(self.subject, Side.ATTRACTS))

    def score(self, *, among: Mask) -> Scores | None:
        """See :class:`~app.core.placement.rules.Preference`."""
        raw = np.zeros(len(among), dtype=np.float64)
        for weight, tally, column in self.terms:
            raw += weight * _per_domain(tally, column).take(column.codes)
        for tally, column in _carried(self.subject, Side.ATTRACTS):
            raw += _per_domain(tally, column).take(column.codes)
        if not among.any():
            return None
        low, high = raw.min(where=among, initial=np.inf), raw.max(where=among, initial=-np.inf)
        if low == high:
            return None
        scaled: Scores = (raw - low) * (self.weight * FULL_SCORE / (high - low))
        return scaled


def _affinity(subject: Subject) -> Affinity:
    terms, census = subject.shape.pod_affinity, subject.census
    namespaces = census.placed_pods.namespaces
    return Affinity(
        tally=census.tally(Matching(terms)),
        columns=tuple(_column(subject, term) for term in terms),
        starts_group=all(selects(term, subject.identity, namespaces) for term in terms),
    )


def _column(subject: Subject, term: PodTerm) -> Column:
    return subject.facts.selectors.labels.column(term.topology_key)


def _carried(subject: Subject, side: Side) -> list[tuple[Tally, Column]]:
    census, labels = subject.census, subject.facts.selectors.labels
    return [
        (census.tally(Carried(side, subject.identity, key)), labels.column(key))
        for key in census.topology_keys(side)
    ]


def _per_domain(tally: Tally, column: Column) -> Scores:
    totals = column.sums(tally.counts)
    totals[-1] = 0.0
    return totals


def _uninhabited(tally: Tally, column: Column) -> Mask:
    empty: Mask = _per_domain(tally, column) == 0
    return empty.take(column.codes)
