"""A bound on waiting: room that comes free is kept for gangs that have waited long.

Small gangs take each piece of room as it comes free, so a large one would never find its own. A
gang that has waited longer than its patience goes before all turns by shares: in each queue the
first such gang by the order of the queue, the queues by theirs. A gang that does not fit yet
*collects*: free room of nodes that it can use is kept for it in this cycle, and its queue counts as
holding what the gang asks for, until it fits whole. Two gangs never keep parts of each other's
room: the second one only keeps what the first one cannot use.

A queue collects for a gang that brings it nearer to its share. A gang that has collected for as
long as its patience goes before others and on, whatever the shares. A queue does not collect for a
gang that the nodes could not hold if all else had ended; for one that would take it beyond its
share, it keeps what it gets itself from its younger gangs. What runs may never end, so a gang
collects for a bounded time, then lets others have the room for three times as long; each time it
collects twice as long as before.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np

from app.core.actions.areas import open_rows
from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.lower_gangs import LowerGangs
from app.core.actions.minimum import is_reached, tasks_of_minimum
from app.core.actions.network import DomainSearch, Members
from app.core.actions.serving import give_minimum
from app.core.actions.turns import Turns
from app.core.faults import LookingAt
from app.core.texts import instant_text
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.plan import Collected
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import PODS_COLUMN, Matrix, Vector
from app.model.workload import GroupPhase

FIRST_WINDOW = 10.0
"""How many times its patience a gang collects at first."""
VERY_LONG = 12.0
"""After so many times its patience a gang may take its queue beyond the share."""
_PAUSE = 3.0
"""How many times as long as it collected a gang lets others have the room."""
_PIECE = 32
"""Groups looked at between two yields."""
_OF_QUEUE = frozenset({Cause.QUEUE_QUOTA, Cause.QUEUE_ROOM})
_OF_NODES = frozenset({Cause.NOT_ENOUGH_RESOURCES, Cause.NO_DOMAIN})
_SHORTAGES = _OF_QUEUE | _OF_NODES | {Cause.QUEUE_OVERUSED}
"""Causes that the end of other gangs takes away."""


def collect(cycle: Cycle, gangs: Sequence[Gang], lower: LowerGangs) -> Steps:
    """Serve gangs that have waited long before all others, and keep room for the first ones.

    On demand the room that the last cycle kept for others is left to them.
    """
    if not cycle.is_full:
        _leave_to_others(cycle)
        return
    turns: Turns[Backlog] = Turns(
        cycle.opened,
        cycle.line,
        order=lambda left, right: _order(cycle, turns, left, right),
    )
    for number, gang in enumerate(gangs):
        with LookingAt(gang):
            if _is_due(cycle, gang):
                turns.add(Backlog(gang))
        if number % _PIECE == 0:
            yield
    queues = set(turns.queues())
    for number, gang in enumerate(gangs if queues else ()):
        if gang.queue in queues:
            lower.note(gang)
        if number % _PIECE == 0:
            yield
    leaning = {queue: _lean(cycle, turns, queue) for queue in turns.queues()}
    turns.start()
    while (queue := turns.queue()) is not None:
        cycle.ledger.lean(queue, -leaning.pop(queue))
        if (yield from _serve_first(cycle, turns, queue, lower)):
            leaning[queue] = _lean(cycle, turns, queue)
        else:
            turns.drop(queue)
        turns.done(queue)
        yield


def _order(cycle: Cycle, turns: Turns[Backlog], left: QueueName, right: QueueName) -> int:
    """Queues whose first gang has collected for long go first, the longest first.

    By shares alone a gang would lose what was kept for it to a queue that holds nothing at the
    moment, again and again.
    """
    begun = [_collects_long(cycle, turns.first(queue)) for queue in (left, right)]
    if begun[0] != begun[1]:
        return -1 if begun[0] > begun[1] else 1
    return cycle.opened.queue_order(left, right)


def _collects_long(cycle: Cycle, backlog: Backlog | None) -> float:
    """For how many seconds the gang has collected; 0 if for less than its patience, or not."""
    if backlog is None or not backlog.gang.collecting_since:
        return 0.0
    elapsed = cycle.now - backlog.gang.collecting_since
    return elapsed if elapsed >= cycle.opened.patience(backlog.gang) else 0.0


def _lean(cycle: Cycle, turns: Turns[Backlog], queue: QueueName) -> Vector:
    """Let ``queue`` count as holding half of what its first gang asks for; returns that.

    A gang may be larger than the share of its queue. By what queues hold without it, one with a
    small share and large gangs would hold more than its share on average, as it never starts half
    of a gang.
    """
    first = turns.first(queue)
    half: Vector = np.zeros(len(cycle.snapshot.axis), dtype=np.int64)
    if first is not None:
        half = _least(first.gang) // 2
        cycle.ledger.lean(queue, half)
    return half


def collects_for(elapsed: float, *, window: float) -> float:
    """For how many seconds more a gang collects that began to ``elapsed`` seconds ago; 0: not now.

    It does for ``window`` seconds at first, and after each pause for twice as long as before.
    """
    begun = 0.0
    while elapsed >= begun + (1 + _PAUSE) * window:
        begun += (1 + _PAUSE) * window
        window *= 2
    return max(begun + window - elapsed, 0.0)


def _leave_to_others(cycle: Cycle) -> None:
    planned = {gang.key for gang in cycle.pending}
    index = cycle.snapshot.table.index
    for kept in cycle.snapshot.collected:
        for node, amount in kept.nodes if kept.gang not in planned else ():
            if node in index:
                cycle.block(amount, node=index[node])


def _is_due(cycle: Cycle, gang: Gang) -> bool:
    patience = cycle.opened.patience(gang)
    if cycle.now - gang.created < patience or is_reached(cycle, gang):
        return False
    if cycle.now - _waits_since(gang) < patience:
        return False
    since = gang.collecting_since
    return not since or _time_left(cycle, gang, since) > 0


def _time_left(cycle: Cycle, gang: Gang, since: float) -> float:
    """For how many seconds more ``gang`` collects that began to at ``since``; 0: not now."""
    return collects_for(cycle.now - since, window=FIRST_WINDOW * cycle.opened.patience(gang))


def _waits_since(gang: Gang) -> float:
    """When the gang, or the first of its members that wait, came (seconds since the epoch).

    A gang that has run and whose members do not exist waits for these, not for room.
    """
    if gang.waiting:
        return max(gang.created, min(task.created for task in gang.waiting))
    return float("inf") if gang.phase in (GroupPhase.RUNNING, GroupPhase.UNKNOWN) else gang.created


def _serve_first(
    cycle: Cycle, turns: Turns[Backlog], queue: QueueName, lower: LowerGangs
) -> Generator[None, None, bool]:
    """Place the first gang of ``queue``, or collect for it; whether the next one may try.

    A gang that another of the queue outranks, which is about to get its places, takes its turn.
    """
    backlog = turns.take(queue)
    with LookingAt(backlog.gang):
        if (yield from lower.outranked_by(backlog.gang)) is not None:
            return True
        entitled = _is_entitled(cycle, backlog)
        with cycle.beyond_shares(allowed=entitled and cycle.opened.borrows):
            placed = yield from give_minimum(cycle, backlog)
        if placed:
            return True
        return not (_keep(cycle, backlog) if entitled else _wait_for_share(cycle, backlog))


def _wait_for_share(cycle: Cycle, backlog: Backlog) -> bool:
    """Let no younger gang have what the queue gets until this one may have it; whether it waits."""
    refusal = cycle.refusal_of(backlog.gang)
    gang = backlog.gang
    if refusal is None or refusal.cause not in _SHORTAGES or _is_beyond_limit(refusal):
        return False
    tasks = tasks_of_minimum(cycle, backlog)
    if not tasks or _room_to_keep(cycle, gang, tasks) is None:
        return False
    return _earmark(cycle, gang, np.sum([task.request for task in tasks], axis=0))


def _earmark(cycle: Cycle, gang: Gang, asked: Vector) -> bool:
    """Let the queue count as holding what ``gang`` asks for; false in its pauses."""
    left = _time_left(cycle, gang, _waits_since(gang) + cycle.opened.patience(gang))
    if not left:
        return False
    cycle.earmark(gang, asked, cycle.now + left)
    refusal = cycle.refusal_of(gang)
    if refusal is not None and not refusal.note:
        until = (
            f"the queue keeps what comes free for the group until {instant_text(cycle.now + left)}"
        )
        cycle.forget_refusal(gang)
        cycle.refuse(gang, replace(refusal, note=until))
    return True


def _is_entitled(cycle: Cycle, backlog: Backlog) -> bool:
    """Whether the queue of the gang comes nearer to its share with it, or it has waited very long.

    Then it is enough that the queue holds less than its share, or small gangs of the same queue
    would keep a large one out for ever.
    """
    gang = backlog.gang
    if _collects_long(cycle, backlog):
        return True
    asked = _least(gang)
    waited = cycle.now - _waits_since(gang)
    very_long = waited >= VERY_LONG * cycle.opened.patience(gang)
    more = np.minimum(asked, 1) if very_long else asked // 2
    return cycle.opened.is_below_share(gang.queue, more)


def _least(gang: Gang) -> Vector:
    return gang.request if gang.min_request is None else np.maximum(gang.request, gang.min_request)


def _keep(cycle: Cycle, backlog: Backlog) -> bool:
    """Keep what the gang can use of the free room; returns whether it waits for more of it.

    Where its queue's own gangs leave no room under a limit, that is kept for it, and no node's.
    """
    gang = backlog.gang
    refusal = cycle.refusal_of(gang)
    tasks = tasks_of_minimum(cycle, backlog)
    if refusal is None or not tasks:
        return False
    asked = np.sum([task.request for task in tasks], axis=0)
    if refusal.cause in _OF_QUEUE:
        if _is_beyond_limit(refusal):
            return False
        if not _is_all_there_is(cycle, refusal):
            return _earmark(cycle, gang, asked)
    elif refusal.cause not in _OF_NODES or _is_tied(gang, refusal):
        return False
    taken = _room_to_keep(cycle, gang, tasks)
    if taken is None:
        return False
    counted = np.delete(taken, PODS_COLUMN, axis=1)
    rows = np.flatnonzero(counted.any(axis=1)).tolist()
    for row in rows:
        cycle.block(taken[row], node=row)
    left = _time_left(cycle, gang, gang.collecting_since or cycle.now)
    cycle.earmark(gang, asked, cycle.now + left)
    if cycle.is_collecting and not rows:
        return True  # another gang comes first, and leaves nothing
    nodes = cycle.snapshot.table.nodes
    kept = Collected(gang.key, tuple((nodes[row].name, taken[row]) for row in rows))
    cycle.collect(kept, gang, _refusal(cycle, gang, asked, np.minimum(taken.sum(axis=0), asked)))
    return True


def _is_tied(gang: Gang, refusal: Refusal) -> bool:
    """Whether the gang has reservations in a domain that has no other room for it.

    They are given back then, and it may find all its room in another domain.
    """
    return refusal.cause is Cause.NO_DOMAIN and gang.counts.placed + gang.counts.slots > 0


def _room_to_keep(cycle: Cycle, gang: Gang, tasks: Sequence[Task]) -> Matrix | None:
    """What to keep of the free room of nodes, shape ``(N, R)``; None: the gang never fits there.

    A gang that needs one domain collects in the one that takes the most of its members by now, and
    of equal ones where it collected before.
    """
    topology = gang.topology
    within = open_rows(cycle, gang)
    if topology is None or not topology.is_hard:
        return cycle.finder.collect(tasks, within=within)
    index = cycle.snapshot.table.index
    before = [each.nodes for each in cycle.snapshot.collected if each.gang == gang.key]
    kept = np.array([index[n] for some in before for n, _ in some if n in index], dtype=np.intp)
    search = DomainSearch.of(cycle, topology, Members(gang, tasks, len(tasks)))
    rows = (each.rows_within(within) for each in search.fullest(kept))
    inside = (cycle.finder.collect(tasks, within=each) for each in rows)
    return next((taken for taken in inside if taken is not None), None)


def _is_beyond_limit(refusal: Refusal) -> bool:
    """Whether the gang asks for more than a limit of its queue in all, its share apart."""
    return refusal.cause in _OF_QUEUE and any(
        lack.limit is not None and lack.asked > lack.limit for lack in refusal.shortfalls
    )


def _is_all_there_is(cycle: Cycle, refusal: Refusal) -> bool:
    """Whether the queue is limited by the size of the cluster only."""
    index, total = cycle.snapshot.axis.index, cycle.snapshot.total
    return all(
        lack.limit is not None and lack.limit >= total[index[lack.resource]]
        for lack in refusal.shortfalls
    )


def _refusal(cycle: Cycle, gang: Gang, asked: Vector, kept: Vector) -> Refusal:
    axis, total = cycle.snapshot.axis, cycle.snapshot.total
    lacks = tuple(
        Shortfall(axis.names[at], int(asked[at]), int(kept[at]), int(total[at]))
        for at in np.flatnonzero(asked > kept).tolist()
    )
    before = cycle.refusal_of(gang)
    return Refusal(
        Cause.COLLECTING,
        where=gang.key,
        shortfalls=lacks,
        since=gang.collecting_since or cycle.now,
        domain=before.domain if before is not None else None,
    )
