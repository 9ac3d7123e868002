"""Groups that no end of other pods helps: they are set aside, and claim nothing.

A group of which too many members fit no node even when nothing runs there, or that asks for more
than its queue, its domains or the cluster have in all, would be looked at in every cycle, and keep
the claim to its request from groups that can run. It is set aside with its reason until a node, a
HyperNode, a limit or the group itself changes. Then it is looked at again, in its place in the
order.

Members that do not exist, and that only ``minResources`` tell of, set no group aside by their size.
Not so groups with pods that ask for ``queue-allocation-gate``: they wait for an autoscaler, and
their queue keeps room for them. Nor those that are bound in part: what they lack goes first
wherever it is found.
"""

from collections import Counter
from dataclasses import replace

from app.core.actions import refusals
from app.core.actions.backlog import rank
from app.core.actions.cycle import Cycle
from app.core.actions.outlook import is_guess
from app.core.actions.unplaced_claims import no_part_fits
from app.core.gangs import slots
from app.core.gangs.need import Need
from app.model.gang import Gang, Task
from app.model.ids import NodeName
from app.model.reason import NODES_MAY_HELP, Never, Refusal

_OF_SUMS = frozenset({Never.QUEUE, Never.GUARANTEES, Never.CLUSTER, Never.ABSENT})
"""What is said of the request of a whole group."""


def set_aside(cycle: Cycle, gang: Gang) -> None:
    """Take ``gang``, which was refused, out of planning if no end of other pods helps it."""
    refusal = cycle.refusal_of(gang)
    if refusal is None or refusal.cause not in NODES_MAY_HELP or _is_kept(gang):
        return
    task = _fits_no_node(cycle, gang)
    if task is None and refusal.never is Never.NODES and no_part_fits(cycle, gang):
        cycle.forget_refusal(gang)
        cycle.refuse(gang, refusals.too_few(gang))
    elif task is not None and refusal.never is None:
        by_nodes = refusals.of_member(cycle, gang, cycle.finder.explain(gang, task))
        cycle.set_aside(gang, replace(by_nodes, detail=refusal.detail))
    elif (
        task is not None
        or refusal.never is Never.DOMAINS
        or (refusal.never in _OF_SUMS and _asks_for_all(cycle, gang, refusal))
    ):
        cycle.set_aside(gang, refusal)


def still_aside(cycle: Cycle, gang: Gang) -> Refusal | None:
    """The refusal of ``gang``, which was set aside before, if it still fits no node.

    Were it admitted each time that something changes, claims would pile up that nothing was voted
    on against.
    """
    if not gang.doubtful or _is_kept(gang):
        return None
    task = _fits_no_node(cycle, gang)
    if task is None:
        return None
    return refusals.of_member(cycle, gang, cycle.finder.explain(gang, task))


def _is_kept(gang: Gang) -> bool:
    return gang.partial or gang.waits_for_nodes


def _fits_no_node(cycle: Cycle, gang: Gang) -> Task | None:
    """The first of the members that fit no node, if ``gang`` can get nothing more without them.

    Members that do not exist count where their shape is known.
    """
    need = Need.of(gang, cycle.ledger.gang(gang))
    wanted = [(task, 1) for task in cycle.unserved(gang)]
    if not need.met and gang.role_shapes:
        wanted += slots.least_slots(gang, cycle.snapshot, made=cycle.slot_shapes)
        wanted += slots.other_slots(gang, cycle.snapshot)
    able: Counter[str] = Counter()
    unfit: list[Task] = []
    known: dict[tuple[int, NodeName], bool] = {}
    for task, count in wanted:
        kind = id(task.shape), task.pinned
        fits = known.get(kind)
        if fits is None:
            fits = known[kind] = cycle.finder.never(task) is None
        if fits:
            able[task.role] += count
        else:
            unfit.append(task)
    if not unfit or sum(count for _, count in wanted) < need.members:
        return None
    lacks_role = any(able[role] < lacking for role, lacking in need.roles.items())
    if able if need.met else (not lacks_role and able.total() >= need.total):
        return None
    key = cycle.opened.task_key(gang)
    return min(unfit, key=lambda task: rank(task, key))


def _asks_for_all(cycle: Cycle, gang: Gang, refusal: Refusal) -> bool:
    """Whether what ``gang`` was refused for is all that it can do with.

    That is its ``minResources`` while it is not admitted; what members that do not exist ask for
    beyond these is a guess. Later it is the request of some members, and others may do with less
    unless these are like them, or none.
    """
    if _is_guessed(cycle, gang, refusal):
        return False
    if not cycle.in_play(gang):
        return True
    waiting = cycle.unserved(gang)
    if len({(id(task.shape), task.pinned) for task in waiting}) <= 1:
        return True
    need = Need.of(gang, cycle.ledger.gang(gang))
    return not need.met and len(waiting) <= need.members


def _is_guessed(cycle: Cycle, gang: Gang, refusal: Refusal) -> bool:
    """Whether more was asked for than ``minResources``, members that do not exist included."""
    index = cycle.snapshot.axis.index
    return any(
        is_guess(gang, lack.asked, index[lack.resource])
        for lack in refusal.shortfalls
        if lack.resource in index
    )
