"""Finding nodes for tasks, one after another, on a ledger that moves.

The score of a shape on every node is kept in one array, minus infinity where it does not fit. A
placement changes one row of the ledger, which notes it in ``touched``; a shape remembers up to
where it has read that list and prices only the rows noted since (all of them when there are too
many). The best node is the first maximum, that is the lowest name among equals.

Rules about other pods are not kept in that array: for shapes that they concern, the masks and
scores of their :class:`~app.core.placement.rules.RuleSet` are laid over it at each search. So is
what plugins say of nodes (:mod:`~app.core.placement.by_plugins`), which may depend on the gang.

Invariant: after any sequence of placements and roll-backs the array equals, bit for bit, one priced
from scratch; so a search depends on the ledger's numbers only, never on how they came about.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.core.ledger import Ledger
from app.core.placement import interpod, spread, verdicts
from app.core.placement.arrays import MANY, NOWHERE, Counts, all_of
from app.core.placement.by_plugins import ByPlugins
from app.core.placement.census import Census
from app.core.placement.collecting import Wanted, room_to_keep
from app.core.placement.host_ports import FreePorts, PortBook
from app.core.placement.journal import JournalReader
from app.core.placement.outlook import known_never, places_if_empty
from app.core.placement.placed_pods import identity_of
from app.core.placement.pricing import Pricing, Tariff
from app.core.placement.rules import Preference, Rule, RuleSet, Subject
from app.core.placement.statics import ShapeCache, StaticFit
from app.core.policy import NodeRule, NodeScore, Predicates, Scoring
from app.model.gang import Gang, Task
from app.model.ids import NodeName
from app.model.reason import Never, Refusal
from app.model.resources import Mask, Matrix, Rows, Scores
from app.model.shape import PodShape

KEPT_SHAPES = 64
"""Shapes whose scores are followed at a time; the one unused for longest goes first."""

FEW = 16
"""When more than one in this many rows was touched, all are priced again."""

SINGLY = 8
"""Up to so many touched rows are priced one by one."""


@dataclass(slots=True, eq=False)
class _ShapeScores:
    """Where a shape stands: ``scores`` per node as of position ``seen`` of ``ledger.touched``."""

    shape: PodShape
    fit: StaticFit
    vetoed: Mask | None
    pricing: Pricing
    rules: RuleSet | None
    scores: Scores | None = None
    seen: int = 0


class Placer:
    """Finds nodes on one ledger; does not place. ``cache`` is shared between cycles.

    ``ahead``: what is about to be free counts as free (:attr:`Ledger.future_idle`).
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        predicates: Predicates,
        scoring: Scoring,
        cache: ShapeCache | None = None,
        node_rules: Sequence[NodeRule] = (),
        node_scores: Sequence[NodeScore] = (),
        ahead: bool = False,
    ) -> None:
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._predicates = predicates
        self._scoring = scoring
        self._cache = cache if cache is not None else ShapeCache()
        self._facts = self._cache.facts(self._snapshot.table)
        self._tariff = Tariff(scoring, self._snapshot.axis)
        self._room = ledger.future_idle if ahead else ledger.idle
        self._free = self._room.T
        self._by_shape: dict[int, _ShapeScores] = {}
        self._vetoes = self._vetoed_rows()
        self._census: Census | None = None
        self._ports: PortBook | None = None
        self._by_plugins = ByPlugins(
            node_rules, node_scores, free=self._free, touched=ledger.touched, ahead=ahead
        )

    def find(self, gang: Gang, task: Task, *, within: Rows | None = None) -> int | None:
        """The best node row for ``task`` as the ledger stands; None: it fits nowhere.

        With ``within``, rows in ascending order, the search is as if the others were refused.
        """
        if task.pinned:
            row = self._row(task.pinned)
            return row if self._may_have(gang, task, row, within) else None
        if task.nominated:
            row = self._row(task.nominated)
            if self._may_have(gang, task, row, within):
                return row
        scores = self.ranked(gang, task)
        if within is not None:
            scores = scores.take(within)
        if not len(scores):
            return None
        best = int(scores.argmax())
        if scores[best] <= NOWHERE:
            return None
        return best if within is None else int(within[best])

    def _may_have(self, gang: Gang, task: Task, row: int | None, within: Rows | None) -> bool:
        if row is None or (within is not None and row not in within):
            return False
        return self.fits(gang, task, row)

    def ranked(self, gang: Gang, task: Task) -> Scores:
        """The score of ``task`` on every node, ``NOWHERE`` where it does not fit; not to be kept.

        A pin and a nomination are left out of account.
        """
        scores = self._ranked(task)
        if self._by_plugins.silent:
            return scores
        return self._by_plugins.laid_over(scores, gang, task)

    def _ranked(self, task: Task) -> Scores:
        scored = self._shape_scores(task)
        scores = self._current(scored)
        rules = self._rules(scored, pinned=None)
        if rules is None:
            return scores
        liked = rules.liked()
        if liked is not None:
            scores = scores + liked
        allowed = rules.allowed()
        return scores if allowed is None else np.where(allowed, scores, NOWHERE)

    def fits(self, gang: Gang, task: Task, row: int) -> bool:
        """Whether ``task`` of ``gang`` may go to the node of ``row`` as the ledger stands."""
        if task.pinned and self._row(task.pinned) != row:
            return False
        scored = self._shape_scores(task)
        if not scored.fit.mask[row] or (scored.vetoed is not None and scored.vetoed[row]):
            return False
        free = self._free[:, row]
        if ((free < task.request) & (task.request > 0)).any():
            return False
        allowed = self._allowed(scored, pinned=row if task.pinned else None)
        if allowed is not None and not allowed[row]:
            return False
        allowed = self._by_plugins.allowed(gang, task)
        return allowed is None or bool(allowed[row])

    def feasible(self, gang: Gang, task: Task) -> Mask:
        """All nodes that ``task`` of ``gang`` may go to as the ledger stands, shape ``(N,)``."""
        scored = self._shape_scores(task)
        mask: Mask = self._current(scored) > NOWHERE
        pinned = self._row(task.pinned) if task.pinned else None
        if task.pinned:
            mask = mask & (np.arange(len(mask)) == self._pin(task))
        of_pods = self._allowed(scored, pinned=pinned)
        of_plugins = self._by_plugins.allowed(gang, task)
        return all_of([each for each in (mask, of_pods, of_plugins) if each is not None])

    def places(self, task: Task) -> Counts:
        """At most how many tasks like ``task`` each node takes as the ledger stands, shape (N,)."""
        asked = np.flatnonzero(task.request > 0)
        places: Counts = (self._room[:, asked] // task.request[asked]).min(axis=1, initial=MANY)
        return np.where(self.admits(task), np.maximum(places, 0), 0)

    def places_if_empty(self, task: Task) -> Counts:
        """At most how many tasks like ``task`` each node would take if empty, shape (N,)."""
        sizes, pin = self._snapshot.table.sizes(), self._pin(task)
        return places_if_empty(task, self._facts, self._predicates, sizes=sizes, pinned=pin)

    def scores(self, gang: Gang, task: Task, rows: Sequence[int]) -> Scores:
        """The summed scores of ``task`` on the nodes of ``rows``, whether it fits there or not.

        A pin is left out of account.
        """
        scored = self._shape_scores(task)
        at = np.asarray(rows, dtype=np.intp)
        _, score = scored.pricing.price(*self._columns(at))
        if scored.fit.score is not None:
            score += scored.fit.score.take(at)
        rules = self._rules(scored, pinned=None)
        of_pods = None if rules is None else rules.liked()
        of_plugins = self._by_plugins.liked(gang, task)
        for liked in (of_pods, of_plugins):
            if liked is not None:
                score = score + liked.take(at)
        return score

    def never(self, task: Task) -> Never | None:
        """Why no node could take ``task`` even if nothing ran there; None: one could."""
        nodes, pin = self._snapshot.table, self._pin(task)
        return known_never(task, self._facts, self._predicates, table=nodes, pinned=pin)

    def collect(self, tasks: Sequence[Task], *, within: Rows | None = None) -> Matrix | None:
        """Which free room to keep for ``tasks`` that do not all fit yet, shape ``(N, R)``.

        None: nodes (of ``within``) never hold them. Other pods' and plugins' rules are left out.
        """
        alike: dict[tuple[int, NodeName], list[Task]] = {}
        for task in tasks:
            alike.setdefault((id(task.shape), task.pinned), []).append(task)
        return room_to_keep(
            [Wanted(self.admits(some[0]), some[0].request, len(some)) for some in alike.values()],
            free=self._room,
            allocatable=self._snapshot.table.allocatable,
            within=within,
        )

    def admits(self, task: Task) -> Mask:
        """The nodes that ``task`` may go to, whatever runs there, shape ``(N,)``.

        Rules about other pods and those of plugins are left out.
        """
        scored = self._shape_scores(task)
        mask = scored.fit.mask
        if scored.vetoed is not None:
            mask = mask & ~scored.vetoed
        return mask & (np.arange(len(mask)) == self._pin(task)) if task.pinned else mask

    def explain(self, gang: Gang, task: Task) -> Refusal:
        """Why :meth:`find` finds nothing for the tasks; slow, for refusals only."""
        return verdicts.explain(self.case(gang, task))

    def case(self, gang: Gang, task: Task) -> verdicts.Case:
        """The facts that decide which nodes take the task now; slow, for refusals and questions."""
        scored, pin = self._shape_scores(task), self._pin(task)
        return verdicts.Case(
            task=task,
            axis=self._snapshot.axis,
            facts=self._facts,
            predicates=self._predicates,
            free=self._free,
            sizes=self._snapshot.table.sizes(),
            rules=self._rules(scored, pinned=None if pin == -1 else pin),
            by_plugins=list(self._by_plugins.barred(gang, task)),
            vetoed=scored.vetoed,
            pinned=pin,
        )

    def _pin(self, task: Task) -> int | None:
        """The only row that ``task`` may have, -1 where its node is gone; None: it has no pin."""
        row = self._row(task.pinned) if task.pinned else None
        return -1 if task.pinned and row is None else row

    def _row(self, name: NodeName) -> int | None:
        return self._snapshot.table.index.get(name)

    def _shape_scores(self, task: Task) -> _ShapeScores:
        shape = task.shape
        scored = self._by_shape.pop(id(shape), None)
        if scored is None:
            while len(self._by_shape) >= KEPT_SHAPES:
                del self._by_shape[next(iter(self._by_shape))]
            scored = self._open(task)
        self._by_shape[id(shape)] = scored
        return scored

    def _open(self, task: Task) -> _ShapeScores:
        shape = task.shape
        fit = self._facts.fit(shape, predicates=self._predicates, scoring=self._scoring)
        return _ShapeScores(
            shape=shape,
            fit=fit,
            vetoed=self._vetoes.get(_unnamed(shape)) if self._vetoes else None,
            pricing=self._tariff.pricing(task),
            rules=self._ruleset(shape, fit),
        )

    def _current(self, scored: _ShapeScores) -> Scores:
        """The shape's scores, brought up to the ledger."""
        touched = self._ledger.touched
        since, scored.seen = scored.seen, len(touched)
        new, scores = scored.seen - since, scored.scores
        if scores is None or new * FEW > len(scores):
            scores = scored.scores = self._priced(scored)
        elif new > SINGLY:
            rows = np.array(touched[since:], dtype=np.intp)
            scores[rows] = self._priced(scored, rows)
        else:
            for row in touched[since:]:
                scores[row] = self._priced_one(scored, row)
        return scores

    def _priced_one(self, scored: _ShapeScores, row: int) -> float:
        fit = scored.fit
        if not fit.mask[row] or (scored.vetoed is not None and scored.vetoed[row]):
            return NOWHERE
        inverse = self._facts.inverse[:, row].tolist()
        score = scored.pricing.price_one(self._room[row].tolist(), inverse)
        return score if fit.score is None else score + float(fit.score[row])

    def _priced(self, scored: _ShapeScores, rows: Rows | None = None) -> Scores:
        fits, score = scored.pricing.price(*self._columns(rows))
        mask, static = scored.fit.mask, scored.fit.score
        fits &= mask if rows is None else mask.take(rows)
        if scored.vetoed is not None:
            fits &= ~(scored.vetoed if rows is None else scored.vetoed.take(rows))
        if static is not None:
            score += static if rows is None else static.take(rows)
        score[~fits] = NOWHERE
        return score

    def _columns(self, rows: Rows | None) -> tuple[Matrix, Scores]:
        if rows is None:
            return self._free, self._facts.inverse
        return self._free.take(rows, axis=1), self._facts.inverse.take(rows, axis=1)

    def _allowed(self, scored: _ShapeScores, *, pinned: int | None) -> Mask | None:
        rules = self._rules(scored, pinned=pinned)
        return None if rules is None else rules.allowed()

    def _follow(self) -> None:
        if self._census is not None:
            self._census.follow()
        if self._ports is not None:
            self._ports.follow()

    def _vetoed_rows(self) -> dict[PodShape, Mask]:
        found: dict[PodShape, Mask] = {}
        for veto in self._snapshot.vetoes:
            row = self._row(veto.node)
            if row is not None:
                nodes = len(self._snapshot.table.nodes)
                shape = _unnamed(veto.shape)
                found.setdefault(shape, np.zeros(nodes, dtype=np.bool_))[row] = True
        return found

    def _rules(self, scored: _ShapeScores, *, pinned: int | None) -> RuleSet | None:
        """The rules for a task that may go anywhere, or only to the row ``pinned``."""
        rules = scored.rules
        if pinned is not None and scored.shape.spread:
            rules = self._ruleset(scored.shape, scored.fit, pinned=pinned)
        if rules is not None:
            self._follow()
        return rules

    def _ruleset(
        self, shape: PodShape, fit: StaticFit, *, pinned: int | None = None
    ) -> RuleSet | None:
        rules: list[Rule] = []
        preferences: list[Preference] = []
        on = self._predicates
        if shape.host_ports and on.enabled and on.node_ports:
            rules.append(FreePorts(self._port_book(), shape.host_ports))
        if shape.looks_at_pods or self._snapshot.inter_pod:
            subject = Subject(
                shape=shape,
                identity=identity_of(shape, namespace=""),
                facts=self._facts,
                census=self._open_census(),
                pinned=pinned,
            )
            if on.enabled and on.topology_spread:
                rules += spread.rules(subject)
            if on.enabled and on.pod_affinity:
                rules += interpod.rules(subject)
            for preference in (
                interpod.preference(subject, weight=self._scoring.pod_affinity),
                spread.preference(subject, weight=self._scoring.topology_spread),
            ):
                if preference is not None:
                    preferences.append(preference)
        return RuleSet(rules, preferences, among=fit.mask) if rules or preferences else None

    def _port_book(self) -> PortBook:
        if self._ports is None:
            self._ports = PortBook(
                self._snapshot.ports,
                nodes=len(self._snapshot.table.nodes),
                journal=JournalReader(self._ledger.journal),
            )
            self._ports.follow()
        return self._ports

    def _open_census(self) -> Census:
        if self._census is None:
            self._census = Census(
                self._cache.placed_pods(self._snapshot), JournalReader(self._ledger.journal)
            )
            self._census.follow()
        return self._census


def _unnamed(shape: PodShape) -> PodShape:
    """What a veto is about: pods like it, whatever the labels of those without rules."""
    return shape if shape.looks_at_pods else replace(shape, spread_identity=None)
