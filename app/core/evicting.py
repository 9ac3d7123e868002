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
from app.core.protection.disruptions import Disruptions
from app.model.ids import QueueName
from app.model.reason import Spared
from app.model.resources import Rows

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

    rules: str = ""
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

        Raises ``KeyError`` for one that may not go.
        """
        return self._rules[at]

    def still_allows(self, rows: Collection[int]) -> bool:
        """Whether all candidates at these positions may go together, as the ledger stands now.

        Ask about a whole unit before the first of its pods is evicted on the ledger. Only the tier
        that decided is asked, and what holds in all tiers.
        """
        return self._evicting.still_allows(self, rows)


class Evicting:
    """The rules of one extension point on one ledger."""

    def __init__(self, tiers: Tiers[EvictionRule], opening: Opening) -> None:
        self._tiers = tiers
        self._ledger: Ledger = opening.ledger
        self._binding = [rule for tier in tiers for rule in tier if rule.binds]
        self._disruptions = Disruptions(opening.ledger, now=opening.now)

    def judge(self, preemptor: Preemptor, rows: Iterable[int], *, below: int = -1) -> Judgement:
        """Which of the candidates at these positions of ``snapshot.running`` may go.

        ``below``: only tiers after that one are asked, as what it let go was not enough. Raises
        ``KeyError`` for a pod without a group here.
        """
        found = [Candidate.of(self._ledger.snapshot, at) for at in rows]
        spared: Counter[str] = Counter()
        left: list[Candidate] = []
        for candidate in found:
            protection = self._protection(preemptor, candidate)
            if protection:
                spared[protection] += 1
            else:
                left.append(candidate)
        refused: dict[int, str] = {}
        for number, tier in enumerate(self._tiers):
            if number <= below:
                continue
            rules: dict[int, str] = {}
            for candidate in left:
                answer = _answer(tier, preemptor, candidate)
                if answer.rules:
                    rules[candidate.at] = answer.rules
                elif answer.spared:
                    refused.setdefault(candidate.at, answer.spared)
            if rules:
                spared.update(refused.get(c.at, NO_RULE) for c in left if c.at not in rules)
                return self._judgement(preemptor, number, rules, spared)
        spared.update(refused.get(c.at, NO_RULE) for c in left)
        return self._judgement(preemptor, None, {}, spared)

    def still_allows(self, judgement: Judgement, rows: Collection[int]) -> bool:
        """See :meth:`Judgement.still_allows`."""
        if judgement.tier is None or not self._disruptions.allow(rows):
            return False
        tier, preemptor = self._tiers[judgement.tier], judgement.preemptor
        for at in rows:
            candidate = Candidate.of(self._ledger.snapshot, at)
            if self._bound(preemptor, candidate) or not _answer(tier, preemptor, candidate).rules:
                return False
        return True

    def _judgement(
        self,
        preemptor: Preemptor,
        tier: int | None,
        rules: Mapping[int, str],
        spared: Mapping[str, int],
    ) -> Judgement:
        return Judgement(
            preemptor,
            np.array(list(rules), dtype=np.intp),
            tier,
            tuple(Spared(reason, pods) for reason, pods in sorted(spared.items())),
            rules,
            self,
        )

    def _protection(self, preemptor: Preemptor, candidate: Candidate) -> str:
        """What spares the candidate in all tiers; empty: nothing does."""
        return self._bound(preemptor, candidate) or self._disruptions.spares(candidate.at)

    def _bound(self, preemptor: Preemptor, candidate: Candidate) -> str:
        for rule in self._binding:
            if rule.allows(preemptor, candidate) is False:
                return rule.spares
        return ""


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
    return _Answer(rules="+".join(rule.name for rule in said_yes))


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
