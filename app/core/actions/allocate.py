"""allocate: room for the groups that are in (volcano.md §3.5).

Queues take turns by their order. In a turn the first gang of the queue gets its minimum, whole, or
nothing; one that has it gets one member more and goes back in line while more wait, so queues and
gangs share what is beyond the minimums. A queue that holds all it deserves gets no more turns.
Gangs that have lost members, or are bound in part, come before all turns: what they lack is less
than what newcomers want, and nothing else makes what they hold of use. They come so for the minimum
that they had; what they ask for beyond it takes its turn. After them, and before all turns as well,
pods get the room that was made for them (:mod:`app.core.actions.made_room`).
What is left in the end may be lent (:mod:`app.core.actions.lending`). Last of all come members
beyond the minimum that had a place before and that nobody came for: they may have what nobody else
wants, or they would keep it from everybody else for ever.
Without ``enqueue`` among the actions everybody is in as soon as it is looked at here.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import groupby

from app.core.actions import made_room
from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.enqueue import shut_out
from app.core.actions.extras import place_next
from app.core.actions.lending import lend
from app.core.actions.minimum import (
    awaits_unknown,
    is_reached,
    lacks_members,
    place_minimum,
)
from app.core.actions.precedence import Place, Precedence
from app.core.actions.turns import Turns
from app.core.policy import TaskKey
from app.model.gang import Gang, Task
from app.model.ids import QueueName

_PIECE = 32
"""Groups looked at between two yields."""


def allocate(cycle: Cycle) -> Steps:
    """Place what the gangs that are in wait for."""
    turns: Turns[Backlog] = Turns(cycle.opened, cycle.line)
    last: Turns[Backlog] = Turns(cycle.opened, cycle.line)
    precedence = Precedence.of(cycle)
    torn: list[Gang] = []
    first: list[tuple[Place, Gang]] = []
    made_room.hold(cycle, precedence.before)
    for number, gang in enumerate(cycle.pending):
        if _takes_part(cycle, gang):
            if gang.partial and not is_reached(cycle, gang.as_it_was):
                torn.append(gang)
            elif precedence.covers(gang):
                heappush(first, (precedence.place(gang), gang))
            else:
                turns.add(Backlog(gang))
            if gang.unused and not gang.partial:
                last.add(Backlog(gang, goes_last=True))
        if number % _PIECE == 0:
            yield
    for gang in sorted(torn, key=cycle.opened.gang_key):
        yield from _serve_torn(cycle, turns, gang)
        yield
    yield from _serve_first(cycle, turns, _in_order(first))
    made_room.hold(cycle, precedence.beside)
    yield from _take(cycle, turns)
    yield from lend(cycle)
    yield from _take(cycle, last)


def _serve_torn(cycle: Cycle, turns: Turns[Backlog], gang: Gang) -> Steps:
    """Give the gang back what it had; what it asks for beyond that takes its queue's turn."""
    as_it_was = gang.as_it_was
    if as_it_was is gang:
        yield from _serve(cycle, turns, Backlog(gang))
        return
    backlog = Backlog(as_it_was)
    yield from backlog.sort(cycle.unserved(gang), key=cycle.opened.task_key)
    placed = yield from place_minimum(cycle, backlog)
    if placed:
        turns.add(Backlog(gang))


def _serve_first(cycle: Cycle, turns: Turns[Backlog], gangs: Iterable[Gang]) -> Steps:
    """Let pods have the room that was made for them, once those that rank higher were served."""
    made, claims = cycle.snapshot.made_room, deque(cycle.snapshot.claims)
    ranks = groupby(gangs, key=lambda gang: (gang.priority, gang.key in made))
    for (priority, evicting), rank in ranks:
        made_room.hold_for_others(cycle, claims, least=priority)
        if evicting:
            yield from _serve_evicting(cycle, turns, list(rank))
            continue
        for gang in rank:
            if cycle.opened.overused(gang.queue) is None:
                yield from _serve(cycle, turns, Backlog(gang))
            else:
                turns.add(Backlog(gang))
            yield
    made_room.hold_for_others(cycle, claims, least=None)


def _serve_evicting(cycle: Cycle, turns: Turns[Backlog], gangs: Sequence[Gang]) -> Steps:
    """Give them what was evicted for them; for more they take their turns."""
    made_room.give(cycle, gangs)
    for gang in filter(cycle.lacks_places, gangs):
        turns.add(Backlog(gang))
    yield


def _in_order(heap: list[tuple[Place, Gang]]) -> Iterator[Gang]:
    """Empty ``heap``: sorting it in one go would take too long when there are many."""
    while heap:
        yield heappop(heap)[1]


def _take(cycle: Cycle, turns: Turns[Backlog]) -> Steps:
    """Serve the gangs in turn until none wants more, or can have more."""
    for queue in turns.queues():
        yield from _drop_overused(cycle, turns, queue)
    turns.start()
    while (at := turns.queue()) is not None:
        dropped = yield from _drop_overused(cycle, turns, at)
        if not dropped:
            yield from _serve(cycle, turns, turns.take(at))
        turns.done(at)
        yield


def _takes_part(cycle: Cycle, gang: Gang) -> bool:
    if cycle.sits_out(gang):
        return False
    if not cycle.in_play(gang):
        if "enqueue" in cycle.actions:
            return False
        refusal = shut_out(gang, cycle.snapshot)
        if refusal is not None:
            cycle.refuse(gang, refusal)
            return False
        cycle.admit(gang)
    refusal = awaits_unknown(cycle, gang)
    if refusal is not None:
        cycle.refuse(gang, refusal)
        return False
    return cycle.lacks_places(gang) or not is_reached(cycle, gang)


def _serve(cycle: Cycle, turns: Turns[Backlog], backlog: Backlog) -> Steps:
    """Give the gang its minimum, or one member more; it goes back in line while it wants more."""
    reached = is_reached(cycle, backlog.gang)
    if not backlog.sorted:
        waiting, key = _of_this_round(cycle, backlog, reached=reached)
        yield from backlog.sort(waiting, key=key)
    if reached:
        more = yield from place_next(cycle, backlog)
    elif backlog.goes_last:
        more = False  # it could not have its minimum before
    else:
        placed = yield from place_minimum(cycle, backlog)
        more = placed and bool(backlog.tasks)
    if more:
        turns.add(backlog)


def _of_this_round(
    cycle: Cycle, backlog: Backlog, *, reached: bool
) -> tuple[Sequence[Task], TaskKey]:
    """The members that want places now, and their order: those nobody came for behind the others.

    For a minimum all of them count, of whichever kind.
    """
    gang, key = backlog.gang, cycle.opened.task_key
    waiting = cycle.unserved(gang)
    if not gang.unused:
        return waiting, key
    if reached and not backlog.goes_last:
        yields = gang.yields_until > cycle.now
        waiting = [] if yields else [t for t in waiting if t.uid not in gang.unused]
    return waiting, lambda task: (task.uid in gang.unused, key(task))


def _drop_overused(
    cycle: Cycle, turns: Turns[Backlog], queue: QueueName
) -> Generator[None, None, bool]:
    """Refuse all gangs of ``queue`` when it holds all it deserves; returns whether it does."""
    refusal = cycle.opened.overused(queue)
    if refusal is None:
        return False
    for number, backlog in enumerate(turns.drop(queue)):
        gang = backlog.gang
        cycle.refuse(gang, lacks_members(cycle, gang) or refusal)
        if number % _PIECE == 0:
            yield
    return True
