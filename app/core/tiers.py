"""From a configuration to one set of answers: how plugins in tiers combine (volcano.md §3.3).

:func:`build` checks the configuration once; :func:`open_policies` opens its plugins on a cycle's
ledger and combines their hooks, in the order of tiers and of plugins inside a tier:

* orders: the first plugin that tells two apart decides, then creation time, then name. Keys become
  one tuple; before all of them come groups that a crash left partly bound;
* enqueueable: a rejection decides at once, otherwise a tier with a permission ends the vote, and a
  vote without any permission is a yes;
* allocatable, ready, valid: everybody must agree; overused: one is enough;
* borrowing: one plugin that forbids it is enough; the first that says how long a gang waits
  before room is collected for it decides;
* scores add up.

Whether the queue exists and is open is asked here, before any plugin: no configuration admits a
group to a closed queue.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np

from app.core.arguments import Noted
from app.core.conf_error import ConfError
from app.core.holders import Holders
from app.core.ledger import Ledger
from app.core.placement.verdicts import CORDONED, NOT_READY
from app.core.plugins import catalogue
from app.core.policy import (
    Allocatable,
    Enqueueable,
    Excess,
    GangKey,
    Hooks,
    IsBelowShare,
    Opened,
    OpenPlugin,
    Overused,
    Patience,
    Policies,
    Predicates,
    QueueCompare,
    Scoring,
    Session,
    TaskKey,
    Validity,
    Vote,
)
from app.core.shares.shares import share_of
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.reason import Cause, NodeCount, Refusal
from app.model.resources import Vector
from app.model.snapshot import NodeTable, Snapshot

_NO_NUMBER = 1 << 62
PATIENCE_S = 60.0
"""So long a gang waits before room is collected for it, where no plugin says otherwise."""

_SWITCHES = {
    "gang_order": "enableJobOrder",
    "queue_order": "enableQueueOrder",
    "task_order": "enableTaskOrder",
    "enqueueable": "enableJobEnqueued",
    "admissible": "enableJobEnqueued",
    "enqueued": "enableJobEnqueued",
    "overused": "enabledOverused",
    "allocatable": "enabledAllocatable",
    "permitted": "enabledAllocatable",
    "excess": "enabledAllocatable",
    "borrowable": "enabledAllocatable",
    "is_below_share": "enabledAllocatable",
    "gang_ready": "enableJobReady",
    "predicates": "enablePredicate",
    "scoring": "enableNodeOrder",
}
"""Hook -> the key of the plugin's configuration that turns it off; the others cannot be."""

_HELD = frozenset(
    {Cause.QUEUE_QUOTA, Cause.QUEUE_ROOM, Cause.QUEUE_OVERUSED, Cause.CLUSTER_OVERUSED}
)
"""Causes where other groups hold what is short."""


def build(conf: SchedulerConf) -> Policies:
    """The plugins of ``conf`` that there are, their arguments checked; raises ``ConfError``."""
    tiers: list[list[tuple[PluginConf, OpenPlugin]]] = []
    warnings = list(conf.warnings)
    for number, tier in enumerate(conf.tiers, start=1):
        configured: list[tuple[PluginConf, OpenPlugin]] = []
        for position, plugin in enumerate(tier, start=1):
            configure = catalogue.PLUGINS.get(plugin.name)
            if configure is None:
                continue
            arguments = Noted(plugin.arguments)
            configured.append((plugin, configure(replace(plugin, arguments=arguments))))
            warnings += [
                f"tier {number}, plugin {position} ({plugin.name}): argument {key} has no effect"
                for key in arguments.unread()
            ]
        tiers.append(configured)
    _reject_two_fair_shares(conf)
    return Policies(conf=replace(conf, warnings=tuple(warnings)), tiers=tiers)


