"""Hierarchical dominant resource fairness: queues ordered by a tree of shares.

Queues place themselves in the tree by annotation (``root/research/vision`` with weights
``1/2/3``); the groups of a queue are leaves under its last name. A leaf is *saturated* when it
holds all it asks of some resource, or asks for a resource of which the cluster has none left. An
inner node scales its unsaturated children to the least share among them, so that one that ran
ahead does not speak for its siblings, adds the saturated ones as they are, and is saturated when
all children are.

The tree is built at the first comparison and then follows :attr:`Ledger.moved`: only the branches
above a changed leaf are worked out again, all of them when a resource runs out or comes back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.core.ledger import Ledger
from app.core.shares.shares import share_of
from app.core.victim_rules import Candidate, Preemptor
from app.model.decimals import decimal
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.resources import Matrix, Vector
from app.model.workload import Queue

_WEIGHTS = "volcano.sh/hierarchy-weights"


@dataclass(slots=True, eq=False)
class _Branch:
    """An inner node; ``rows`` are the leaves right below it."""

    weight: float
    allocated: NDArray[np.float64]
    parent: "_Branch | None" = None
    children: dict[str, "_Branch"] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    share: float = 0.0
    saturated: bool = False

    @property
    def weighted(self) -> float:
        return self.share / self.weight


class ShareTree:
    """The tree of one cycle; :meth:`compare` is a queue order."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._total = ledger.snapshot.total
        self._share = share_of(self._total)
        self._root = self._branch(weight=1.0, parent=None)
        self._row: dict[str, int] = {}
        self._home: list[_Branch] = []
        self._leaves = _Leaves.empty(len(self._total))
        self._seen = 0
        self._built = False

    def compare(self, left: QueueName, right: QueueName) -> int:
        """Negative: ``left`` goes first; the paths are walked down until they differ."""
        self._refresh()
        queues = self._ledger.snapshot.queues
        a, b = self._root, self._root
        for left_name, right_name in zip(queues[left].way, queues[right].way, strict=False):
            below_a, below_b = a.children.get(left_name), b.children.get(right_name)
            if below_a is None or below_b is None:
                return 0
            a, b = below_a, below_b
            if a.saturated != b.saturated:
                return 1 if a.saturated else -1
            if a.weighted != b.weighted:
                return -1 if a.weighted < b.weighted else 1
        return 0

    def shares(self, queue: QueueName, *, gang: Gang, more: Vector) -> Mapping[str, float]:
        """Weighted shares on the path of ``queue`` if ``gang`` held so much more, or less.

        By the path down to each name, the queue's own last.
        """
        self._refresh()
        row = self._row.get(gang.key)
        if row is None:
            return self._weighted(queue)
        leaves = self._leaves
        held, asked = leaves.allocated[row].copy(), leaves.request[row].copy()
        leaves.allocated[row] = held + more
        leaves.request[row] = np.maximum(asked + np.minimum(more, 0), leaves.allocated[row])
        self._follow([row])
        found = self._weighted(queue)
        leaves.allocated[row], leaves.request[row] = held, asked
        self._follow([row])
        return found

    def _weighted(self, queue: QueueName) -> Mapping[str, float]:
        known = self._ledger.snapshot.queues.get(queue)
        at, path, found = self._root, "", {}
        for name in known.way if known is not None else ():
            below = at.children.get(name)
            if below is None:
                break
            at, path = below, f"{path}/{name}"
            found[path] = at.weighted
        return found

    def _refresh(self) -> None:
        if not self._built:
            self._build()
            self._built = True
        moved = self._ledger.moved
        if self._seen == len(moved):
            return
        changed = {gang.key: gang for gang in moved[self._seen :]}
        self._seen = len(moved)
        rows = [self._row[key] for key in changed if key in self._row]
        for key, gang in changed.items():
            if key in self._row:
                row, account = self._row[key], self._ledger.gang(gang)
                self._leaves.allocated[row] = account.allocated
                self._leaves.request[row] = gang.request - account.lost
        self._follow(rows)

    def _follow(self, rows: Sequence[int]) -> None:
        """The leaves of ``rows`` have changed."""
        if self._leaves.saturate(self._total, rows):
            self._work_out_all()
        else:
            self._work_out_above(self._home[row] for row in rows)

    def _build(self) -> None:
        queues = self._ledger.snapshot.queues
        gangs = sorted(
            (g for g in self._ledger.snapshot.gangs.values() if g.queue in queues),
            key=lambda g: g.key,
        )
        for row, gang in enumerate(gangs):
            home = self._grow(queues[gang.queue])
            home.rows.append(row)
            self._home.append(home)
            self._row[gang.key] = row
        self._leaves = _Leaves.of(gangs, width=len(self._total))
        self._leaves.saturate(self._total, range(len(gangs)))
        self._work_out_all()

    def _grow(self, queue: Queue) -> _Branch:
        weights = queue.annotations.get(_WEIGHTS, "").split("/")[1:]
        at = self._root
        for depth, name in enumerate(queue.way):
            below = at.children.get(name)
            if below is None:
                weight = _weight(weights[depth]) if depth < len(weights) else 1.0
                below = at.children[name] = self._branch(weight=weight, parent=at)
            at = below
        return at

    def _branch(self, *, weight: float, parent: _Branch | None) -> _Branch:
        return _Branch(weight=weight, allocated=np.zeros(len(self._total)), parent=parent)

    def _work_out_all(self) -> None:
        found = [self._root]
        for branch in found:
            found += branch.children.values()
        for branch in reversed(found):
            self._work_out(branch)

    def _work_out_above(self, branches: Iterable[_Branch]) -> None:
        """Work out ``branches`` and what is above them, each once, children before parents."""
        depths: dict[int, dict[int, _Branch]] = {}
        for branch in branches:
            line = _line(branch)
            for depth, at in enumerate(reversed(line)):
                depths.setdefault(depth, {})[id(at)] = at
        for depth in sorted(depths, reverse=True):
            for at in depths[depth].values():
                self._work_out(at)

    def _work_out(self, branch: _Branch) -> None:
        below = [branch.children[name] for name in sorted(branch.children)]
        rows = branch.rows
        allocated = np.vstack([self._leaves.allocated[rows], *(b.allocated for b in below)])
        shares = self._shares(allocated)
        saturated = np.concatenate(
            [self._leaves.saturated[rows], np.array([b.saturated for b in below], dtype=bool)]
        )
        unsaturated = (shares > 0) & ~saturated
        least = min(1.0, float(shares[unsaturated].min())) if unsaturated.any() else 1.0
        scale = np.ones(len(shares))
        scale[unsaturated] = least / shares[unsaturated]
        branch.allocated = (allocated * scale[:, None]).sum(axis=0)
        branch.share = float(self._shares(branch.allocated[None, :])[0])
        branch.saturated = bool(saturated.all())

    def _shares(self, allocated: NDArray[np.float64]) -> NDArray[np.float64]:
        has = self._total > 0
        if not has.any() or not len(allocated):
            return np.zeros(len(allocated))
        shares: NDArray[np.float64] = (allocated[:, has] / self._total[has]).max(axis=1)
        return shares


