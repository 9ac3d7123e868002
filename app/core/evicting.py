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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from app.core.alike import Panel, Traits
from app.core.combining import Opening, Tiers
from app.core.ledger import Ledger
from app.core.protection.disruptions import Disruptions
from app.core.victim_rules import Candidate, EvictionRule, Preemptor, Trait, VictimQueueCompare
from app.model.ids import QueueName
from app.model.reason import Spared
from app.model.resources import Mask, Rows
from app.model.snapshot import Snapshot

SAME_PRIORITY = "same priority"
HIGHER_PRIORITY = "higher priority"
NO_RULE = "that no plugin lets go"
_RANKED = frozenset({Trait.GANG_PRIORITY, Trait.PRIORITY})
"""What the rank of a candidate depends on."""


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
    ``tier`` is the number of the one that decided, from 0; None: none lets any candidate go, or
    none was asked.
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

    def lets_go(self, rows: Collection[int]) -> bool:
        """Whether the candidates at these positions were allowed."""
        return all(at in self._rules for at in rows)

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
        return self._evicting.disruptions.may_go_from(at)

    def budget(self) -> str:
        """What budget lets not all go together that are allowed (`Disruptions.tightest`)."""
        return self._evicting.disruptions.tightest(self.allowed)

    @contextmanager
    def leaving(self) -> Iterator["Leaving"]:
        """Inside, units go one after the other; afterwards the ledger is as before."""
        with self._evicting.ledger.trial():
            yield Leaving(self, self._evicting)


class Leaving:
    """Units that go one after the other on the ledger, each if it may as those before it are gone.

    Of units in the same order, fewer may go whenever more may.
    """

    def __init__(self, judgement: Judgement, evicting: "Evicting") -> None:
        self._judgement = judgement
        self._evicting = evicting

    def take(self, units: Sequence[Collection[int]]) -> int | None:
        """Let all of these go; the number of the first that may not, and then none of them goes.

        Of a unit some pods may be gone already. A gang that needs one member goes pod by pod.
        """
        ledger = self._evicting.ledger
        running, start = ledger.snapshot.running, len(ledger.journal)
        for number, unit in enumerate(units):
            rest = [at for at in unit if running.pods[at].uid not in ledger.evicted]
            gangs = [ledger.snapshot.gangs[running.gangs[at]] for at in rest]
            singly = all(gang.is_of_one and not gang.ends_whole for gang in gangs)
            for together in [(at,) for at in rest] if singly else [rest]:
                if not self._evicting.still_allows(self._judgement, together):
                    ledger.undo_since(start)
                    return number
                for at in together:
                    ledger.evict(at)
        return None

    def still_may(self) -> Mask:
        """Which of all running pods may go yet, each by itself, shape ``(P,)``."""
        return self._evicting.still_may(self._judgement, self._panel)

    @cached_property
    def _panel(self) -> Panel:
        judgement = self._judgement
        return self._evicting.panel(judgement.preemptor, judgement.allowed)


class Evicting:
    """The rules of one extension point on one ledger."""

    def __init__(self, tiers: Tiers[EvictionRule], opening: Opening) -> None:
        rules = [rule for tier in tiers for rule in tier]
        rules += [rule.beside for rule in rules if rule.beside is not None]
        self._tiers = [[rule for rule in tier if not rule.by_pod] for tier in tiers]
        self._of_pods = [rule for rule in rules if rule.by_pod]
        self._binding = [rule for rule in rules if rule.binds and not rule.by_pod]
        self._together = [rule.together for rule in self._binding if rule.together is not None]
        self.ledger: Ledger = opening.ledger
        self.disruptions = Disruptions(opening.ledger, now=opening.now)

    @cached_property
    def _traits(self) -> Traits:
        return Traits(self.ledger.snapshot)

    def panel(self, preemptor: Preemptor, rows: Rows) -> Panel:
        """The candidates at these positions."""
        return Panel(self.ledger.snapshot, self._traits, preemptor, rows)

    def judge(self, preemptor: Preemptor, rows: Rows) -> Judgement:
        """Which of the candidates at these positions of ``snapshot.running`` may go.

        Raises ``KeyError`` for a pod without a group here.
        """
        sorting = _Sorting(self.panel(preemptor, rows))
        for reason, mask in self.disruptions.spared(rows, preemptor):
            sorting.spare(mask, reason)
        sorting.bind(self._binding)
        for rule in self._of_pods:
            sorting.ask_pods(rule, self.ledger.snapshot)
        for number, tier in enumerate(self._tiers):
            if sorting.ask(tier):
                return sorting.judgement(number, self)
        sorting.close()
        return sorting.judgement(None, self)

    def still_allows(self, judgement: Judgement, rows: Collection[int]) -> bool:
        """See :meth:`Judgement.still_allows`."""
        preemptor = judgement.preemptor
        may_go = self.disruptions.allow(rows, coming_to=preemptor.coming_to)
        if not (may_go and judgement.lets_go(rows)):
            return False
        if judgement.tier is None:
            return True
        tier, snapshot = self._tiers[judgement.tier], self.ledger.snapshot
        kinds = snapshot.running.kinds.codes
        samples = {int(kinds[at]): at for at in rows}
        for candidate in (Candidate.of(snapshot, at) for at in samples.values()):
            spared = _bound(self._binding, preemptor, candidate).spared
            if spared or not _answer(tier, preemptor, candidate).rules:
                return False
        if len(rows) > 1 and not all(keeps(preemptor, rows) for keeps in self._together):
            return False
        pods = [Candidate.of(snapshot, at) for at in rows] if self._of_pods else []
        return not any(
            rule.allows(preemptor, pod) is False for rule in self._of_pods for pod in pods
        )

    def still_may(self, judgement: Judgement, panel: Panel) -> Mask:
        """See :meth:`Leaving.still_may`."""
        may = np.zeros(len(self.ledger.snapshot.running), dtype=np.bool_)
        sorting = _Sorting(panel)
        for reason, mask in self.disruptions.spared(panel.rows):
            sorting.spare(mask, reason)
        if judgement.tier is not None:
            sorting.bind(self._binding)
            if not sorting.ask(self._tiers[judgement.tier]):
                return may
        may[panel.rows] = sorting.left
        return may

    def unprotected(self, preemptor: Preemptor, rows: Rows) -> Judgement:
        """Which of the candidates at these positions are protected in no tier.

        No plugin is asked whether it lets a candidate go, here or later.
        """
        sorting = _Sorting(self.panel(preemptor, rows))
        for reason, mask in self.disruptions.spared(rows):
            sorting.spare(mask, reason)
        for rule in self._of_pods:
            sorting.ask_pods(rule, self.ledger.snapshot)
        return sorting.judgement(None, self)


