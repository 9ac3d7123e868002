"""How the policies rate nodes for a pod, in kube-scheduler's points."""

from collections.abc import Sequence

from app.core.ledger import Ledger
from app.core.placement.statics import ShapeCache
from app.core.policy import Policies
from app.core.tiers import open_policies, placer_on
from app.model.gang import Gang, Task
from app.model.ids import NodeName
from app.model.snapshot import Snapshot

_MOST = 10


def rated(
    names: Sequence[NodeName],
    task: Task,
    snapshot: Snapshot,
    policies: Policies,
    *,
    gang: Gang,
    now: float,
    shapes: ShapeCache,
) -> list[tuple[NodeName, int]]:
    """The scores of ``names`` for ``task``, spread over 0 to 10; 0 for a node that is not known."""
    ledger, table = Ledger(snapshot), snapshot.table
    opened = open_policies(policies, ledger, now=now)
    placer = placer_on(ledger, opened, shapes=shapes)
    rows = [table.index[name] for name in names if name in table.index]
    scores = placer.scores(gang, task, rows)
    low, high = float(scores.min(initial=0.0)), float(scores.max(initial=0.0))
    width = (high - low) or 1.0
    points = {
        table.nodes[row].name: round(_MOST * (float(score) - low) / width)
        for row, score in zip(rows, scores, strict=True)
    }
    return [(name, points.get(name, 0)) for name in names]
