"""Evictions that were decided before: what they freed is for the gang that they were decided for.

Until all victims of a plan have gone, the plan stands on the ledger of every cycle as it was
decided: its victims go, and the preemptor has its places. Idle room that these places count on is
kept from all others, so that what one victim leaves is still there when the last one goes. The
preemptor itself is not planned meanwhile.
"""

from collections.abc import Mapping

from app.core.ledger import Ledger
from app.model.eviction import EvictionPlan
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, PodUid
from app.model.reason import Cause, Refusal

_NAMED = 3
"""How many pods that still have to go are named in a reason."""


def count_on(ledger: Ledger) -> Mapping[GroupKey, Refusal]:
    """Put the plans that have begun on the ledger; why each preemptor waits, by its group."""
    waits: dict[GroupKey, Refusal] = {}
    for plan in ledger.snapshot.begun:
        going = _evict(ledger, plan)
        gang = ledger.snapshot.gangs.get(plan.preemptor)
        if gang is not None:
            _pipeline(ledger, gang, plan)
            waits[gang.key] = waits_for(gang, going)
    return waits


def waits_for(gang: Gang, going: list[str]) -> Refusal:
    """Why ``gang``, which has places, waits: the pods ``going`` still have room there."""
    kept = "room is kept for the group"
    if not going:
        return Refusal(Cause.PIPELINED, where=gang.key, detail=kept)
    named = ", ".join(sorted(going)[:_NAMED])
    more = f" and {len(going) - _NAMED} more" if len(going) > _NAMED else ""
    pods = "1 pod" if len(going) == 1 else f"{len(going)} pods"
    detail = f"{kept}; it waits for {pods} to go: {named}{more}"
    return Refusal(Cause.PIPELINED, where=gang.key, detail=detail)


def _evict(ledger: Ledger, plan: EvictionPlan) -> list[str]:
    index = ledger.snapshot.running.index
    there = [victim for victim in plan.victims if victim.uid in index]
    for victim in there:
        if victim.uid not in ledger.evicted:
            ledger.evict(index[victim.uid])
    return [f"{victim.namespace}/{victim.name}" for victim in there]


def _pipeline(ledger: Ledger, gang: Gang, plan: EvictionPlan) -> None:
    index = ledger.snapshot.table.index
    waiting = {task.uid: task for task in gang.waiting}
    for place in plan.places:
        task = _as_it_is(place.task, waiting)
        row = index.get(place.node)
        if task is not None and row is not None:
            ledger.pipeline(gang, task, node=row)
            ledger.keep_for_pipelined(row)


def _as_it_is(task: Task, waiting: Mapping[PodUid, Task]) -> Task | None:
    """The task of a place by now; None: the pod waits no more."""
    return task if task.is_slot else waiting.get(task.uid)
