"""Sums over the cluster and its queues, as rows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.tally import bump
from app.core.figures import QueueFigures
from app.model.amounts import CPU, MEMORY, PODS, Amounts, is_best_effort
from app.model.ids import ROOT_QUEUE, GroupKey, QueueName
from app.model.resources import ResourceAxis, Vector
from app.model.workload import Queue
from app.service.telling.view.nodes import NodeFacts, Requests, named
from app.service.telling.view.rows import (
    NO_AMOUNT,
    AmountOf,
    ClusterTotals,
    Fragmentation,
    IdleOf,
    JobRow,
    QueueRow,
    Stage,
)

_NO_FRAGMENTS: Final = Fragmentation(NO_AMOUNT, "", 0, {})
_GOING: Final = frozenset({Stage.BOUND, Stage.RUNNING})


@dataclass(slots=True, eq=False)
class Shapes:
    """How many members of all groups make which request."""

    waiting: Requests = field(default_factory=dict)
    placed: Requests = field(default_factory=dict)
    _of: dict[GroupKey, tuple[Requests, Requests]] = field(default_factory=dict)

    def follow(self, key: GroupKey, group: Group | None) -> None:
        """Count the members of a group as they are now; None: it is gone."""
        before = self._of.pop(key, ({}, {}))
        now: tuple[Requests, Requests] = ({}, {})
        if group is not None:
            now = _waiting(group), dict(group.counted.held)
            self._of[key] = now
        for each, sign in ((before, -1), (now, 1)):
            for counts, requests in zip((self.waiting, self.placed), each, strict=True):
                for request, count in requests.items():
                    if not is_best_effort(request):
                        bump(counts, request, sign * count)

    def most_common(self) -> tuple[Amounts, str]:
        """The request that tells what idle room is good for, and whose it is; empty: none."""
        for basis, counts in (("waiting", self.waiting), ("running", self.placed)):
            if counts:
                return max(counts, key=lambda each: (counts[each], each)), basis
        return (), ""


def _waiting(group: Group) -> Requests:
    """What waiting members ask for; before there are any, those that the owner describes."""
    if group.members or not group.wants_planning:
        return dict(group.counted.wanted)
    found: Requests = {}
    for template in group.templates.values():
        bump(found, template.shape.requests, template.replicas or 1)
    return found


def cluster_totals(facts: NodeFacts, jobs: Iterable[JobRow], shapes: Shapes) -> ClusterTotals:
    """The sums of this moment."""
    table = facts.table
    counted = np.array([name in facts.listed for name in table.axis.names], dtype=np.bool_)
    open_rows = np.ones(len(table.nodes), dtype=np.bool_)
    open_rows[[*table.away, *table.cordoned]] = False
    idle = np.maximum(table.allocatable - facts.used, 0)[open_rows] * counted
    names = table.axis.names
    waiting = running = pods_running = pods_waiting = 0
    for job in jobs:
        members = job.members
        waiting += job.waits
        running += job.stage in _GOING
        pods_running += members.running
        pods_waiting += members.waiting + members.gated
    return ClusterTotals(
        allocatable=named(names, (table.sizes() * counted).sum(axis=0).tolist()),
        used=named(names, facts.used.sum(axis=0).tolist()),
        idle=named(names, idle.sum(axis=0).tolist()),
        nodes=len(table.nodes),
        nodes_down=len(table.away),
        nodes_cordoned=len(table.cordoned),
        jobs_waiting=waiting,
        jobs_running=running,
        pods_running=pods_running,
        pods_waiting=pods_waiting,
        fragmentation=_fragmentation(idle, shapes, table.axis),
    )


def _fragmentation(idle: "np.ndarray", shapes: Shapes, axis: ResourceAxis) -> Fragmentation:
    shape, basis = shapes.most_common()
    if not shape:
        return _NO_FRAGMENTS
    asked = [(name, axis.index[name], amount) for name, amount in shape if amount]
    columns = [column for _, column, _ in asked]
    amounts = np.array([amount for _, _, amount in asked], dtype=np.int64)
    fit = (idle[:, columns] // amounts).min(axis=1) if len(idle) else np.zeros(0, dtype=np.int64)
    fits = int(fit.sum())
    resources: dict[str, IdleOf] = {}
    for name, column, amount in asked:
        if name != PODS:
            there, usable = int(idle[:, column].sum()), fits * amount
            resources[name] = IdleOf(there, usable, there - usable)
    return Fragmentation(dict(shape), basis, fits, resources)


def shown_resources(facts: NodeFacts) -> tuple[str, ...]:
    """The resources that nodes have, the most important first: cpu, memory, devices, the rest."""
    total = facts.table.sizes().sum(axis=0).tolist() if facts.table.nodes else []
    there = [
        name
        for name, amount in zip(facts.table.axis.names, total, strict=False)
        if amount and name in facts.listed
    ]

    def rank(name: str) -> tuple[int, str]:
        first = {CPU: 0, MEMORY: 1, PODS: 3}
        return first.get(name, 2 if "/" in name else 4), name

    return tuple(sorted(there, key=rank))


# --- queues ---------------------------------------------------------------------------------------


def queue_rows(
    cache: ClusterCache, figures: Mapping[QueueName, QueueFigures], jobs: Iterable[JobRow]
) -> list[QueueRow]:
    """The rows of all queues that the figures are of."""
    waiting: Counter[str] = Counter()
    running: Counter[str] = Counter()
    for job in jobs:
        if job.waits:
            waiting[job.queue] += 1
        if job.stage in _GOING:
            running[job.queue] += 1
    axis = cache.node_usage.axis
    return [
        _queue_row(queue, each, axis, waiting=waiting[name], running=running[name])
        for name, each in figures.items()
        if (queue := cache.queues.get(name)) is not None
    ]


def _queue_row(
    queue: Queue, figures: QueueFigures, axis: ResourceAxis, *, waiting: int, running: int
) -> QueueRow:
    def amounts(vector: Vector | None) -> AmountOf | None:
        return None if vector is None else named(axis.names[: len(vector)], vector.tolist())

    limit = figures.real_capability
    is_root = queue.name == ROOT_QUEUE
    return QueueRow(
        key=queue.name,
        name=queue.name,
        parent="" if is_root else queue.parent or ROOT_QUEUE,
        state=queue.state.value or "Open",
        weight=queue.weight,
        priority=queue.priority,
        reclaimable=queue.reclaimable,
        capability=dict(queue.capability),
        deserved_set=dict(queue.deserved),
        guarantee=dict(queue.guarantee),
        deserved=amounts(figures.deserved),
        held=amounts(figures.allocated) or NO_AMOUNT,
        asked=amounts(figures.request) or NO_AMOUNT,
        limit=None if limit is None else dict(zip(axis.names, limit.tolist(), strict=False)),
        borrowed=amounts(figures.borrowed),
        share=None if figures.share is None else float(figures.share),
        overused=figures.overused,
        waiting=waiting,
        running=running,
    )
