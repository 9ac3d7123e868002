"""Topology spread constraints.

A domain is a value of the topology key on nodes that have *all* keys of the pod's hard constraints
and that the constraint's inclusion policies count (selector and affinity, taints). Hard: after
placing, the node's domain may hold at most ``maxSkew`` more matching pods than the emptiest domain,
which counts as empty while there are fewer than ``minDomains`` domains. Soft: fewer matching pods
score higher, each constraint weighted by the logarithm of its number of domains so that many small
domains do not drown few large ones. Terminating pods do not count.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import FULL_SCORE, all_of
from app.core.placement.census import Tally
from app.core.placement.labels import Column
from app.core.placement.placed_pods import Matching
from app.core.placement.rules import Preference, Rule, Subject
from app.model.resources import Mask, Scores
from app.model.shape import PodTerm, Spread


def rules(subject: Subject) -> list[Rule]:
    """The hard constraints of ``subject``."""
    hard = [constraint for constraint in subject.shape.spread if constraint.hard]
    if not hard:
        return []
    labelled = _labelled(subject, hard)
    return [
        Labelled(labelled),
        *(MaxSkew(_counted(subject, constraint, within=labelled)) for constraint in hard),
    ]


def preference(subject: Subject, *, weight: int) -> Preference | None:
    """The soft constraints of ``subject``; None: there are none."""
    soft = [constraint for constraint in subject.shape.spread if not constraint.hard]
    if not soft or not weight:
        return None
    labelled = _labelled(subject, soft)
    counted = tuple(_counted(subject, constraint, within=labelled) for constraint in soft)
    return SpreadPreference(counted, labelled, weight)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A constraint with its count of matching pods; ``included`` are the nodes that count.

    A pin is node affinity, so with ``nodeAffinityPolicy: Honor`` the pinned node is the only one.
    """

    constraint: Spread
    tally: Tally
    column: Column
    included: Mask
    itself: int
    """1 when the constraint's selector selects the task too."""

    def totals(self) -> Scores:
        """Matching pods per domain, on included nodes."""
        return self.column.sums(np.where(self.included, self.tally.counts, 0))


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """The rule that a node has the topology keys of all hard constraints."""

    labelled: Mask

    @property
    def text(self) -> str:
        """See :class:`~app.core.placement.rules.Rule`."""
        return "node(s) didn't match pod topology spread constraints (missing required label)"

    def version(self) -> Hashable:
        """See :class:`~app.core.placement.rules.Rule`; node labels do not change in a cycle."""
        return 0

    def mask(self) -> Mask:
        """See :class:`~app.core.placement.rules.Rule`."""
        return self.labelled


@dataclass(frozen=True, slots=True, eq=False)
class MaxSkew:
    """The rule of one hard constraint."""

    counted: Counted

    @property
    def text(self) -> str:
        """See :class:`~app.core.placement.rules.Rule`."""
        return "node(s) didn't match pod topology spread constraints"

    def version(self) -> Hashable:
        """See :class:`~app.core.placement.rules.Rule`."""
        return self.counted.tally.version

    def mask(self) -> Mask:
        """See :class:`~app.core.placement.rules.Rule`."""
        counted, constraint = self.counted, self.counted.constraint
        totals = counted.totals()
        domains = counted.column.sums(counted.included.astype(np.int64))[:-1] > 0
        fewest = 0.0
        if domains.any() and domains.sum() >= constraint.min_domains:
            fewest = totals[:-1].min(where=domains, initial=np.inf)
        within: Mask = totals + counted.itself - fewest <= constraint.max_skew
        return within.take(counted.column.codes)


@dataclass(frozen=True, slots=True, eq=False)
class SpreadPreference:
    """The soft constraints; see :class:`~app.core.placement.rules.Preference`."""

    counted: tuple[Counted, ...]
    labelled: Mask
    weight: int

    def version(self) -> Hashable:
        """See :class:`~app.core.placement.rules.Preference`."""
        return tuple(counted.tally.version for counted in self.counted)

    def score(self, *, among: Mask) -> Scores | None:
        """See :class:`~app.core.placement.rules.Preference`; nodes without a key score 0."""
        ranked = among & self.labelled
        if not ranked.any():
            return None
        crowd = np.zeros(len(among), dtype=np.float64)
        for counted in self.counted:
            column = counted.column
            domains = int((column.sums(ranked.astype(np.int64))[:-1] > 0).sum())
            totals = counted.totals() * np.log(domains + 2)
            crowd += totals.take(column.codes) + (counted.constraint.max_skew - 1)
        low = crowd.min(where=ranked, initial=np.inf)
        high = crowd.max(where=ranked, initial=0.0)
        if high == 0:
            score = np.full(len(among), FULL_SCORE)
        else:
            score = (high + low - crowd) * (FULL_SCORE / high)
        return np.where(self.labelled, self.weight * score, 0.0)


def _labelled(subject: Subject, constraints: Sequence[Spread]) -> Mask:
    labels = subject.facts.selectors.labels
    return all_of([labels.column(c.topology_key).present for c in constraints])


def _counted(subject: Subject, constraint: Spread, *, within: Mask) -> Counted:
    shape, identity, facts = subject.shape, subject.identity, subject.facts
    included = within
    if constraint.honor_affinity:
        required = facts.selectors.required(shape)
        included = included if required is None else included & required
        if subject.pinned is not None:
            included = included & (np.arange(len(included)) == subject.pinned)
    if constraint.honor_taints:
        tolerated = facts.taints.tolerated(shape.tolerations)
        included = included if tolerated is None else included & tolerated
    selector = constraint.selector
    # Of an empty selector kube-scheduler counts no pods, though it selects the task itself.
    counted = selector if selector is not None and selector.requirements else None
    term = PodTerm("", counted, (identity.namespace,))
    return Counted(
        constraint,
        tally=subject.census.tally(Matching((term,), staying=True)),
        column=facts.selectors.labels.column(constraint.topology_key),
        included=included,
        itself=int(selector is not None and selector.matches(dict(identity.labels))),
    )
