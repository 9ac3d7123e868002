"""enqueue: which waiting groups may have pods and be placed (volcano.md §3.5).

Queues take turns; in a turn the first group of the queue is put to the vote. A rejected one is out
for this cycle, and the queue goes on with the next. A group that does not say what it needs
(``minResources`` unset) is admitted unless its queue is shut. One that is bound in part was
admitted before (a crash lost that): its rest is not voted on again. Nor is one whose pod others
were evicted for: what they gave back could be claimed by others that are admitted while they leave.
One that was set aside, and that still fits no node, is not admitted
(:mod:`app.core.actions.aside`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.core.actions.aside import still_aside
from app.core.actions.cycle import Cycle, Steps, behind_another
from app.core.actions.turns import Turns
from app.core.faults import LookingAt
from app.core.points import Opened
from app.model.gang import Gang
from app.model.reason import Cause, Refusal
from app.model.snapshot import Snapshot

_PIECE = 32
"""Groups looked at between two yields."""


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    gang: Gang


def enqueue(cycle: Cycle) -> Steps:
    """Admit, or refuse, every pending group that is not in yet."""
    turns: Turns[_Candidate] = Turns(cycle.opened, cycle.line)
    at_once: list[Gang] = []
    for number, gang in enumerate(cycle.pending):
        with LookingAt(gang):
            if not cycle.in_play(gang) and not cycle.sits_out(gang):
                if comes_in_anyway(gang, cycle.snapshot):
                    at_once.append(gang)
                else:
                    turns.add(_Candidate(gang))
        if number % _PIECE == 0:
            yield
    for gang in sorted(at_once, key=lambda gang: gang.key):
        with LookingAt(gang):
            cycle.admit(gang)
    turns.start()
    while (queue := turns.queue()) is not None:
        gang = turns.take(queue).gang
        with LookingAt(gang):
            refusal = ballot(gang, cycle.opened, cycle.snapshot) or still_aside(cycle, gang)
            if refusal is None:
                cycle.admit(gang)
            else:
                cycle.refuse(gang, refusal)
                if cycle.snapshot.queues[queue].in_order:
                    _refuse_behind(cycle, gang, turns.drop(queue))
        turns.done(queue)
        yield


def _refuse_behind(cycle: Cycle, first: Gang, behind: Iterable[_Candidate]) -> None:
    """In a queue of strict order no group is admitted ahead of an earlier one."""
    for each in behind:
        cycle.refuse(each.gang, behind_another(first))


def comes_in_anyway(gang: Gang, snapshot: Snapshot) -> bool:
    """Whether the gang is admitted without a vote."""
    if gang.partial:
        return True
    return gang.key in snapshot.nominated_room and shut_out(gang, snapshot) is None


def ballot(gang: Gang, opened: Opened, snapshot: Snapshot) -> Refusal | None:
    """Why ``gang`` may not come in now; None: it may."""
    if gang.min_request is None:
        return shut_out(gang, snapshot)
    return opened.enqueueable(gang)


def shut_out(gang: Gang, snapshot: Snapshot) -> Refusal | None:
    """The refusal of a queue that takes no groups, whatever they need."""
    if snapshot.queues[gang.queue].is_open:
        return None
    return Refusal(Cause.QUEUE_CLOSED, where=gang.queue)
