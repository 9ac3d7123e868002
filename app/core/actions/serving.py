"""One turn of one gang: its minimum, whole, or one member more.

A gang that the enqueue action has not admitted takes part as well: whatever could run now is
admitted with its places, whichever was admitted before it. What admitted groups may still claim
keeps others from being admitted ahead of their places, never from running, unless the claim counts
without places (:mod:`app.core.actions.unplaced_claims`).
"""

from collections.abc import Generator

from app.core.actions import refusals
from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.extras import place_next
from app.core.actions.lower_gangs import LowerGangs
from app.core.actions.minimum import is_reached, lacks_members, place_minimum
from app.core.actions.turns import Turns
from app.core.faults import LookingAt
from app.core.policy import TaskKey
from app.core.shares.entitlements import rest_of
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.reason import Refusal

_PIECE = 32
"""Groups looked at between two yields."""


def serve(cycle: Cycle, turns: Turns[Backlog], backlog: Backlog) -> Steps:
    """Give the gang its minimum, or one member more; it goes back in line while it wants more."""
    reached = is_reached(cycle, backlog.gang)
    yield from _sort(cycle, backlog, reached=reached)
    if reached:
        more = yield from place_next(cycle, backlog)
    elif backlog.goes_last:
        more = False  # it could not have its minimum before
    else:
        placed = yield from give_minimum(cycle, backlog)
        more = placed and bool(backlog.tasks)
    if more:
        turns.add(backlog)


def give_minimum(cycle: Cycle, backlog: Backlog) -> Generator[None, None, bool]:
    """Give the gang its minimum, or refuse it; a gang that waits for admission gets both."""
    gang = backlog.gang
    yield from _sort(cycle, backlog, reached=False)
    if cycle.in_play(gang):
        placed = yield from place_minimum(cycle, backlog)
    else:
        placed = yield from _admit(cycle, backlog)
    if placed:
        cycle.ledger.commit(gang)
    elif cycle.snapshot.queues[gang.queue].in_order:
        cycle.stop_queue(gang)
    return placed


def _admit(cycle: Cycle, backlog: Backlog) -> Generator[None, None, bool]:
    gang = backlog.gang
    refusal = cycle.opened.admissible(gang)
    if refusal is None:
        cycle.forget_refusal(gang)  # it was refused for what others claim
        refusal = beyond_all_room(cycle, gang)
    if refusal is not None:
        cycle.refuse(gang, refusals.with_kept(cycle, gang, refusal))
        return False
    placed = yield from place_minimum(cycle, backlog)
    if placed:
        cycle.admit(gang)
    return placed


def beyond_all_room(cycle: Cycle, gang: Gang) -> Refusal | None:
    """The refusal of a gang that lacks more than all nodes together have free.

    It is told from sums, without a search.
    """
    asked = rest_of(gang, cycle.ledger)
    if (asked <= cycle.free()).all():
        return None
    return refusals.of_sum(cycle, gang, asked)


def take_turns(cycle: Cycle, turns: Turns[Backlog], *, by_share: bool, lower: LowerGangs) -> Steps:
    """Serve the gangs in turn until none wants more, or can have more, or all stand back.

    ``by_share``: a queue that holds all it deserves gets no more turns.
    """
    for queue in turns.queues():
        yield from _drop(cycle, turns, queue, by_share=by_share)
    turns.start()
    while (at := turns.queue()) is not None:
        dropped = yield from _drop(cycle, turns, at, by_share=by_share)
        if not dropped:
            backlog = turns.take(at)
            with LookingAt(backlog.gang):
                if not (yield from lower.holds_back(backlog.gang)):
                    yield from serve(cycle, turns, backlog)
                    if cycle.is_refused(backlog.gang):
                        lower.note(backlog.gang)
        turns.done(at)
        yield


def _sort(cycle: Cycle, backlog: Backlog, *, reached: bool) -> Steps:
    if not backlog.sorted:
        waiting, key = _of_this_round(cycle, backlog, reached=reached)
        yield from backlog.sort(waiting, key=key)


def _of_this_round(cycle: Cycle, backlog: Backlog, *, reached: bool) -> tuple[list[Task], TaskKey]:
    """The members that want places now, and their order: those with unused places go last.

    For a minimum all of them count, of whichever kind.
    """
    gang, key = backlog.gang, cycle.opened.task_key(backlog.gang)
    waiting = list(cycle.unserved(gang))
    if not gang.unused:
        return waiting, key
    if reached and not backlog.goes_last:
        yields = gang.yields_until > cycle.now
        waiting = [] if yields else [t for t in waiting if t.uid not in gang.unused]
    return waiting, lambda task: (task.uid in gang.unused, key(task))


def _drop(
    cycle: Cycle, turns: Turns[Backlog], queue: QueueName, *, by_share: bool
) -> Generator[None, None, bool]:
    """Refuse all gangs of ``queue`` when it gets no more turns; returns whether that is so."""
    refusal = cycle.stopped(queue)
    if refusal is None and by_share:
        with LookingAt(queue=queue):
            refusal = cycle.opened.overused(queue)
    if refusal is None:
        return False
    for number, backlog in enumerate(turns.drop(queue)):
        gang: Gang = backlog.gang
        with LookingAt(gang):
            told = lacks_members(cycle, gang) or refusals.with_kept(cycle, gang, refusal)
            cycle.refuse(gang, told)
        if number % _PIECE == 0:
            yield
    return True
