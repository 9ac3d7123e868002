"""What the actions need of placement."""

from collections.abc import Sequence
from typing import Protocol

from app.core.placement.arrays import Counts
from app.model.gang import Gang, Task
from app.model.reason import Never, Refusal
from app.model.resources import Mask, Matrix, Rows


class NodeFinder(Protocol):
    """Finds nodes on the cycle's ledger; does not place."""

    def find(self, gang: Gang, task: Task, *, within: Rows | None = None) -> int | None:
        """The best node row for ``task`` as the ledger stands; None: it fits nowhere.

        With ``within``, rows in ascending order, the search is as if the others were refused.
        """

    def fits(self, gang: Gang, task: Task, row: int) -> bool:
        """Whether ``task`` of ``gang`` may go to the node of ``row`` as the ledger stands."""

    def places(self, task: Task) -> Counts:
        """At most how many tasks like ``task`` each node takes as the ledger stands, shape (N,).

        By what they request and where they may go; rules about other pods and those of plugins may
        leave fewer.
        """

    def places_if_empty(self, task: Task) -> Counts:
        """At most how many tasks like ``task`` each empty node would take, shape (N,).

        Nodes that are away count too.
        """

    def collect(self, tasks: Sequence[Task], *, within: Rows | None = None) -> Matrix | None:
        """Which free room to keep for ``tasks`` that do not all fit yet, shape ``(N, R)``.

        None: the nodes would not hold them together if all that runs had ended. With ``within``,
        only the nodes of those rows are used.
        """

    def explain(self, gang: Gang, task: Task) -> Refusal:
        """Why :meth:`find` finds nothing; slow, for refusals only."""

    def never(self, task: Task) -> Never | None:
        """Why no node could take ``task`` even if nothing ran there; None: one could."""


class FutureFinder(NodeFinder, Protocol):
    """Finds nodes where room that is about to be free counts as free."""

    def admits(self, task: Task) -> Mask:
        """The nodes that ``task`` may go to, whatever runs there, shape ``(N,)``."""
