"""What the stock filters know and we do not.

When kube-scheduler does not offer the node we planned, one of its own filters (volumes, devices,
…) refused it. The pod's shape is kept off that node for a while, so the next plan goes elsewhere.

It may have been chance: kube-scheduler had not seen yet that a pod is gone, or left room for one
that was nominated there. So the first time is short; a node that is tried again soon after it and
refused again is left alone for longer each time.
"""

from dataclasses import dataclass
from typing import Final

from app.model.ids import NodeName
from app.model.shape import PodShape
from app.model.snapshot import Veto

FIRST_S: Final = 1.0
"""For how long a node is left alone the first time."""
GROWTH: Final = 4
"""By which factor the next veto lasts longer, if it comes within that many times as long."""


@dataclass(frozen=True, slots=True)
class _Refused:
    until: float
    lasts_s: float

    @property
    def known_until(self) -> float:
        return self.until + GROWTH * self.lasts_s

    def ends_after(self, now: float) -> float:
        """When something changes next."""
        return self.until if now < self.until else self.known_until


class Vetoes:
    """Refused (shape, node) pairs, each until its time is up."""

    def __init__(self, *, keep_s: float) -> None:
        """``keep_s``: the longest."""
        self._keep_s = keep_s
        self._refused: dict[Veto, _Refused] = {}
        self._active: frozenset[Veto] = frozenset()
        self._right_until = float("inf")

    def add(self, shape: PodShape, node: NodeName, *, now: float) -> None:
        """Remember that ``node`` was refused for ``shape``."""
        veto = Veto(shape, node)
        before = self._refused.get(veto)
        if before is None or before.known_until <= now:
            lasts_s = FIRST_S
        else:
            # Others of its gang had been planned there too by the time it was refused.
            lasts_s = before.lasts_s * (GROWTH if before.until <= now else 1)
        lasts_s = min(lasts_s, self._keep_s)
        self._refused[veto] = _Refused(now + lasts_s, lasts_s)
        self._right_until = float("-inf")

    def active(self, *, now: float) -> frozenset[Veto]:
        """The vetoes still in force."""
        if now >= self._right_until:
            self._go_through(now)
        return self._active

    def _go_through(self, now: float) -> None:
        self._refused = {v: each for v, each in self._refused.items() if now < each.known_until}
        self._active = frozenset(v for v, each in self._refused.items() if now < each.until)
        ends = (each.ends_after(now) for each in self._refused.values())
        self._right_until = min(ends, default=float("inf"))

    def __len__(self) -> int:
        return len(self._refused)
