"""How the rules of plugins about victims become one judgement (volcano.md §3.3).

Within a tier a candidate may go if no rule says no and one says yes; the first tier that lets some
candidate go decides. A tier in which every candidate is refused lets none go, and the next one is
asked. What protects candidates in all tiers comes first: budgets, minimum run times
(:mod:`app.core.protection.disruptions`), rules that bind, and priority: no gang evicts one of
higher priority in its queue, nor one of the same priority unless a rule says so that looks at more
than priority; inside a gang only members of lower priority go.

Answers are given as the ledger stands. With more evictions they turn from yes to no, never back.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from app.core.combining import Opening, Tiers
from app.core.ledger import Ledger
from app.core.policy import Candidate, EvictionRule, Preemptor, VictimQueueCompare
from app.core.protection.disruptions import JOB_BUDGET, Disruptions
from app.model.ids import QueueName
from app.model.reason import Spared
from app.model.resources import Mask, Rows
from app.model.snapshot import Snapshot

SAME_PRIORITY = "same priority"
HIGHER_PRIORITY = "higher priority"
NO_RULE = "that no plugin lets go"


class _Rank(Enum):
    """How a candidate stands to a preemptor of its queue."""

    LOWER = ""
    SAME = SAME_PRIORITY
    HIGHER = HIGHER_PRIORITY


class _Answer(NamedTuple):
    """What a tier says: the ``rules`` that let a candidate go, or why it is ``spared``.

    Both empty: no rule of the tier has a say.
    """

    rules: tuple[str, ...] = ()
    spared: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """Which candidates may go for ``preemptor``, and why others may not.

    ``allowed`` are positions in ``snapshot.running``, shape ``(A,)``, in the order asked.
    ``tier`` is the number of the one that decided, from 0; None: none lets any candidate go.
    """

    preemptor: Preemptor
    allowed: Rows
    tier: int | None
    spared: tuple[Spared, ...]
    _rules: Mapping[int, str]
    _evicting: "Evicting"

    def rule(self, at: int) -> str:
        """The plugins whose rules let the candidate at that position go, joined by ``+``.

        First those of the tier that decided. Raises ``KeyError`` for a candidate that may not go.
        """
        return self._rules[at]

    def still_allows(self, rows: Collection[int]) -> bool:
        """Whether all candidates at these positions may go together, as the ledger stands now.

        Ask about a whole unit before the first of its pods is evicted on the ledger. Only the tier
        that decided is asked, and what holds in all tiers.
        """
        return self._evicting.still_allows(self, rows)

    def may_go_from(self, at: int) -> float:
        """When the minimum run time of its queue ends for the pod at that position.

        Seconds since the epoch; 0: its queue has none.
        """
        return self._evicting.may_go_from(at)

    def allows_together(self, units: Iterable[Collection[int]]) -> bool:
        """Whether these units may go one after the other, each as those before it leave the ledger.

        Of units in the same order, fewer may go whenever more may. The ledger is as before.
        """
        return self._evicting.allow_together(self, units)


class Evicting:
    """The rules of one extension point on one ledger."""

    def __init__(self, tiers: Tiers[EvictionRule], opening: Opening) -> None:
        rules = [rule for tier in tiers for rule in tier]
        self._tiers = [[rule for rule in tier if not rule.by_pod] for tier in tiers]
        self._of_pods = [rule for rule in rules if rule.by_pod]
        self._binding = [rule for rule in rules if rule.binds and not rule.by_pod]
        self._ledger: Ledger = opening.ledger
        self._disruptions = Disruptions(opening.ledger, now=opening.now)

    def judge(self, preemptor: Preemptor, rows: Rows, *, below: int = -1) -> Judgement:
        """Which of the candidates at these positions of ``snapshot.running`` may go.

        ``below``: only tiers after that one are asked, as what it let go was not enough. Raises
        ``KeyError`` for a pod without a group here.
        """
        judged = _Judged(self._ledger.snapshot, rows)
        for reason, mask in self._disruptions.spared(rows):
            judged.spare(mask, reason)
        judged.bind([self._bound(preemptor, sample) for sample in judged.samples])
        for rule in self._of_pods:
            judged.ask_pods(rule, preemptor)
        for number, tier in enumerate(self._tiers):
            if number > below and judged.ask(tier, preemptor):
                return judged.judgement(preemptor, number, self)
        return judged.judgement(preemptor, None, self)

    def still_allows(self, judgement: Judgement, rows: Collection[int]) -> bool:
        """See :meth:`Judgement.still_allows`."""
        if judgement.tier is None or not self._disruptions.allow(rows):
            return False
        tier, preemptor = self._tiers[judgement.tier], judgement.preemptor
        kinds = self._ledger.snapshot.running.kinds.codes
        asked: set[int] = set()
        for at in rows:
            candidate = Candidate.of(self._ledger.snapshot, at)
            if any(rule.allows(preemptor, candidate) is False for rule in self._of_pods):
                return False
            if kinds[at] not in asked:
                asked.add(kinds[at])
                if self._bound(preemptor, candidate).spared:
                    return False
                if not _answer(tier, preemptor, candidate).rules:
                    return False
        return True

    def allow_together(self, judgement: Judgement, units: Iterable[Collection[int]]) -> bool:
        """See :meth:`Judgement.allows_together`."""
        with self._ledger.trial():
            for unit in units:
                if not self.still_allows(judgement, unit):
                    return False
                for at in unit:
                    self._ledger.evict(at)
        return True

    def may_go_from(self, at: int) -> float:
        """See :meth:`Judgement.may_go_from`."""
        return self._disruptions.may_go_from(at)

    def unprotected(self, preemptor: Preemptor, rows: Rows) -> tuple[Rows, tuple[Spared, ...]]:
        """Of the candidates at these positions those that are protected in no tier.

        And what protects the others. No plugin is asked whether it lets a candidate go.
        """
        judged = _Judged(self._ledger.snapshot, rows)
        for reason, mask in self._disruptions.spared(rows):
            judged.spare(mask, reason)
        kept = [self._disruptions.is_spared_by_job(sample.at) for sample in judged.samples]
        judged.bind([_Answer(spared=JOB_BUDGET if each else "") for each in kept])
        for rule in self._of_pods:
            judged.ask_pods(rule, preemptor)
        return judged.left()

    def protect_none(self, units: Iterable[Collection[int]]) -> bool:
        """Whether budgets and run times let these units go one after the other.

        The ledger is as before.
        """
        with self._ledger.trial():
            for unit in units:
                if not self._disruptions.allow(unit):
                    return False
                for at in unit:
                    self._ledger.evict(at)
        return True

    def _bound(self, preemptor: Preemptor, candidate: Candidate) -> _Answer:
        """What job disruption budgets say, and the rules that bind."""
        if self._disruptions.is_spared_by_job(candidate.at):
            return _Answer(spared=JOB_BUDGET)
        rules: list[str] = []
        for rule in self._binding:
            said = rule.allows(preemptor, candidate)
            if said is False:
                return _Answer(spared=rule.spares)
            if said:
                rules.append(rule.name)
        return _Answer(tuple(rules))


class _Judged:
    """What is known of the candidates at ``rows`` so far, most of it by their kinds.

    Kinds are told by their positions in ``samples``, which has one candidate of each.
    """

    def __init__(self, snapshot: Snapshot, rows: Rows) -> None:
        self._snapshot = snapshot
        self._rows = rows
        _, first, self._kinds = np.unique(
            snapshot.running.kinds.codes[rows], return_index=True, return_inverse=True
        )
        self.samples = [Candidate.of(snapshot, at) for at in rows[first].tolist()]
        self._open = np.ones(len(rows), dtype=np.bool_)
        self._spared: Counter[str] = Counter()
        self._binding: list[_Answer] = []
        self._refused: dict[int, str] = {}
        self._rules: dict[int, str] = {}

    def bind(self, answers: list[_Answer]) -> None:
        """What holds of each kind whichever tier decides."""
        self._binding = answers
        for reason in dict.fromkeys(answer.spared for answer in answers if answer.spared):
            self.spare(self._with([answer.spared == reason for answer in answers]), reason)

    def spare(self, mask: Mask, reason: str) -> None:
        """Spare the pods of ``mask``, which may not go."""
        count = int((mask & self._open).sum())
        if count:
            self._spared[reason] += count
            self._open &= ~mask

    def ask_pods(self, rule: EvictionRule, preemptor: Preemptor) -> None:
        """Let a rule about single pods say no."""
        refused = np.zeros(len(self._rows), dtype=np.bool_)
        for at in np.flatnonzero(self._open).tolist():
            candidate = Candidate.of(self._snapshot, int(self._rows[at]))
            refused[at] = rule.allows(preemptor, candidate) is False
        self.spare(refused, rule.spares)

    def ask(self, tier: Sequence[EvictionRule], preemptor: Preemptor) -> bool:
        """Whether the ``tier`` lets some candidate go."""
        rules: dict[int, str] = {}
        for kind in np.unique(self._kinds[self._open]).tolist():
            answer = _answer(tier, preemptor, self.samples[kind])
            if answer.rules:
                rules[kind] = "+".join(dict.fromkeys(answer.rules + self._binding[kind].rules))
            elif answer.spared:
                self._refused.setdefault(kind, answer.spared)
        goes = self._open & self._with([kind in rules for kind in range(len(self.samples))])
        if not goes.any():
            return False
        self._rules = rules
        self._close(self._open & ~goes)
        self._open = goes
        return True

    def left(self) -> tuple[Rows, tuple[Spared, ...]]:
        """The positions of pods that are not spared, and why the others are."""
        spared = sorted(self._spared.items())
        return self._rows[self._open], tuple(Spared(reason, pods) for reason, pods in spared)

    def judgement(self, preemptor: Preemptor, tier: int | None, evicting: Evicting) -> Judgement:
        """What was found."""
        if tier is None:
            self._close(self._open)
            self._open = np.zeros(len(self._rows), dtype=np.bool_)
        return Judgement(
            preemptor=preemptor,
            allowed=self._rows[self._open],
            tier=tier,
            spared=tuple(Spared(reason, pods) for reason, pods in sorted(self._spared.items())),
            _rules={
                at: self._rules[kind]
                for at, kind in zip(
                    self._rows[self._open].tolist(), self._kinds[self._open].tolist(), strict=True
                )
            },
            _evicting=evicting,
        )

    def _close(self, mask: Mask) -> None:
        kinds, counts = np.unique(self._kinds[mask], return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            self._spared[self._refused.get(kind, NO_RULE)] += count

    def _with(self, flags: list[bool]) -> Mask:
        """The candidates of kinds with a flag."""
        mask: Mask = np.array(flags, dtype=np.bool_)[self._kinds]
        return mask


def by_tiers(tiers: Tiers[EvictionRule], opening: Opening) -> Evicting:
    """The first tier that lets some candidate go decides."""
    return Evicting(tiers, opening)


def order_of_victim_queues(
    tiers: Tiers[VictimQueueCompare], _opening: Opening
) -> VictimQueueCompare:
    """As the first plugin says that tells two apart."""
    compares = [ask for tier in tiers for ask in tier]

    def compare(preemptor: Preemptor, left: QueueName, right: QueueName) -> int:
        said = (ask(preemptor, left, right) for ask in compares)
        return next((order for order in said if order), 0)

    return compare


def _answer(tier: Sequence[EvictionRule], preemptor: Preemptor, candidate: Candidate) -> _Answer:
    rank = _rank(preemptor, candidate)
    if rank is _Rank.HIGHER:
        return _Answer(spared=rank.value)
    said_yes: list[EvictionRule] = []
    for rule in tier:
        said = rule.allows(preemptor, candidate)
        if said is False:
            return _Answer(spared=rule.spares)
        if said:
            said_yes.append(rule)
    if not said_yes:
        return _Answer()
    if rank is _Rank.SAME and not any(rule.among_equals for rule in said_yes):
        return _Answer(spared=rank.value)
    return _Answer(tuple(rule.name for rule in said_yes))


def _rank(preemptor: Preemptor, candidate: Candidate) -> _Rank:
    if preemptor.action.reclaims:
        return _Rank.LOWER  # queues are compared, not the priorities of their gangs
    if candidate.gang.key == preemptor.gang.key:
        mine = min((task.priority for task in preemptor.tasks), default=candidate.priority)
        its = candidate.priority
    else:
        mine, its = preemptor.gang.priority, candidate.gang.priority
    if its == mine:
        return _Rank.SAME
    return _Rank.LOWER if its < mine else _Rank.HIGHER
