"""How the answers of several plugins become one: the combinations of volcano.md §3.3.

A combination gets the hooks of one extension point, tier by tier, in the order of the
configuration, and returns one answer. Which point uses which one is a row of the table in
:mod:`app.core.points`.

* orders: the first plugin that tells two apart decides, then creation time, then name. Keys become
  one tuple;
* votes: a rejection decides at once, otherwise a tier with a permission ends the vote, and a vote
  without any permission is a yes;
* tests: all must agree, and the first refusal is the answer; amounts: the largest counts;
* weights of scores add up; of settings the first one counts.

Whether the queue exists and is open is asked here, before any plugin: no configuration admits a
group to a closed queue.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np

from app.core.entries import comes_too_early
from app.core.holders import Holders
from app.core.ledger import Ledger
from app.core.placement.verdicts import CORDONED, NOT_READY
from app.core.policy import (
    Allocatable,
    Borrowing,
    Enqueueable,
    Enqueued,
    Excess,
    GangKey,
    GangTest,
    IsBelowShare,
    NodeRule,
    Overused,
    Patience,
    Predicates,
    QueueCompare,
    Scoring,
    TaskKey,
    TaskOrder,
    Validity,
    Vote,
)
from app.core.shares.shares import share_of
from app.core.victim_rules import Preemptive, Preemptor
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.reason import CHARGED_FIRST, Cause, NodeCount, Refusal
from app.model.resources import Vector
from app.model.snapshot import NodeTable

Hook = TypeVar("Hook")
Tiers = Sequence[Sequence[Hook]]
"""What the plugins of each tier that have a say answer with."""

PATIENCE_S = 60.0
"""How long a gang waits before room is collected for it, where no plugin says otherwise."""

_NO_NUMBER = 1 << 62
_HELD = frozenset(
    {Cause.QUEUE_QUOTA, Cause.QUEUE_ROOM, Cause.QUEUE_OVERUSED, Cause.CLUSTER_OVERUSED}
)
"""Causes where other groups hold what is short."""


@dataclass(frozen=True, slots=True, eq=False)
class Opening:
    """What a combination may need beside the hooks."""

    ledger: Ledger
    gate: "Gate"
    now: float = 0.0
    """Seconds since the epoch."""


# --- orders --------------------------------------------------------------------------------------


def key_of_gangs(tiers: Tiers[GangKey], _opening: Opening) -> GangKey:
    """The keys of all plugins, then the age."""
    keys = list(_flat(tiers))

    def key(gang: Gang) -> tuple[object, ...]:
        return (*[k(gang) for k in keys], *gang.age)

    return key


def key_of_tasks(tiers: Tiers[TaskOrder], _opening: Opening) -> Callable[[Gang], TaskKey]:
    """The keys of all plugins, then the index at the end of the name, the age and the name."""
    orders = list(_flat(tiers))

    def key_of(gang: Gang) -> TaskKey:
        keys = [own for order in orders if (own := order(gang)) is not None]

        def key(task: Task) -> tuple[object, ...]:
            by_plugins = [k(task) for k in keys]
            # Members that must be near others come when these have their places.
            follows = bool(task.shape.pod_affinity)
            return (*by_plugins, follows, trailing_number(task.name), task.created, task.name)

        return key

    return key_of


@lru_cache(maxsize=1 << 16)
def trailing_number(name: str) -> int:
    """The index at the end of a member's name; names without one come last."""
    last = name.rpartition("-")[2]
    return int(last) if last.isascii() and last.isdigit() else _NO_NUMBER


def order_of_queues(tiers: Tiers[QueueCompare], opening: Opening) -> QueueCompare:
    """As the plugins say; if none does, the queue that holds less of the cluster by its weight.

    Volcano takes the older queue then, which gets all there is.
    """
    compares, ledger = list(_flat(tiers)), opening.ledger
    snapshot = ledger.snapshot
    share = share_of(snapshot.total)

    def held(name: QueueName) -> float:
        return share(ledger.queue(name).allocated) / max(snapshot.queues[name].weight, 1)

    age = {name: (queue.created, name) for name, queue in snapshot.queues.items()}

    def compare(left: QueueName, right: QueueName) -> int:
        for ask in compares:
            decided = ask(left, right)
            if decided:
                return decided
        if not compares and left != right:
            lighter, heavier = held(left), held(right)
            if lighter != heavier:
                return -1 if lighter < heavier else 1
        older, younger = age[left], age[right]
        return (older > younger) - (older < younger)

    return compare


# --- tests and votes -----------------------------------------------------------------------------