def open_policies(
    policies: Policies, ledger: Ledger, *, now: float, explain: bool = True
) -> Opened:
    """The combined answers of ``policies`` on ``ledger``; ``now`` is seconds since the epoch.

    ``explain``: refusals tell who holds what is short, for which all groups are looked at.
    """
    session = Session(ledger=ledger, conf=policies.conf, now=now)
    tiers = [
        [switched(open_plugin(session), conf) for conf, open_plugin in tier]
        for tier in policies.tiers
    ]
    hooks = [h for tier in tiers for h in tier]
    gate = _Gate(ledger, holders=Holders(ledger) if explain else None)
    limits = [h.allocatable for h in hooks if h.allocatable]
    hard_limits = [limit for h in hooks if (limit := h.borrowable or h.allocatable) is not None]
    set_limits = [h.permitted for h in hooks if h.permitted]
    bounds = [h.overused for h in hooks if h.overused]
    enqueued = [h.enqueued for h in hooks if h.enqueued]
    borrowing = [h.borrowing for h in hooks if h.borrowing]
    ready = [h.gang_ready for h in hooks if h.gang_ready]

    def admitted(gang: Gang) -> None:
        for tell in enqueued:
            tell(gang)

    return Opened(
        gang_key=_gang_key([h.gang_order for h in hooks if h.gang_order]),
        task_key=_task_key([h.task_order for h in hooks if h.task_order]),
        queue_order=_queue_order([h.queue_order for h in hooks if h.queue_order], ledger),
        gang_valid=_first_refusal([h.gang_valid for h in hooks if h.gang_valid]),
        enqueueable=gate.enqueueable(_ballots(tiers, lambda hooks: hooks.enqueueable)),
        admissible=gate.enqueueable(
            _ballots(tiers, lambda hooks: hooks.admissible or hooks.enqueueable)
        ),
        enqueued=admitted,
        allocatable=gate.allocatable(limits),
        borrowable=gate.allocatable(hard_limits),
        permitted=gate.allocatable(set_limits),
        excess=_largest([h.excess for h in hooks if h.excess], ledger.snapshot),
        overused=gate.overused(bounds),
        is_below_share=_all_below_share([h.is_below_share for h in hooks if h.is_below_share]),
        borrows=all(terms.enabled for terms in borrowing),
        patience=_patience(
            [h.patience for h in hooks if h.patience],
            general=next((t.patience_s for t in borrowing if t.patience_s), PATIENCE_S),
        ),
        gang_ready=lambda gang: all(test(gang) for test in ready),
        scoring=add_up([h.scoring for h in hooks if h.scoring]),
        predicates=next((h.predicates for h in hooks if h.predicates), Predicates(enabled=False)),
        standings=next((h.standings for h in hooks if h.standings), None),
    )


def switched(hooks: Hooks, conf: PluginConf) -> Hooks:
    """``hooks`` without those that ``conf`` turns off."""
    off = {hook: None for hook, switch in _SWITCHES.items() if not conf.enabled(switch)}
    return replace(hooks, **off) if off else hooks


def add_up(scorings: Sequence[Scoring]) -> Scoring:
    """One set of weights; bin packing weighs resources as the last that does it says."""
    sums = {
        f.name: sum(getattr(scoring, f.name) for scoring in scorings)
        for f in fields(Scoring)
        if f.name != "binpack"
    }
    binpack = next((s.binpack for s in reversed(scorings) if s.binpack), {})
    return Scoring(**sums, binpack=binpack)


def _reject_two_fair_shares(conf: SchedulerConf) -> None:
    drf, proportion = conf.plugin("drf"), conf.plugin("proportion")
    if drf is not None and drf.enabled("enableHierarchy") and proportion is not None:
        raise ConfError(
            "plugins proportion and drf with enableHierarchy conflict: both order the queues"
        )


def _gang_key(keys: Sequence[GangKey]) -> GangKey:
    def key(gang: Gang) -> tuple[object, ...]:
        return (*[k(gang) for k in keys], *gang.age)

    return key