class _Sorting:
    """What is known of the candidates of a ``panel`` so far; those ``left`` are not spared."""

    def __init__(self, panel: Panel) -> None:
        self._panel = panel
        self.left: Mask = np.ones(len(panel.rows), dtype=np.bool_)
        self._spared: Counter[str] = Counter()
        self._binding = _Answers.by_rules((), panel, _bound)
        self._asked: list[_Answers] = []

    def bind(self, rules: Sequence[EvictionRule]) -> None:
        """What holds whichever tier decides."""
        self._binding = _Answers.by_rules(rules, self._panel, _bound)
        self._spare_all(self._binding, self.left)

    def spare(self, mask: Mask, reason: str) -> None:
        """Spare the pods of ``mask``, which may not go."""
        count = int((mask & self.left).sum())
        if count:
            self._spared[reason] += count
            self.left = self.left & ~mask

    def ask_pods(self, rule: EvictionRule, snapshot: Snapshot) -> None:
        """Let a rule about single pods say no."""
        panel = self._panel
        refused = np.zeros(len(panel.rows), dtype=np.bool_)
        for at in np.flatnonzero(self.left).tolist():
            candidate = Candidate.of(snapshot, int(panel.rows[at]))
            refused[at] = rule.allows(panel.preemptor, candidate) is False
        self.spare(refused, rule.spares)

    def ask(self, tier: Sequence[EvictionRule]) -> bool:
        """Whether the ``tier`` lets some candidate go."""
        answers = _Answers.by_rules(tier, self._panel, _answer)
        self._asked.append(answers)
        goes = self.left & answers.which([bool(answer.rules) for answer in answers.answers])
        if not goes.any():
            return False
        self.close(~goes)
        return True

    def judgement(self, tier: int | None, evicting: Evicting) -> Judgement:
        """What was found."""
        rows = self._panel.rows[self.left]
        return Judgement(
            preemptor=self._panel.preemptor,
            allowed=rows,
            tier=tier,
            spared=tuple(Spared(reason, pods) for reason, pods in sorted(self._spared.items())),
            _rules=dict(zip(rows.tolist(), self._told(), strict=True)),
            _evicting=evicting,
        )

    def _told(self) -> list[str]:
        """The rules that let those go that are left."""
        if not self._asked:
            return [""] * int(self.left.sum())
        decided, binding = self._asked[-1], self._binding
        pairs = decided.of[self.left] * len(binding.answers) + binding.of[self.left]
        different, of = np.unique(pairs, return_inverse=True)
        texts: list[str] = []
        for pair in different.tolist():
            first, second = divmod(pair, len(binding.answers))
            rules = decided.answers[first].rules + binding.answers[second].rules
            texts.append("+".join(dict.fromkeys(rules)))
        return [texts[at] for at in of.tolist()]

    def close(self, mask: Mask | None = None) -> None:
        """Spare those of ``mask``, or all of them, by the first tier that says why."""
        mask = self.left if mask is None else mask
        for answers in self._asked:
            self._spare_all(answers, mask)
        self.spare(mask, NO_RULE)

    def _spare_all(self, answers: "_Answers", mask: Mask) -> None:
        """Spare those of ``mask`` that the ``answers`` spare."""
        for reason in dict.fromkeys(each.spared for each in answers.answers if each.spared):
            self.spare(
                mask & answers.which([each.spared == reason for each in answers.answers]), reason
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """The ``answers`` for classes of candidates, and the class ``of`` each, shape ``(C,)``."""

    answers: Sequence[_Answer]
    of: Rows

    @classmethod
    def by_rules(
        cls,
        rules: Sequence[EvictionRule],
        panel: Panel,
        ask: Callable[[Sequence[EvictionRule], Preemptor, Candidate], _Answer],
    ) -> "_Answers":
        """One for each class of candidates that are alike for the ``rules``."""
        samples, of = panel.classes(_RANKED.union(*(rule.looks_at for rule in rules)))
        return cls([ask(rules, panel.preemptor, sample) for sample in samples], of)

    def which(self, flags: Sequence[bool]) -> Mask:
        """The candidates with an answer that has a flag."""
        mask: Mask = np.array(flags, dtype=np.bool_)[self.of]
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


def _bound(rules: Sequence[EvictionRule], preemptor: Preemptor, candidate: Candidate) -> _Answer:
    """What the ``rules`` that bind say."""
    names: list[str] = []
    for rule in rules:
        said = rule.allows(preemptor, candidate)
        if said is False:
            return _Answer(spared=rule.spares)
        if said:
            names.append(rule.name)
    return _Answer(tuple(names))


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
