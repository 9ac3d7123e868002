"""Tasks that fit alike: where one of a queue has no place, no equal one has.

Equal are those of one shape and one pin. Apart from them stand members for which their queue keeps
room (:class:`~app.core.earmarks.Earmarks`): it is full for the others, and not for them.
"""

from app.core.ledger import Ledger
from app.model.gang import Task
from app.model.ids import NodeName

TaskKind = tuple[int, NodeName, bool]
"""The shape's identity (shapes live as long as the cycle), the pin, and whether room is kept."""


def kind_of(task: Task, ledger: Ledger) -> TaskKind:
    """See :data:`TaskKind`; it does not change before all actions have run."""
    return id(task.shape), task.pinned, ledger.earmarks.has(task)
