"""Members beyond the minimum: each stands alone.

One that does not fit is refused without harm to its gang, and no equal one of the gang is tried
again while the cluster only fills up.
"""

from collections.abc import Generator

import numpy as np

from app.core.actions import futility, network, refusals
from app.core.actions.backlog import Backlog
from app.core.actions.cycle import Cycle
from app.core.actions.kinds import kind_of
from app.core.actions.sub_groups import place_next_unit
from app.model.gang import Gang, Task
from app.model.reason import Refusal


def place_next(cycle: Cycle, backlog: Backlog) -> Generator[None, None, bool]:
    """Place one more member; returns whether more wait. Those that request nothing are left.

    Of a gang that is parted, one more unit.
    """
    if backlog.gang.sub_groups:
        return (yield from place_next_unit(cycle, backlog))
    while backlog.tasks and not backlog.tasks[0].best_effort:
        task = backlog.tasks.popleft()
        kind = kind_of(task, cycle.ledger)
        if backlog.has_failed(kind, cycle.ledger):
            continue
        refusal = place_alone(cycle, backlog.gang, task)
        if refusal is None:
            return bool(backlog.tasks) and not backlog.tasks[0].best_effort
        backlog.failed[kind] = cycle.ledger.moment()
        cycle.refuse(backlog.gang, refusals.of_member(cycle, backlog.gang, refusal))
        yield
    return False


def place_alone(cycle: Cycle, gang: Gang, task: Task) -> Refusal | None:
    """Place one member for good, in the domain of its gang, or say why not."""
    if gang.topology is None:
        return _place_alone(cycle, gang, task)
    failure = network.place_inside(
        cycle,
        network.Members(gang, [task], 1, sub_group=gang.sub_group_of.get(task.uid)),
        lambda: _failed(cycle, task, _place_alone(cycle, gang, task)),
    )
    return None if failure is None else failure.refusal


def _failed(cycle: Cycle, task: Task, refusal: Refusal | None) -> futility.Failure | None:
    if refusal is None:
        return None
    return futility.Failure(refusal, 0, np.zeros_like(task.request), cycle.ledger.moment())


def _place_alone(cycle: Cycle, gang: Gang, task: Task) -> Refusal | None:
    demand = futility.single(cycle.ledger, gang.queue, task)
    demand = futility.ruled(demand, cycle.plugin_keys(gang, [task]))
    known = cycle.futile.recall(demand)
    if known is not None:
        return known.refusal
    at = len(cycle.ledger.journal)
    refusal = cycle.try_place(gang, task)
    if refusal is None:
        cycle.decide(gang, cycle.ledger.placed_since(at), whole=False)
    failure = _failed(cycle, task, refusal)
    if failure is not None:
        cycle.futile.remember(demand, failure)
    return refusal
