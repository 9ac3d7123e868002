"""What would happen: the planner asked about a cluster that is not, with nothing decided.

The answer is that of one full cycle on a snapshot in which something is otherwise, by the same code
that plans. What the next cycles would bring, when other pods end, is not foretold.
"""

from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import numpy as np

from app.core.planner import plan_around_faults
from app.core.policy import Policies
from app.core.sums import part_of, without_part
from app.model.eviction import EvictionPlan, PipelinedPlace
from app.model.gang import Gang
from app.model.ids import GroupKey, NodeName, QueueName
from app.model.plan import Placement, Plan
from app.model.reason import Refusal
from app.model.resources import Mask
from app.model.running import Protection, Running
from app.model.snapshot import NodeTable, Snapshot
from app.model.workload import Queue, Quota

_NO_GENERATION = -1
"""Of a table of nodes that is not; nothing is remembered of it."""


class Outcome(StrEnum):
    """What would become of a group."""

    RUNS = "runs"
    """The group gets all that its minimum lacks now."""
    EVICTS = "evicts"
    """The group gets that once pods that are evicted for it have gone."""
    WAITS = "waits"
    NEVER = "never"
    """The group waits, and no end of other pods helps."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterChange:
    """What is otherwise: these ``queues`` and ``quotas`` as they would be, and these nodes.

    Nodes are ``gone``, or ``uncordoned``. Groups have ``ended``: their pods are gone.
    """

    queues: Mapping[QueueName, Queue] = field(default_factory=dict)
    quotas: tuple[Quota, ...] = ()
    gone: frozenset[NodeName] = frozenset()
    uncordoned: frozenset[NodeName] = frozenset()
    ended: frozenset[GroupKey] = frozenset()


NO_CHANGE: Final = ClusterChange()


@dataclass(frozen=True, slots=True, eq=False)
class Fate:
    """What would become of ``gang``: its new places, or why it has none.

    ``eviction`` tells which pods would go for it. ``refusal`` of a group that runs is about members
    beyond its minimum.
    """

    gang: Gang
    outcome: Outcome
    places: tuple[Placement | PipelinedPlace, ...] = ()
    refusal: Refusal | None = None
    eviction: EvictionPlan | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """The fates of all groups that wait, and evictions for no group, in a ``snapshot``."""

    snapshot: Snapshot
    fates: Mapping[GroupKey, Fate]
    evictions: tuple[EvictionPlan, ...] = ()


def simulate_steps(
    snapshot: Snapshot, policies: Policies, *, change: ClusterChange = NO_CHANGE, now: float
) -> Generator[None, None, Simulated]:
    """What one cycle would do at ``now`` (seconds since the epoch) with the ``change``, in pieces.

    ``snapshot`` tells what runs where an action of ``policies`` evicts. Raises ``KeyError`` with
    the name of a node that is not there.
    """
    asked = changed(snapshot, change)
    planned = yield from plan_around_faults(asked, policies, now=now, shapes=None)
    decided = planned.with_refusals()
    fates = {gang.key: fate_of(gang, decided) for gang in asked.pending}
    others = tuple(each for each in decided.evictions if not each.preemptor)
    return Simulated(asked, fates, others)


def changed(snapshot: Snapshot, change: ClusterChange) -> Snapshot:
    """``snapshot`` with the change; pods of nodes that are gone are nowhere then.

    It has to tell what runs where groups have ended. Devices and volumes of these stay taken.
    """
    made = snapshot
    if change.queues:
        made = replace(made, queues={**made.queues, **change.queues})
    if change.quotas:
        names = {(quota.namespace, quota.name) for quota in change.quotas}
        others = (q for q in made.quotas if (q.namespace, q.name) not in names)
        made = replace(made, quotas=(*others, *change.quotas))
    if change.uncordoned:
        made = replace(made, table=_uncordoned(made.table, change.uncordoned))
    if change.ended:
        made = _without_groups(made, change.ended)
    return _without_nodes(made, change.gone) if change.gone else made


def _uncordoned(table: NodeTable, names: Collection[NodeName]) -> NodeTable:
    rows = [row for row in table.cordoned if table.nodes[row].name in names]
    return replace(
        table,
        nodes=tuple(
            replace(node, unschedulable=False) if node.name in names else node
            for node in table.nodes
        ),
        total=table.total + table.allocatable[rows].sum(axis=0),
        cordoned=tuple(row for row in table.cordoned if row not in rows),
        generation=_NO_GENERATION,
    )


def _without_groups(snapshot: Snapshot, ended: Collection[GroupKey]) -> Snapshot:
    running = snapshot.running
    used, releasing = snapshot.used.copy(), snapshot.releasing.copy()
    gone = np.array([key in ended for key in running.gangs], dtype=np.bool_)
    for at in np.flatnonzero(gone & (running.nodes < len(used))):
        used[running.nodes[at]] -= running.requests[at]
        if running.releasing[at]:
            releasing[running.nodes[at]] -= running.requests[at]
    usage = dict(snapshot.usage)
    for key in ended:
        queue, part = part_of(snapshot.gangs[key])
        usage[queue] = without_part(usage[queue], part)

    def left(gangs: Iterable[Gang]) -> tuple[Gang, ...]:
        return tuple(gang for gang in gangs if gang.key not in ended)

    return replace(
        snapshot,
        used=used,
        releasing=releasing,
        gangs={key: gang for key, gang in snapshot.gangs.items() if key not in ended},
        pending=left(snapshot.pending),
        awaited=left(snapshot.awaited),
        torn=left(snapshot.torn),
        shown=left(snapshot.shown),
        affine=left(snapshot.affine),
        usage=usage,
        places={key: places for key, places in snapshot.places.items() if key not in ended},
        collected=tuple(each for each in snapshot.collected if each.gang not in ended),
        running=_ending(running, gone),
    )


def _without_nodes(snapshot: Snapshot, gone: Collection[NodeName]) -> Snapshot:
    rows = [snapshot.table.index[name] for name in sorted(gone)]
    used, releasing = snapshot.used.copy(), snapshot.releasing.copy()
    used[rows] = releasing[rows] = 0
    return replace(
        snapshot,
        table=_without(snapshot.table, rows),
        used=used,
        releasing=releasing,
        running=_leaving(snapshot.running, rows),
        ports={row: ports for row, ports in snapshot.ports.items() if row not in rows},
    )


def _without(table: NodeTable, rows: Collection[int]) -> NodeTable:
    """The table with these nodes as not ready, which is what a lost node is."""
    allocatable = table.allocatable.copy()
    allocatable[list(rows)] = 0
    nodes = tuple(
        replace(node, ready=False) if row in rows else node for row, node in enumerate(table.nodes)
    )
    open_rows = [row for row in rows if row not in table.cordoned and row not in table.away]
    return replace(
        table,
        nodes=nodes,
        allocatable=allocatable,
        total=table.total - table.allocatable[open_rows].sum(axis=0),
        away=tuple(sorted({*table.away, *rows})),
        cordoned=tuple(row for row in table.cordoned if row not in rows),
        generation=_NO_GENERATION,
    )


def _leaving(running: Running, rows: Collection[int]) -> Running:
    """The pods of these nodes are no victims."""
    return _ending(running, np.isin(running.nodes, list(rows)))


def _ending(running: Running, pods: Mask) -> Running:
    """The pods of a mask of shape ``(P,)`` are no victims."""
    protected = np.where(pods & (running.protected == 0), Protection.ENDING, running.protected)
    return replace(running, protected=protected.astype(np.int8))


def fate_of(gang: Gang, decided: Plan) -> Fate:
    """What a plan makes of a gang that waits."""
    refusal = decided.refused.get(gang.key)
    eviction = next((each for each in decided.evictions if each.preemptor == gang.key), None)
    if eviction is not None and not eviction.victims:
        return Fate(gang, Outcome.RUNS, eviction.places)
    if eviction is not None:
        return Fate(gang, Outcome.EVICTS, eviction.places, refusal, eviction)
    placed = [each for each in decided.placed if each.gang == gang.key]
    places = tuple(place for each in placed for place in each.placements)
    if refusal is None or any(each.whole for each in placed) or has_its_minimum(gang):
        return Fate(gang, Outcome.RUNS, places, refusal)
    outcome = Outcome.WAITS if refusal.never is None else Outcome.NEVER
    return Fate(gang, outcome, places, refusal)


def has_its_minimum(gang: Gang) -> bool:
    """Whether only members beyond its minimum wait."""
    return gang.inqueue and gang.counts.ready >= gang.min_member and not gang.awaits_members
