"""What plugins say of nodes for a task of a gang, followed as the ledger moves.

An answer is kept under the key that the plugin declares for the gang and the task. What changed
since is asked anew: the nodes that the ledger has touched, all of them when there are too many.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.core.placement.arrays import NOWHERE, all_of
from app.core.policy import NodeKey, NodeRule, NodeScore, NodesNow
from app.model.gang import Gang, Task
from app.model.resources import Mask, Matrix, Rows, Scores

KEPT_KEYS = 64
"""Answers of one plugin that are followed at a time; the one unused for longest goes first."""

FEW = 16
"""When more than one in this many nodes was touched, all are asked for again."""

_Item = TypeVar("_Item", np.bool_, np.float64)


class Barred(NamedTuple):
    """The nodes that a rule forbids for a task, shape ``(N,)``.

    ``details`` tells of some of them, shape ``(N,)`` too, in words; empty: nothing.
    """

    rule: NodeRule
    nodes: Mask
    details: Callable[[Mask], str]


@dataclass(slots=True, eq=False)
class _Followed(Generic[_Item]):
    """An answer per node as of position ``seen`` of ``touched``."""

    answer: NDArray[_Item]
    seen: int


class _Answers(Generic[_Item]):
    """The answers of one rule or score; ``free`` is of shape ``(R, N)`` and moves."""

    def __init__(
        self,
        key: NodeKey,
        ask: Callable[[Gang, Task, NodesNow], NDArray[_Item]],
        *,
        free: Matrix,
        touched: Sequence[int],
        ahead: bool,
    ) -> None:
        self._ahead = ahead
        self._key = key
        self._ask: Callable[[Gang, Task, NodesNow], NDArray[_Item]] = ask
        self._free = free
        self._touched = touched
        self._every: Rows = np.arange(free.shape[1], dtype=np.intp)
        self._kept: dict[Hashable, _Followed[_Item]] = {}

    def of(self, gang: Gang, task: Task) -> NDArray[_Item] | None:
        """One per node, not to be changed; None: the plugin has no say."""
        key = self._key(gang, task)
        if key is None:
            return None
        kept = self._kept.pop(key, None)
        if kept is None:
            while len(self._kept) >= KEPT_KEYS:
                del self._kept[next(iter(self._kept))]
            kept = _Followed(self._asked(gang, task, self._every), len(self._touched))
        elif kept.seen < len(self._touched):
            self._catch_up(kept, gang, task)
        self._kept[key] = kept
        return kept.answer

    def _catch_up(self, kept: _Followed[_Item], gang: Gang, task: Task) -> None:
        since, kept.seen = kept.seen, len(self._touched)
        if (kept.seen - since) * FEW > len(kept.answer):
            kept.answer = self._asked(gang, task, self._every)
        else:
            rows = np.array(self._touched[since:], dtype=np.intp)
            kept.answer[rows] = self._asked(gang, task, rows)

    def _asked(self, gang: Gang, task: Task, rows: Rows) -> NDArray[_Item]:
        return self._ask(gang, task, NodesNow(rows, self._free.take(rows, axis=1), self._ahead))


class ByPlugins:
    """All rules and scores of plugins, on one ledger."""

    def __init__(
        self,
        rules: Sequence[NodeRule],
        scores: Sequence[NodeScore],
        *,
        free: Matrix,
        touched: Sequence[int],
        ahead: bool = False,
    ) -> None:
        self._free, self._ahead = free, ahead
        self._rules = [
            (rule, _Answers(rule.key, rule.allows, free=free, touched=touched, ahead=ahead))
            for rule in rules
        ]
        self._scores = [
            _Answers(s.key, s.score, free=free, touched=touched, ahead=ahead) for s in scores
        ]
        self.silent = not (rules or scores)
        """Whether no plugin has any."""

    def allowed(self, gang: Gang, task: Task) -> Mask | None:
        """The nodes that every rule allows; None: no rule is about such a task."""
        masks = [mask for _, mask in self._masks(gang, task)]
        return all_of(masks) if masks else None

    def liked(self, gang: Gang, task: Task) -> Scores | None:
        """The summed scores; None: no plugin scores for such a task."""
        total: Scores | None = None
        for answers in self._scores:
            score = answers.of(gang, task)
            if score is not None:
                total = score if total is None else total + score
        return total

    def laid_over(self, scores: Scores, gang: Gang, task: Task) -> Scores:
        """``scores`` with those of plugins added, ``NOWHERE`` where a rule forbids the node."""
        liked, allowed = self.liked(gang, task), self.allowed(gang, task)
        if liked is not None:
            scores = scores + liked
        return scores if allowed is None else np.where(allowed, scores, NOWHERE)

    def barred(self, gang: Gang, task: Task) -> Iterator[Barred]:
        """Each rule that is about such a task, and the nodes that it forbids."""
        for rule, mask in self._masks(gang, task):
            yield Barred(rule, ~mask, partial(self._details, rule, gang, task))

    def _details(self, rule: NodeRule, gang: Gang, task: Task, nodes: Mask) -> str:
        if rule.details is None:
            return ""
        rows = np.flatnonzero(nodes)
        now = NodesNow(rows, self._free.take(rows, axis=1), self._ahead)
        return rule.details(gang, task, now)

    def _masks(self, gang: Gang, task: Task) -> Iterator[tuple[NodeRule, Mask]]:
        for rule, answers in self._rules:
            mask = answers.of(gang, task)
            if mask is not None:
                yield rule, mask
