"""allocate: room for the groups that are admitted (volcano.md §3.5).

Queues take turns by their order. In a turn the first gang of the queue gets its minimum, whole, or
nothing; one that has it gets one member more and goes back in line while more wait, so queues and
gangs share what is beyond the minimums. A queue that holds all it deserves gets no more turns.
Gangs that have lost members, or are bound in part, come before all turns: what they lack is less
than what newcomers want, and nothing else makes what they hold of use. They come so for the minimum
that they had; what they ask for beyond it takes its turn. After them, and before all turns as well,
pods get the room that is nominated for them (:mod:`app.core.actions.nominated_room`). What is left
in the end may be borrowed (:mod:`app.core.actions.borrowing`). Last of all come members beyond the
minimum that had a place before and did not use it: they may have what no other wants, or they would
keep it from the others for ever. Without ``enqueue`` among the actions every group is admitted as
soon as it is looked at here.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter
from typing import Any

from app.core.actions import nominated_room, unplaced_claims
from app.core.actions.backlog import Backlog
from app.core.actions.borrowing import borrow
from app.core.actions.collecting import collect
from app.core.actions.contention import contend
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.enqueue import shut_out
from app.core.actions.lower_gangs import LowerGangs
from app.core.actions.minimum import awaits_unknown, is_reached, place_minimum
from app.core.actions.precedence import Order, Precedence
from app.core.actions.serving import serve, take_turns
from app.core.actions.turns import Turns
from app.core.faults import LookingAt
from app.model.gang import Gang

_PIECE = 32
"""Groups looked at between two yields."""


def allocate(cycle: Cycle, lower: LowerGangs) -> Steps:
    """Place what admitted gangs wait for, but for those that stand back."""
    turns: Turns[Backlog] = Turns(cycle.opened, cycle.line)
    plain: list[Gang] = []
    last: Turns[Backlog] = Turns(cycle.opened, cycle.line)
    precedence = Precedence.of(cycle)
    torn: list[tuple[Any, Gang]] = []
    first: list[tuple[Order, Gang]] = []
    nominated_room.block(cycle, precedence.before)
    for number, gang in enumerate(cycle.pending):
        with LookingAt(gang):
            if _takes_part(cycle, gang):
                unplaced_claims.commit(cycle, gang)
                if gang.partial and not is_reached(cycle, gang.as_it_was):
                    torn.append((cycle.opened.gang_key(gang), gang))
                elif precedence.covers(gang):
                    heappush(first, (precedence.order_of(gang), gang))
                else:
                    plain.append(gang)
                if gang.unused and not gang.partial:
                    last.add(Backlog(gang, goes_last=True))
        if number % _PIECE == 0:
            yield
    for _, gang in sorted(torn, key=itemgetter(0)):
        with LookingAt(gang):
            yield from _serve_torn(cycle, turns, gang)
    ahead = [gang for _, gang in first]
    yield from _serve_first(cycle, turns, _in_order(first))
    nominated_room.block(cycle, precedence.beside)
    yield from collect(cycle, plain, lower)
    may_borrow = [*(gang for _, gang in torn), *ahead, *plain]
    yield from _serve_in_turn(cycle, turns, plain, may_borrow=may_borrow, last=last, lower=lower)


def call_forward(cycle: Cycle, lower: LowerGangs) -> Steps:
    """Serve the gangs that stood back, and evict for them as for those before them.

    Some of them stand back again, for others of them.
    """
    actions = lower.actions
    while lower.behind:
        gangs = list(lower.behind.values())
        lower.behind.clear()
        lower.begin(actions)
        turns: Turns[Backlog] = Turns(cycle.opened, cycle.line)
        last: Turns[Backlog] = Turns(cycle.opened, cycle.line)
        for gang in gangs:
            cycle.forget_refusal(gang)
            if gang.unused and not gang.partial:
                last.add(Backlog(gang, goes_last=True))
        yield from _serve_in_turn(cycle, turns, gangs, may_borrow=gangs, last=last, lower=lower)
        for action in actions:
            yield from contend(cycle, action, gangs)


def _serve_in_turn(
    cycle: Cycle,
    turns: Turns[Backlog],
    gangs: Iterable[Gang],
    *,
    may_borrow: Sequence[Gang],
    last: Turns[Backlog],
    lower: LowerGangs,
) -> Steps:
    """Serve those in ``turns`` and ``gangs`` by shares, then who may borrow, then the ``last``."""
    yield from _stand_in_line(turns, gangs)
    yield from _entitled_first(cycle, turns, lower)
    yield from borrow(cycle, may_borrow, lower)
    yield from take_turns(cycle, last, by_share=True, lower=lower)


def _entitled_first(cycle: Cycle, turns: Turns[Backlog], lower: LowerGangs) -> Steps:
    """Serve by shares; gangs with which queues hold too much come last if that is taken back."""
    lower.late = {}
    yield from take_turns(cycle, turns, by_share=True, lower=lower)
    late, lower.late = list(lower.late.values()), None
    if late:
        last: Turns[Backlog] = Turns(cycle.opened, cycle.line)
        yield from _stand_in_line(last, late)
        yield from take_turns(cycle, last, by_share=True, lower=lower)


def _stand_in_line(turns: Turns[Backlog], gangs: Iterable[Gang]) -> Steps:
    """Let gangs take their turns, in pieces: there may be ten thousand."""
    for number, gang in enumerate(gangs):
        with LookingAt(gang):
            turns.add(Backlog(gang))
        if number % _PIECE == 0:
            yield


def _serve_torn(cycle: Cycle, turns: Turns[Backlog], gang: Gang) -> Steps:
    """Give the gang back what it had; what it asks for beyond that takes its queue's turn."""
    as_it_was = gang.as_it_was
    if as_it_was is gang:
        yield from serve(cycle, turns, Backlog(gang))
        yield
        return
    backlog = Backlog(as_it_was)
    yield from backlog.sort(cycle.unserved(gang), key=cycle.opened.task_key(gang))
    placed = yield from place_minimum(cycle, backlog)
    if placed:
        turns.add(Backlog(gang))
    yield