@dataclass(slots=True, eq=False)
class Exchanges:
    """What queues take from one another: a queue takes while its branch stays the smaller one.

    The branches are those just below where the paths of both queues part, with all that the taker
    asks for on one side and without the pod on the other; they differ by more than ``margin``.
    How the taker stands is looked at once: what is evicted for it does not make its branch smaller.
    """

    tree: ShareTree
    margin: float
    _taker: tuple[Preemptor, Mapping[str, float]] | None = field(default=None, init=False)

    def may_go(self, preemptor: Preemptor, candidate: Candidate) -> bool | None:
        """Whether the pod's queue gives it to that of ``preemptor``; None: it is the same one."""
        queue = candidate.gang.queue
        if queue == preemptor.gang.queue:
            return None
        mine = self._shares_of_taker(preemptor)
        its = self.tree.shares(queue, gang=candidate.gang, more=-candidate.request)
        for (left, share), (right, other) in zip(mine.items(), its.items(), strict=False):
            if left != right:
                return share + self.margin < other
        return False

    def _shares_of_taker(self, preemptor: Preemptor) -> Mapping[str, float]:
        if self._taker is None or self._taker[0] is not preemptor:
            gang, asked = preemptor.gang, preemptor.asked
            self._taker = preemptor, self.tree.shares(gang.queue, gang=gang, more=asked)
        return self._taker[1]


@dataclass(slots=True, eq=False)
class _Leaves:
    """The groups: what each holds and asks for, shape ``(G, R)``, and whether it is saturated."""

    allocated: Matrix
    request: Matrix
    saturated: NDArray[np.bool_]
    exhausted: NDArray[np.bool_]

    @classmethod
    def empty(cls, width: int) -> "_Leaves":
        return cls.of((), width=width)

    @classmethod
    def of(cls, gangs: Sequence[Gang], *, width: int) -> "_Leaves":
        shape = (len(gangs), width)
        return cls(
            allocated=np.array([g.allocated for g in gangs], dtype=np.int64).reshape(shape),
            request=np.array([g.request for g in gangs], dtype=np.int64).reshape(shape),
            saturated=np.zeros(len(gangs), dtype=bool),
            exhausted=np.zeros(width, dtype=bool),
        )

    def saturate(self, total: NDArray[np.int64], rows: Sequence[int]) -> bool:
        """Work out ``saturated`` of ``rows``, or of all when a resource ran out or came back.

        Tells whether it was all.
        """
        exhausted = self.allocated.sum(axis=0) >= total
        changed = bool((exhausted != self.exhausted).any())
        self.exhausted = exhausted
        at = slice(None) if changed else list(rows)
        asked, held = self.request[at], self.allocated[at]
        self.saturated[at] = ((asked > 0) & ((held >= asked) | exhausted)).any(axis=1)
        return changed


def _line(branch: _Branch) -> list[_Branch]:
    line = [branch]
    while (above := line[-1].parent) is not None:
        line.append(above)
    return line


def _weight(text: str) -> float:
    return max(decimal(text) or 1.0, 1.0)
