"""Nominated room: what others were evicted for is for the pod that they were evicted for.

kube-scheduler keeps the room of a nominated pod, and of all that it has evicted for it so far,
against all others of equal or lower priority; for the planner it would be free. A pod that has it
instead makes the first one evict again. So it is given to that pod once its victims have gone, and
held until then, though it cannot be used: what one of its victims leaves would else go to others
while the rest takes its time. Pods that others were evicted for do not get each other's room
either. A member gets none while its gang lacks another one that a role's minimum needs: that gang
is not whole.

Such a place is exchanged with no other one: kube-scheduler keeps that room for that pod.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from app.core.actions.backlog import rank
from app.core.actions.cycle import Cycle
from app.core.actions.minimum import is_reached
from app.core.faults import LookingAt
from app.core.gangs.need import Need
from app.model.exchange import NO_EXCHANGE
from app.model.gang import Gang, Task
from app.model.snapshot import Claim


def give(cycle: Cycle, gangs: Iterable[Gang]) -> None:
    """Place the members of these gangs of one that room was made for, or hold it for them."""
    late: list[tuple[Task, int]] = []
    for gang in gangs:
        with LookingAt(gang):
            for task, row, done in _claims(cycle, gang):
                takes = Need.of(gang, cycle.ledger.gang(gang)).takes(task.role)
                if done and takes and cycle.finder.fits(gang, task, row):
                    _place(cycle, gang, task, row)
                else:
                    late.append((task, row))
    for task, row in late:
        cycle.block(task.request, node=row)


def block(cycle: Cycle, gangs: Iterable[Gang]) -> None:
    """Block the room nominated for gangs that are not planned now."""
    for gang in gangs:
        with LookingAt(gang):
            for task, row, _ in _claims(cycle, gang):
                cycle.block(task.request, node=row)


def block_for_others(cycle: Cycle, claims: deque[Claim], *, least: int | None) -> None:
    """Block what pods without a gang here wait for, those of that priority at ``least``; None: all.

    These are taken from the front of ``claims``.
    """
    index = cycle.snapshot.table.index
    while claims and (least is None or claims[0].priority >= least):
        claim = claims.popleft()
        if claim.node in index:
            cycle.block(claim.request, node=index[claim.node])


def is_due(cycle: Cycle, gang: Gang) -> bool:
    """Whether some member of ``gang`` may have what was made for it, when that is there."""
    with LookingAt(gang):
        return not cycle.cools_down(gang) and next(_claims(cycle, gang), None) is not None


def _claims(cycle: Cycle, gang: Gang) -> Iterator[tuple[Task, int, bool]]:
    """Members that may have the room nominated for them, where that is, and whether it is there.

    Each is looked at as the ledger is then. Those that a role's minimum needs come first: the
    others may have theirs only with them.
    """
    made, index = cycle.snapshot.nominated_room[gang.key], cycle.snapshot.table.index
    key = cycle.opened.task_key(gang)
    tasks = [t for t in cycle.unserved(gang) if t.uid in made and made[t.uid].node in index]
    need = Need.of(gang, cycle.ledger.gang(gang))
    for task in need.needed_first(sorted(tasks, key=lambda task: rank(task, key))):
        if need.takes(task.role) and _is_entitled(cycle, gang, task):
            need.place(task.role)
            yield task, index[made[task.uid].node], made[task.uid].done


def _is_entitled(cycle: Cycle, gang: Gang, task: Task) -> bool:
    opened = cycle.opened
    return opened.overused(gang.queue) is None and opened.allocatable(gang.queue, task) is None


def _place(cycle: Cycle, gang: Gang, task: Task, row: int) -> None:
    whole, at = not is_reached(cycle, gang), len(cycle.ledger.journal)
    cycle.place(gang, task, row)
    entries = cycle.ledger.placed_since(at)
    cycle.decide(gang, entries, whole=whole, exchange=NO_EXCHANGE)