def _serve_first(cycle: Cycle, turns: Turns[Backlog], gangs: Iterable[Gang]) -> Steps:
    """Let pods have the room that was made for them, once those that rank higher were served."""
    made, claims = cycle.snapshot.nominated_room, deque(cycle.snapshot.claims)
    ranks = groupby(gangs, key=lambda gang: (gang.priority, gang.key in made))
    for (priority, evicting), rank in ranks:
        nominated_room.block_for_others(cycle, claims, least=priority)
        if evicting:
            yield from _serve_evicting(cycle, turns, list(rank))
            continue
        for gang in rank:
            with LookingAt(gang):
                if cycle.opened.overused(gang.queue) is None:
                    yield from serve(cycle, turns, Backlog(gang))
                else:
                    turns.add(Backlog(gang))
            yield
    nominated_room.block_for_others(cycle, claims, least=None)


def _serve_evicting(cycle: Cycle, turns: Turns[Backlog], gangs: Sequence[Gang]) -> Steps:
    """Give gangs what was evicted for them; for more they take their turns."""
    nominated_room.give(cycle, gangs)
    for gang in filter(cycle.lacks_places, gangs):
        with LookingAt(gang):
            turns.add(Backlog(gang))
    yield


def _in_order(heap: list[tuple[Order, Gang]]) -> Iterator[Gang]:
    """Empty ``heap``: sorting it in one go would take too long when there are many."""
    while heap:
        yield heappop(heap)[1]


def _takes_part(cycle: Cycle, gang: Gang) -> bool:
    if cycle.sits_out(gang):
        return False
    if not cycle.in_play(gang):
        refusal = shut_out(gang, cycle.snapshot)
        if refusal is not None:
            cycle.refuse(gang, refusal)
            return False
        if "enqueue" not in cycle.actions:
            cycle.admit(gang)
        elif not cycle.is_full:
            return False
    refusal = awaits_unknown(cycle, gang)
    if refusal is not None:
        cycle.refuse(gang, refusal)
        return False
    return cycle.lacks_places(gang) or not is_reached(cycle, gang)
