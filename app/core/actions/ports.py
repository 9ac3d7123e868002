"""What the actions need of placement."""

from typing import Protocol

from app.model.gang import Task
from app.model.reason import Refusal


class NodeFinder(Protocol):
    """Finds nodes on the cycle's ledger; does not place."""

    def find(self, task: Task) -> int | None:
        """The best node row for ``task`` as the ledger stands; None: it fits nowhere."""

    def explain(self, task: Task) -> Refusal:
        """Why :meth:`find` finds nothing; slow, for refusals only."""
