"""backfill: members that request nothing go to any node that takes them (volcano.md §3.5).

Those that the minimum of their gang needed got a node with it in allocate; the others are placed
here one by one, of gangs that have their minimum. A gang that allocate has not looked at (it is not
among the actions) gets its minimum here if such members are enough for it.
"""

from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle, Steps
from app.core.actions.extras import place_alone
from app.core.actions.minimum import is_reached, place_minimum
from app.core.actions.turns import Turns
from app.core.faults import LookingAt
from app.core.gangs.units import goes_alone
from app.model.gang import Gang

_PIECE = 32
"""Groups looked at between two yields."""


def backfill(cycle: Cycle) -> Steps:
    """Place best-effort members, queue by queue and gang by gang."""
    turns: Turns[Backlog] = Turns(cycle.opened, cycle.line)
    for number, gang in enumerate(cycle.pending):
        with LookingAt(gang):
            if _takes_part(cycle, gang):
                turns.add(Backlog(gang))
        if number % _PIECE == 0:
            yield
    turns.start()
    while (queue := turns.queue()) is not None:
        backlog = turns.take(queue)
        with LookingAt(backlog.gang):
            yield from _serve(cycle, backlog)
        turns.done(queue)
        yield


def _takes_part(cycle: Cycle, gang: Gang) -> bool:
    if not gang.counts.pending_best_effort or not cycle.in_play(gang) or cycle.sits_out(gang):
        return False
    return is_reached(cycle, gang) or not cycle.is_refused(gang)


def _serve(cycle: Cycle, backlog: Backlog) -> Steps:
    gang = backlog.gang
    yield from backlog.sort(cycle.unserved(gang), key=cycle.opened.task_key(gang))
    reached = is_reached(cycle, gang)
    if not reached and all(task.best_effort for task in gang.waiting):
        reached = yield from place_minimum(cycle, backlog)
    for task in backlog.tasks if reached else ():
        if not task.best_effort or cycle.is_served(gang, task):
            continue
        if not goes_alone(gang, cycle.ledger.gang(gang), task):
            continue
        refusal = place_alone(cycle, gang, task)
        if refusal is not None:
            cycle.refuse(gang, refusal)
        yield
