"""The planner: one snapshot in, one plan out.

A cycle runs the configured actions in their order over one ledger. It is a generator that yields
after every piece of work, so that an event loop can answer calls in between; nothing outside is
touched, and abandoning the generator abandons the cycle. Pieces are bounded. The longest are the
searches for victims: all that is tried for one gang by one action is one piece, on 1,000 nodes with
10,000 pods up to half a second (``python -m tests.bench.evictions``).

The outcome depends on the snapshot, the policies and ``now`` only: gangs, queues, members and nodes
are walked in total orders that end in names.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from app.core.actions import begun, lineage, refusals
from app.core.actions.allocate import allocate, call_forward
from app.core.actions.aside import set_aside
from app.core.actions.backfill import backfill
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.enqueue import enqueue
from app.core.actions.lower_gangs import LowerGangs
from app.core.actions.minimum import is_reached
from app.core.actions.over_capability import evict_over_capability
from app.core.actions.ports import NodeFinder
from app.core.actions.preempt import gangpreempt, preempt
from app.core.actions.queue_allocation_gates import keep_room_for_shown, newly_shown
from app.core.actions.reclaim import gangreclaim, reclaim
from app.core.actions.revoking import revoke
from app.core.actions.shuffle import shuffle
from app.core.faults import (
    MOST_FAULTS,
    LookingAt,
    Planned,
    PlanningFault,
    Upkeep,
    UpkeepFault,
    doing,
)
from app.core.holders import Holders
from app.core.ledger import Ledger
from app.core.placement.arrays import MANY, Counts
from app.core.placement.statics import ShapeCache
from app.core.points import Opened
from app.core.policy import Policies
from app.core.shares.loans import loans
from app.core.tiers import open_policies, placer_on
from app.model.eviction import EvictionAction
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, PodUid, group_key
from app.model.plan import Plan
from app.model.reason import Cause, Never, Refusal
from app.model.resources import Rows
from app.model.snapshot import QueueUsage, Snapshot
from app.model.workload import GroupPhase

T = TypeVar("T")
KeepUp = Callable[[Upkeep, Callable[[Cycle], Steps]], Steps]

ACTIONS: Mapping[str, Callable[[Cycle], Steps]] = {"enqueue": enqueue, "backfill": backfill}
"""The actions that give free room, beside ``allocate``."""

EVICTING: Mapping[str, Callable[[Cycle], Steps]] = {
    "preempt": preempt,
    "gangpreempt": gangpreempt,
    "reclaim": reclaim,
    "gangreclaim": gangreclaim,
    "shuffle": shuffle,
}
"""The actions that evict. On demand, and for questions, no pod is evicted."""
FOR_GANGS = EVICTING.keys() - {"shuffle"}
"""Actions of these that evict for gangs which wait."""

_PIECE = 256
"""Groups looked at between two yields when all actions have run."""


def plan_steps(
    snapshot: Snapshot,
    policies: Policies,
    *,
    now: float,
    shapes: ShapeCache | None,
    without: Collection[Upkeep] = (),
) -> Generator[None, None, Plan]:
    """A whole cycle, in pieces, but for some upkeep.

    ``now`` is seconds since the epoch; ``shapes`` outlives cycles.
    """
    cycle = _whole(snapshot, policies, now=now, shapes=shapes)
    yield
    yield from _run(cycle, without)
    return cycle.plan()


def _whole(
    snapshot: Snapshot, policies: Policies, *, now: float, shapes: ShapeCache | None
) -> Cycle:
    find = partial(placer_on, shapes=shapes)
    pending = snapshot.pending
    cycle = _open(snapshot, policies, pending=pending, now=now, find=find, shapes=shapes)
    cycle.holders = Holders(cycle.ledger)
    return cycle


def plan(snapshot: Snapshot, policies: Policies, *, now: float, shapes: ShapeCache | None) -> Plan:
    """A whole cycle in one go."""
    return finish(plan_steps(snapshot, policies, now=now, shapes=shapes))


def plan_around_faults(
    snapshot: Snapshot, policies: Policies, *, now: float, shapes: ShapeCache | None
) -> Generator[None, None, Planned]:
    """A whole cycle, in pieces, without the groups and the upkeep that planning fails at.

    Each plan begins anew, with a ledger of its own, so nothing is left of one that failed. Raises
    the error if it is of neither.
    """
    faults: dict[GroupKey, PlanningFault] = {}
    without: dict[Upkeep, UpkeepFault] = {}
    while True:
        try:
            cycle = _whole(snapshot, policies, now=now, shapes=shapes)
            yield
            yield from _run(cycle, without)
        except UpkeepFault as fault:
            without[fault.upkeep] = fault
        except PlanningFault as fault:
            whole_queues = len({id(each) for each in faults.values()}) >= MOST_FAULTS
            blamed = [gang for gang in snapshot.pending if fault.blames(gang)]
            if not blamed:
                raise
            queues = {gang.queue for gang in blamed} if whole_queues else ()
            left = []
            for gang in snapshot.pending:
                if fault.blames(gang) or gang.queue in queues:
                    faults[gang.key] = fault
                else:
                    left.append(gang)
            snapshot = replace(snapshot, pending=tuple(left))
        else:
            return Planned(snapshot, cycle.plan(), faults, without, cycle.opened.faults)


def plan_gang(
    snapshot: Snapshot,
    policies: Policies,
    *,
    key: GroupKey,
    now: float,
    shapes: ShapeCache | None,
) -> Plan:
    """The plan of all actions for one gang, on demand; empty when there is no such gang."""
    gang = snapshot.gangs.get(key)
    pending = () if gang is None else (gang,)
    cycle = _open(
        snapshot, policies, pending=pending, now=now, find=partial(placer_on, shapes=shapes)
    )
    return finish(_plan_run(cycle))


def may_place(
    snapshot: Snapshot,
    policies: Policies,
    *,
    keys: Collection[GroupKey],
    rows: Mapping[PodUid, int],
    now: float,
    evicted: Collection[PodUid] = (),
) -> frozenset[PodUid]:
    """Which of these members could be placed on the nodes in ``rows`` if no other group waited.

    ``keys`` are their groups. That a node has room for one, and that it may go there, is for the
    caller to see. No reason is given for a refusal, so none is looked for. Pods of the snapshot's
    ``running`` may be ``evicted`` first; the places are on the room that these leave then.
    """
    pending = tuple(
        replace(gang, waiting=tuple(t for t in gang.waiting if t.uid in rows), queue_first=())
        for gang in (snapshot.gangs[key] for key in keys if key in snapshot.gangs)
    )
    found = _Found(rows, len(snapshot.table.nodes))
    made = {key: snapshot.nominated_room[key] for key in keys if key in snapshot.nominated_room}
    cycle = _open(
        replace(snapshot, nominated_room=made),  # room that is held for others is not looked at
        policies,
        pending=pending,
        now=now,
        find=lambda *_: found,
        explain=False,
        evicted=[at for uid in evicted if (at := snapshot.running.index.get(uid)) is not None],
    )
    placed = finish(_plan_run(cycle)).placed
    return frozenset(each.task.uid for gang in placed for each in gang.placements)


def bears_more(
    snapshot: Snapshot, policies: Policies, *, like: Gang, count: int, now: float
) -> bool:
    """Whether ``count`` more groups like that one get a place each by all actions.

    ``like`` is a single pod as it waited; no other group does. That nodes have room is for the
    caller to see. The first ``count - 1`` are one pod with the summed request; that is stricter,
    never laxer. They come at ``now``, so they are admitted only if the queue can take what all of
    them claim.
    """
    [task] = like.waiting
    comers = tuple(
        replace(
            like,
            key=group_key(like.namespace, f"{number}"),
            waiting=(replace(task, uid=PodUid(f"{number}"), request=task.request * times),),
            request=task.request * times,
            min_request=task.request * times,
            phase=GroupPhase.NEW,
            created=now + number,
        )
        for number, times in enumerate((count - 1, 1))
        if times
    )
    zero = np.zeros_like(task.request)
    held = snapshot.usage.get(like.queue) or QueueUsage(zero, zero, zero, zero)
    usage = replace(held, request=held.request + task.request * count, groups=held.groups + count)
    ahead = replace(
        snapshot,
        gangs={**snapshot.gangs, **{comer.key: comer for comer in comers}},
        usage={**snapshot.usage, like.queue: usage},
    )
    rows = {comer.waiting[0].uid: 0 for comer in comers}
    keys = [comer.key for comer in comers]
    return may_place(ahead, policies, keys=keys, rows=rows, now=now) == rows.keys()


@dataclass(frozen=True, slots=True)
class _Found:
    """Nodes that the caller has found."""

    rows: Mapping[PodUid, int]
    nodes: int

    def find(self, _gang: Gang, task: Task, *, within: Rows | None = None) -> int | None:
        row = self.rows.get(task.uid)
        return row if within is None or row in within else None

    def fits(self, _gang: Gang, task: Task, row: int) -> bool:
        return self.rows.get(task.uid) == row

    def places(self, _task: Task) -> Counts:
        return np.full(self.nodes, MANY, dtype=np.int64)

    def places_if_empty(self, task: Task) -> Counts:
        return self.places(task)

    def collect(self, *_: object, **_options: object) -> None:
        return None

    def explain(self, _gang: Gang, _task: Task) -> Refusal:
        return Refusal(Cause.NO_NODE_FITS)

    def never(self, _task: Task) -> Never | None:
        return None


Find = Callable[[Ledger, Opened], NodeFinder]


def _open(
    snapshot: Snapshot,
    policies: Policies,
    *,
    pending: Sequence[Gang],
    now: float,
    find: Find,
    shapes: ShapeCache | None = None,
    explain: bool = True,
    evicted: Sequence[int] = (),
) -> Cycle:
    ledger = Ledger(snapshot)
    for at in evicted:
        ledger.evict(at)
    waits = begun.count_on(ledger)
    opened = open_policies(policies, ledger, now=now, explain=explain)
    return Cycle(
        snapshot=snapshot,
        pending=pending,
        actions=policies.conf.actions,
        now=now,
        ledger=ledger,
        opened=opened,
        finder=find(ledger, opened),
        line=lineage.lines(ledger, policies.conf),
        holders=None,
        open_ahead=lambda: placer_on(ledger, opened, shapes=shapes, ahead=True),
        begun=waits,
        pipelines=bool(evicted),
    )


def _plan_run(cycle: Cycle) -> Generator[None, None, Plan]:
    yield from _run(cycle)
    return cycle.plan()


def _run(cycle: Cycle, without: Collection[Upkeep] = ()) -> Steps:
    if cycle.opened.fault is None:
        yield from _run_actions(cycle, without)
        return
    for gang in cycle.pending:
        if not cycle.sits_out(gang):
            cycle.refuse(gang, cycle.opened.fault.refusal)


def _run_actions(cycle: Cycle, without: Collection[Upkeep]) -> Steps:
    def keep_up(upkeep: Upkeep, steps: Callable[[Cycle], Steps]) -> Steps:
        if cycle.is_full and upkeep not in without:
            with doing(upkeep):
                yield from steps(cycle)

    yield from keep_up(Upkeep.OVER_CAPABILITY, evict_over_capability)
    yield from _act(cycle, keep_up)
    cycle.give_up_earmarks()
    yield from keep_up(Upkeep.LOANS, _count_loans)
    keep_room_for_shown(cycle)
    for number, gang in enumerate(cycle.pending):
        with LookingAt(gang):
            _account_for(cycle, gang)
            set_aside(cycle, gang)
            if gang.queue_first:
                cycle.show(newly_shown(cycle, gang))
        if number % _PIECE == 0:
            yield


def _act(cycle: Cycle, keep_up: KeepUp) -> Steps:
    """Run the configured actions, and those gangs again that stood back."""
    names, lower = _reclaiming_first(cycle.actions), LowerGangs(cycle)
    for position, name in enumerate(names):
        action = ACTIONS.get(name) or (EVICTING.get(name) if cycle.is_full else None)
        later = [EvictionAction(each) for each in names[position + 1 :] if each in FOR_GANGS]
        if name == "allocate":
            lower.begin(later if cycle.is_full else [])
            yield from allocate(cycle, lower)
        elif action is shuffle:
            yield from keep_up(Upkeep.SHUFFLE, shuffle)
        elif action is not None:
            yield from action(cycle)
        if action is preempt:
            yield from keep_up(Upkeep.REVOKE, revoke)
        if lower.behind and not later:
            yield from call_forward(cycle, lower)
    yield from lower.explain()


def _count_loans(cycle: Cycle) -> Steps:
    if cycle.opened.queue_shares is not None:
        cycle.loans = loans(cycle.ledger, cycle.opened.queue_shares)
    yield


def _reclaiming_first(actions: Sequence[str]) -> list[str]:
    """``actions`` in the order in which they run.

    The evicting actions keep their positions in the list; those that reclaim fill the first ones. A
    pod evicted for a gang of a queue that must give the room back at once would be lost for
    nothing.
    """
    evicting = sorted(
        (name for name in actions if name in EVICTING),
        key=lambda name: not EvictionAction(name).reclaims,
    )
    following = iter(evicting)
    return [next(following) if name in EVICTING else name for name in actions]


def _account_for(cycle: Cycle, gang: Gang) -> None:
    """Give a reason to a gang that got no place and no reason: no gang waits without one.

    A gang that a later action gave all its places keeps no reason of an earlier one.
    """
    admitted = cycle.in_play(gang)
    if cycle.is_refused(gang):
        if gang.waiting and admitted and not cycle.lacks_places(gang) and is_reached(cycle, gang):
            cycle.forget_refusal(gang)
        return
    if not admitted or cycle.lacks_places(gang):
        cycle.refuse(gang, refusals.not_taken_up(gang, admitted=admitted))


def finish(steps: Generator[None, None, T]) -> T:
    """The outcome of ``steps``, in one go."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            outcome: T = done.value
            return outcome
