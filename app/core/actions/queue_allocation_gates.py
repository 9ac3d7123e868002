"""Pods that only lack a node and whose gates go, so that an autoscaler sees them (volcano.md §3.5).

A gate hides a pod from autoscalers. That is right while its queue has no room: a new node would not
help. Pods that ask for it (:attr:`~app.model.pod.Pod.queue_first`) lose their gates as soon as
nothing but nodes is missing, and a queue with a limit keeps room for them from then on. It is found
out when all actions have run, on what they left of the queues.

Unlike in Volcano, a gang that lacks its minimum is shown with as many members as that takes, or not
at all, and so is a sub-group: nodes for a part are of no use. And what hides a pod is a limit that
its queue sets (``capability``), not what the cluster has at the moment or a queue's share of that:
in a full cluster no pod would be shown.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from app.core.actions.backlog import rank
from app.core.actions.cycle import Cycle
from app.core.gangs.need import Need
from app.core.gangs.units import Unit, units
from app.model.gang import Gang, Task
from app.model.ids import PodUid
from app.model.reason import NODES_MAY_HELP


def keep_room_for_shown(cycle: Cycle) -> None:
    """Let queues keep room for members that were shown before their gang is admitted.

    Not before all actions have run: gangs that are admitted do not wait for such a gang. But nodes
    for others, which the queue has no room for beside it, would stay empty.
    """
    for gang in cycle.snapshot.shown:
        if not gang.inqueue:
            for task in gang.queue_first:
                if task.shown and not cycle.is_served(gang, task):
                    cycle.ledger.earmark(gang.queue, task)


def newly_shown(cycle: Cycle, gang: Gang) -> Iterator[PodUid]:
    """Members of ``gang`` that may be seen from now on; their queue keeps room for them."""
    refusal = cycle.refusal_of(gang)
    if refusal is None or refusal.cause not in NODES_MAY_HELP:
        return
    account = cycle.ledger.gang(gang)
    need, fitting = Need.of(gang, account).copy(), list[Task]()
    waiting = deque(units(gang, account, need.needed_first(_without_place(cycle, gang))))
    while waiting:
        unit = waiting.popleft()
        chosen = _keep_room(cycle, gang, unit)
        fitting.extend(task for task in chosen if not task.shown)
        for task in chosen:
            if need.takes(task.role):
                need.place(task.role)
        if chosen and unit.sub_group is not None:
            need.make_whole(unit.sub_group)
            waiting.extend(unit.rest(chosen))
    if need.met:
        yield from (task.uid for task in fitting if task.queue_first)
    else:
        for task in fitting:
            cycle.ledger.release(gang.queue, task)


def _keep_room(cycle: Cycle, gang: Gang, unit: Unit) -> Sequence[Task]:
    """As many of ``unit`` as it lacks and that are shown, or may be; their queue keeps room.

    None, when they are too few.
    """
    chosen: list[Task] = []
    for task in unit.tasks:
        if not task.shown:
            if cycle.opened.permitted(gang.queue, task) is not None:
                continue
            cycle.ledger.earmark(gang.queue, task)
        chosen.append(task)
        if len(chosen) == unit.lacks:
            return chosen
    for task in chosen:
        if not task.shown:
            cycle.ledger.release(gang.queue, task)
    return ()


def _without_place(cycle: Cycle, gang: Gang) -> list[Task]:
    """Members in the order in which they would get places, which is that of being shown."""
    left = (task for task in gang.waiting if not cycle.is_served(gang, task))
    key = cycle.opened.task_key(gang)
    return sorted(left, key=lambda task: rank(task, key))
