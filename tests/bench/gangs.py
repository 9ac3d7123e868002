"""Who was bound when, and which gangs stood half bound.

A gang that is being bound has between one and all of its members bound for a while; 2,000 bindings
take seconds. *Partial* is one that stopped there: some, but fewer than its minimum, are bound and
no further member is bound for longer than `STALL_S`, or ever.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

STALL_S = 1.0


@dataclass(slots=True)
class Binds:
    """Fed with each binding once, in order of time."""

    minimum: int
    expected: int
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once as many as expected are bound."""
    count: int = 0
    first_at: float = 0.0
    last_at: float = 0.0
    partial: set[str] = field(default_factory=set)
    _bound: dict[str, int] = field(default_factory=dict)
    _latest: dict[str, float] = field(default_factory=dict)

    def add(self, gang: str, *, at: float) -> None:
        """A member of ``gang`` (empty: a pod alone) was bound."""
        self.count += 1
        self.first_at = self.first_at or at
        self.last_at = at
        if self.count >= self.expected:
            self.complete.set()
        if not gang:
            return
        if self._unfinished(gang) and at - self._latest[gang] > STALL_S:
            self.partial.add(gang)
        self._bound[gang] = self._bound.get(gang, 0) + 1
        self._latest[gang] = at

    def resume(self, *, at: float) -> None:
        """The watch was cut and begins anew: what happened meanwhile was not seen when it did."""
        for gang in self._latest:
            self._latest[gang] = at

    def finish(self) -> set[str]:
        """No more will come: the gangs that were partial at some time, or are left so."""
        return self.partial | {gang for gang in self._bound if self._unfinished(gang)}

    def _unfinished(self, gang: str) -> bool:
        return 0 < self._bound.get(gang, 0) < self.minimum