def first_refusal(tiers: Tiers[Validity], _opening: Opening) -> Validity:
    """The first refusal of a gang decides."""
    tests = list(_flat(tiers))

    def test(gang: Gang) -> Refusal | None:
        for ask in tests:
            refusal = ask(gang)
            if refusal is not None:
                return refusal
        return None

    return test


def vote(tiers: Tiers[Enqueueable], opening: Opening, *, waived: Cause | None = None) -> Validity:
    """A vote of gangs of open queues; a rejection for ``waived`` counts as a permission."""

    def outcome(gang: Gang) -> Refusal | None:
        for tier in tiers:
            permitted = False
            for ask in tier:
                ballot = ask(gang)
                if ballot.vote is Vote.REJECT:
                    refusal = ballot.refusal or Refusal(Cause.NOT_ADMITTED)
                    if refusal.cause is not waived:
                        return refusal
                permitted = permitted or ballot.vote is not Vote.ABSTAIN
            if permitted:
                return None
        return None

    return opening.gate.enqueueable(outcome)


def vote_given_room(tiers: Tiers[Enqueueable], opening: Opening) -> Validity:
    """The vote when the cluster as a whole is taken to have room enough."""
    return vote(tiers, opening, waived=Cause.CLUSTER_OVERUSED)


def all_told(tiers: Tiers[Enqueued], _opening: Opening) -> Enqueued:
    """Every plugin is told."""
    listeners = list(_flat(tiers))

    def tell_all(gang: Gang) -> None:
        for tell in listeners:
            tell(gang)

    return tell_all


def first_limit(tiers: Tiers[Allocatable], opening: Opening) -> Allocatable:
    """The first limit that refuses decides, in queues that are open."""
    return opening.gate.allocatable(list(_flat(tiers)))


def first_overuse(tiers: Tiers[Overused], opening: Opening) -> Overused:
    """One plugin that calls a queue overused is enough."""
    return opening.gate.overused(list(_flat(tiers)))


def all_below_share(tiers: Tiers[IsBelowShare], _opening: Opening) -> IsBelowShare:
    """All must agree."""
    tests = list(_flat(tiers))
    return lambda queue, asked: all(test(queue, asked) for test in tests)


def all_ready(tiers: Tiers[GangTest], _opening: Opening) -> GangTest:
    """All must agree."""
    tests = list(_flat(tiers))
    return lambda gang: all(test(gang) for test in tests)


def first_tier_agrees(tiers: Tiers[GangTest], _opening: Opening) -> GangTest:
    """All of the first tier that has a say must agree; without any it is a no."""
    tests = next((tier for tier in tiers if tier), ())
    return lambda gang: bool(tests) and all(test(gang) for test in tests)


def first_objection(tiers: Tiers[Preemptive], opening: Opening) -> Preemptive:
    """The first refusal decides, in queues that are open."""
    return opening.gate.preemptive(list(_flat(tiers)))


def largest(tiers: Tiers[Excess], opening: Opening) -> Excess:
    """The largest amount of each resource; nothing for a queue that does not exist."""
    tests, snapshot = list(_flat(tiers)), opening.ledger.snapshot
    nothing = np.zeros(len(snapshot.axis), dtype=np.int64)

    def test(queue: QueueName) -> Vector:
        most = nothing
        if queue in snapshot.queues:
            for ask in tests:
                most = np.maximum(most, ask(queue))
        return most

    return test


# --- settings ------------------------------------------------------------------------------------


def all_borrow(tiers: Tiers[Borrowing], _opening: Opening) -> bool:
    """One plugin that forbids it is enough."""
    return all(terms.enabled for terms in _flat(tiers))


def first_patience(
    tiers: Tiers[tuple[Patience | None, Borrowing | None]], _opening: Opening
) -> Callable[[Gang], float]:
    """What the first plugin says of the gang, else of all gangs, else :data:`PATIENCE_S`."""
    of_plugins = [ask for ask, _ in _flat(tiers) if ask is not None]
    in_general = (terms.patience_s for _, terms in _flat(tiers) if terms is not None)
    general = next(filter(None, in_general), PATIENCE_S)

    def patience(gang: Gang) -> float:
        said = (ask(gang) for ask in of_plugins)
        return next((seconds for seconds in said if seconds is not None), general)

    return patience


def sum_of_weights(tiers: Tiers[Scoring], _opening: Opening) -> Scoring:
    """One set of weights; bin packing weighs resources as the last that does it says."""
    scorings = list(_flat(tiers))
    sums = {
        f.name: sum(getattr(scoring, f.name) for scoring in scorings)
        for f in fields(Scoring)
        if f.name != "binpack"
    }
    binpack = next((s.binpack for s in reversed(scorings) if s.binpack), {})
    return Scoring(**sums, binpack=binpack)


