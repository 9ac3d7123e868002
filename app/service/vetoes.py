"""What the stock filters know and we do not.

When kube-scheduler does not offer the node we planned, one of its own filters (volumes, devices,
…) refused it. The pod's shape is kept off that node for a while, so the next plan goes elsewhere.
"""

from app.model.ids import NodeName
from app.model.shape import PodShape
from app.model.snapshot import Veto


class Vetoes:
    """Refused (shape, node) pairs, each until its time is up."""

    def __init__(self, *, keep_s: float) -> None:
        self._keep_s = keep_s
        self._until: dict[Veto, float] = {}

    def add(self, shape: PodShape, node: NodeName, *, now: float) -> None:
        """Remember that ``node`` was refused for ``shape``."""
        self._until[Veto(shape, node)] = now + self._keep_s

    def active(self, *, now: float) -> frozenset[Veto]:
        """Those still in force; the others are forgotten."""
        if not self._until:
            return frozenset()
        self._until = {veto: until for veto, until in self._until.items() if until > now}
        return frozenset(self._until)

    def __len__(self) -> int:
        return len(self._until)
