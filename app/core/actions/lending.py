"""Room that is left over, for gangs whose minimum is more than the share of their queue.

By shares alone they would not run while other queues ask for something, and two queues with such
gangs would wait for each other on an empty cluster (as in Volcano). When all turns are over they
get what nobody who is entitled to it waits for, the oldest first; one that does not fit yet keeps
the younger ones out, so that it fits some day. While no group holds anything nobody waits for room
that could be given back, so somebody is placed if anybody can be.
"""

from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.extras import place_next
from app.core.actions.futility import Futility
from app.core.actions.minimum import is_reached, place_minimum
from app.model.gang import Gang
from app.model.reason import Cause

_PIECE = 32
"""Groups looked at between two yields."""


def lend(cycle: Cycle) -> Steps:
    """Place such gangs; not on demand, where what others wait for is not known."""
    if cycle.pending is not cycle.snapshot.pending:
        return
    big: list[Gang] = []
    held = _is_anything_held(cycle)
    for number, gang in enumerate(cycle.pending):
        if held and _waits_for_room(cycle, gang):
            return
        if _is_beyond_its_share(cycle, gang):
            big.append(gang)
        if number % _PIECE == 0:
            yield
    cycle.futile = Futility(cycle.ledger.journal)
    for gang in sorted(big, key=lambda gang: gang.age):
        take_back = cycle.opened.lend(gang)
        if take_back is not None:
            cycle.take_back_refusal(gang)
            yield from _place(cycle, gang)
            if not is_reached(cycle, gang):
                take_back()  # so that it can be lent to the next of its queue
            if _waits_for_room(cycle, gang) and _is_anything_held(cycle):
                return
        yield


def _place(cycle: Cycle, gang: Gang) -> Steps:
    backlog = Backlog(gang)
    yield from backlog.sort(cycle.unserved(gang), key=cycle.opened.task_key)
    more = yield from place_minimum(cycle, backlog)
    while more:
        more = yield from place_next(cycle, backlog)


def _is_beyond_its_share(cycle: Cycle, gang: Gang) -> bool:
    """Whether ``gang`` was refused for its queue's share, and would be if that held nothing."""
    refusal = cycle.refusal_of(gang)
    if refusal is None or refusal.cause is not Cause.QUEUE_OVERUSED:
        return False
    return any(s.limit is not None and s.asked > s.limit for s in refusal.shortfalls)


def _waits_for_room(cycle: Cycle, gang: Gang) -> bool:
    refusal = cycle.refusal_of(gang)
    return refusal is not None and refusal.cause is Cause.NOT_ENOUGH_RESOURCES


def _is_anything_held(cycle: Cycle) -> bool:
    """Whether some group may give room back."""
    return any(account.allocated.any() for account in cycle.ledger.queues().values())