def first_rules(tiers: Tiers[Predicates], _opening: Opening) -> Predicates:
    """The first that are set; none where no plugin sets any."""
    return next(_flat(tiers), Predicates(enabled=False))


def all_rules(tiers: Tiers[Sequence[NodeRule]], _opening: Opening) -> Sequence[NodeRule]:
    """A node has to obey all of them."""
    return [rule for rules in _flat(tiers) for rule in rules]


def in_order(tiers: Tiers[Hook], _opening: Opening) -> Sequence[Hook]:
    """Every one of them takes part."""
    return list(_flat(tiers))


def first_set(tiers: Tiers[Hook], _opening: Opening) -> Hook | None:
    """The first one, if there is any."""
    return next(_flat(tiers), None)


def _flat(tiers: Tiers[Hook]) -> Iterator[Hook]:
    return (hook for tier in tiers for hook in tier)


# --- the queue -----------------------------------------------------------------------------------


class Gate:
    """Asks about the queue first, then the plugins, and adds what explains their refusals.

    The explanations are the holders, and the nodes that do not count in what the cluster has.
    ``holders`` None: refusals name no holders of what is short.
    """

    def __init__(self, ledger: Ledger, *, holders: Holders | None) -> None:
        self._queues = ledger.snapshot.queues
        self._journal = ledger.journal
        self._holders = holders
        self._nodes = len(ledger.snapshot.table.nodes)
        self._left_out = _left_out(ledger.snapshot.table)
        self._closed = {
            name: Refusal(Cause.QUEUE_CLOSED, where=name)
            for name, queue in self._queues.items()
            if not queue.is_open
        }

    def enqueueable(self, outcome: Validity) -> Validity:
        """``outcome`` of a vote, where the queue of the gang is open."""

        def test(gang: Gang) -> Refusal | None:
            shut = self._queue_refusal(gang.queue)
            return shut or self._explained(outcome(gang), at_the_door=True)

        return test

    def allocatable(self, tests: Sequence[Allocatable]) -> Allocatable:
        """The first refusal of ``tests``, where the queue is open and the task not too early."""

        def test(queue: QueueName, task: Task) -> Refusal | None:
            shut = self._queue_refusal(queue)
            if shut is not None:
                return shut
            if comes_too_early(task, self._journal):
                return Refusal(Cause.QUEUE_QUOTA, where=queue, detail=CHARGED_FIRST)
            refusals = (ask(queue, task) for ask in tests)
            return self._explained(next(filter(None, refusals), None))

        return test

    def preemptive(self, tests: Sequence[Preemptive]) -> Preemptive:
        """The first refusal of ``tests``, where the queue is open."""

        def test(preemptor: Preemptor) -> Refusal | None:
            shut = self._queue_refusal(preemptor.gang.queue)
            if shut is not None:
                return shut
            refusals = (ask(preemptor) for ask in tests)
            return next((refusal for refusal in refusals if refusal is not None), None)

        return test

    def overused(self, tests: Sequence[Overused]) -> Overused:
        """The first refusal of ``tests``, where there is such a queue."""

        def test(queue: QueueName) -> Refusal | None:
            if queue not in self._queues:
                return self._queue_refusal(queue)
            return self._explained(next(filter(None, (ask(queue) for ask in tests)), None))

        return test

    def _queue_refusal(self, queue: QueueName) -> Refusal | None:
        if queue not in self._queues:
            return Refusal(Cause.QUEUE_MISSING, where=queue)
        return self._closed.get(queue)

    def _explained(self, refusal: Refusal | None, *, at_the_door: bool = False) -> Refusal | None:
        if refusal is None or refusal.cause not in _HELD or not refusal.shortfalls:
            return refusal
        if self._holders is None:
            return refusal
        if self._left_out and refusal.cause is not Cause.QUEUE_QUOTA:
            refusal = replace(refusal, nodes=self._left_out, total_nodes=self._nodes)
        resource = refusal.shortfalls[0].resource
        if refusal.cause is Cause.CLUSTER_OVERUSED:
            holders = self._holders.most(None, resource)
        else:
            queue = QueueName(refusal.where)
            holders = self._holders.most(queue, resource, of_minimum=at_the_door)
        return replace(refusal, holders=refusal.holders + holders) if holders else refusal


def _left_out(table: NodeTable) -> tuple[NodeCount, ...]:
    """The nodes of which only what runs there counts in what the cluster has."""
    counts = ((NOT_READY, len(table.away)), (CORDONED, len(table.cordoned)))
    return tuple(NodeCount(text, nodes) for text, nodes in counts if nodes)
