"""Queues borrow what no entitled gang can use now: they hold more than their share for a while.

By shares alone room stays idle whenever the gangs of entitled queues are too large for it, and a
gang larger than its queue's share would never run while other queues ask for something. So when all
turns by shares are over, the turns go round once more, and only what a queue may really hold limits
it then (its capability, and what other queues are guaranteed). Gangs get their minimums first; what
is left goes to members beyond minimums. Room that is collected for a gang is not borrowed.

``borrowing: false`` of a plugin that shares the cluster keeps shares strict, as in Volcano.
"""

from collections.abc import Sequence

from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.lower_gangs import LowerGangs
from app.core.actions.minimum import is_reached
from app.core.actions.serving import beyond_all_room, take_turns
from app.core.actions.turns import Turns
from app.core.faults import LookingAt
from app.model.gang import Gang

_PIECE = 32
"""Groups looked at between two yields."""


def borrow(cycle: Cycle, gangs: Sequence[Gang], lower: LowerGangs) -> Steps:
    """Serve those of ``gangs`` that still lack places and do not stand back.

    Not on demand: what others wait for is not known there.
    """
    if not (cycle.opened.borrows and cycle.is_full):
        return
    refused = (gang for gang in gangs if cycle.is_refused(gang))
    waiting = [gang for gang in refused if gang.key not in lower.behind]
    if not waiting:
        return
    for gang in waiting:
        lower.note(gang)
    with cycle.beyond_shares():
        for reached in (False, True):
            turns: Turns[Backlog] = Turns(cycle.opened, cycle.line)
            for number, gang in enumerate(waiting):
                with LookingAt(gang):
                    if is_reached(cycle, gang) is reached and _lacks_places(cycle, gang, reached):
                        turns.add(Backlog(gang))
                if number % _PIECE == 0:
                    yield
            yield from take_turns(cycle, turns, by_share=False, lower=lower)


def _lacks_places(cycle: Cycle, gang: Gang, reached: bool) -> bool:
    if reached:
        return cycle.lacks_places(gang)
    return beyond_all_room(cycle, gang) is None
