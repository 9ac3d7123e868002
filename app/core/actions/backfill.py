"""backfill: members that request nothing go to any node that takes them (volcano.md §3.5).

Only of gangs that may run and have their minimum; those that the minimum needed got a node with it.
"""

from app.core.actions.desk import Desk, Steps
from app.core.actions.minimum import place_one, reached
from app.model.gang import Gang


def backfill(desk: Desk, gangs: list[Gang]) -> Steps:
    """Place best-effort members one by one, gangs in their order."""
    placed = {placement.task.uid for decided in desk.placed for placement in decided.placements}
    for gang in sorted(gangs, key=desk.opened.gang_key):
        if not desk.is_admitted(gang) or not reached(desk, gang):
            continue
        waiting = (t for t in gang.waiting if t.best_effort and t.uid not in placed)
        for task in sorted(waiting, key=desk.opened.task_key):
            with desk.ledger.trial() as trial:
                refusal = place_one(desk, gang, task)
                if refusal is None:
                    trial.keep()
                    desk.publish(gang, desk.ledger.placed_since(trial), whole=False)
            if refusal is not None:
                desk.refuse(gang, refusal)
            yield