def _task_key(keys: Sequence[TaskKey]) -> TaskKey:
    def key(task: Task) -> tuple[object, ...]:
        by_plugins = [k(task) for k in keys]
        # Whoever must be near others comes when these have their places.
        follows = bool(task.shape.pod_affinity)
        return (*by_plugins, follows, _trailing_number(task.name), task.created, task.name)

    return key


def _trailing_number(name: str) -> int:
    """The index at the end of a member's name; names without one come last."""
    last = name.rpartition("-")[2]
    return int(last) if last.isascii() and last.isdigit() else _NO_NUMBER


def _queue_order(compares: Sequence[QueueCompare], ledger: Ledger) -> QueueCompare:
    """As the plugins say; if none does, the queue that holds less of the cluster by its weight.

    Volcano takes the older queue then, which gets all there is.
    """
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


def _first_refusal(tests: Sequence[Validity]) -> Validity:
    def test(gang: Gang) -> Refusal | None:
        for ask in tests:
            refusal = ask(gang)
            if refusal is not None:
                return refusal
        return None

    return test


def _all_below_share(tests: Sequence[IsBelowShare]) -> IsBelowShare:
    return lambda queue, asked: all(test(queue, asked) for test in tests)


def _patience(of_plugins: Sequence[Patience], *, general: float) -> Callable[[Gang], float]:
    def patience(gang: Gang) -> float:
        said = (ask(gang) for ask in of_plugins)
        return next((seconds for seconds in said if seconds is not None), general)

    return patience


def _largest(tests: Sequence[Excess], snapshot: Snapshot) -> Excess:
    nothing = np.zeros(len(snapshot.axis), dtype=np.int64)

    def test(queue: QueueName) -> Vector:
        largest = nothing
        if queue in snapshot.queues:
            for ask in tests:
                largest = np.maximum(largest, ask(queue))
        return largest

    return test


def _ballots(
    tiers: Sequence[Sequence[Hooks]], of: Callable[[Hooks], Enqueueable | None]
) -> Validity:
    voters: list[list[Enqueueable]] = [
        [ask for hooks in tier if (ask := of(hooks)) is not None] for tier in tiers
    ]

    def vote(gang: Gang) -> Refusal | None:
        for tier in voters:
            permitted = False
            for ask in tier:
                ballot = ask(gang)
                if ballot.vote is Vote.REJECT:
                    return ballot.refusal or Refusal(Cause.NOT_ADMITTED)
                permitted = permitted or ballot.vote is Vote.PERMIT
            if permitted:
                return None
        return None

    return vote


class _Gate:
    """Asks about the queue first, then the plugins, and adds what explains their refusals.

    These are the holders, and the nodes that do not count in what the cluster has.
    """

    def __init__(self, ledger: Ledger, *, holders: Holders | None) -> None:
        self._queues = ledger.snapshot.queues
        self._holders = holders
        self._nodes = len(ledger.snapshot.table.nodes)
        self._left_out = _left_out(ledger.snapshot.table)
        self._closed = {
            name: Refusal(Cause.QUEUE_CLOSED, where=name)
            for name, queue in self._queues.items()
            if not queue.is_open
        }

    def enqueueable(self, vote: Validity) -> Validity:
        def test(gang: Gang) -> Refusal | None:
            return self._queue_refusal(gang.queue) or self._explained(vote(gang), at_the_door=True)

        return test

    def allocatable(self, tests: Sequence[Allocatable]) -> Allocatable:
        def test(queue: QueueName, task: Task) -> Refusal | None:
            shut = self._queue_refusal(queue)
            if shut is not None:
                return shut
            for ask in tests:
                refusal = ask(queue, task)
                if refusal is not None:
                    return self._explained(refusal)
            return None

        return test

    def overused(self, tests: Sequence[Overused]) -> Overused:
        def test(queue: QueueName) -> Refusal | None:
            if queue not in self._queues:
                return self._queue_refusal(queue)
            for ask in tests:
                refusal = ask(queue)
                if refusal is not None:
                    return self._explained(refusal)
            return None

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
