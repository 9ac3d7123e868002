"""Whether decisions of an older plan still fit, as the cluster stands now.

While a cycle plans on its snapshot, single gangs may be planned on demand. What both decided may
be too much for a queue or for one above it. So the cycle's decisions are taken up one by one on a
ledger of the newer snapshot, by the same rules; nodes are not chosen again, and whether they have
room is for whoever publishes to see.
"""

from collections.abc import Iterator, Sequence

from app.core.ledger import Ledger
from app.core.policy import Opened, Policies
from app.core.tiers import open_policies
from app.model.gang import Gang
from app.model.plan import GangPlacement
from app.model.snapshot import Snapshot


def confirmed(
    placed: Sequence[GangPlacement], policies: Policies, *, snapshot: Snapshot, now: float
) -> Iterator[GangPlacement]:
    """Those of ``placed`` that their queues may hold together, the earlier first.

    All of a gang's placements or none. Raises nothing: gangs and nodes that are gone drop out.
    """
    ledger = Ledger(snapshot)
    opened = open_policies(policies, ledger, now=now)
    for decided in placed:
        gang = snapshot.gangs.get(decided.gang)
        if gang is None:
            continue
        with ledger.trial() as trial:
            if _place(ledger, opened, gang, decided):
                trial.keep()
                yield decided


def _place(ledger: Ledger, opened: Opened, gang: Gang, decided: GangPlacement) -> bool:
    rows, width = ledger.snapshot.table.index, len(ledger.snapshot.axis)
    for placement in decided.placements:
        row, task = rows.get(placement.node), placement.task
        if row is None or len(task.request) != width:
            return False
        if opened.allocatable(gang.queue, task) is not None:
            return False
        ledger.place(gang, task, node=row)
    return True
