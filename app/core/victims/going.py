"""Units of victims that go together on the ledger, as far as rules let them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from app.core.evicting import Judgement, Leaving
from app.core.victims.units import Unit, pods_of
from app.model.resources import Mask


@dataclass(frozen=True, slots=True, eq=False)
class Going:
    """Some of ``units`` go: see :class:`~app.core.victims.problem.Together`."""

    leaving: Leaving
    units: Sequence[Unit]

    def take(self, units: Sequence[Unit]) -> int | None:
        """Let all of these go as well; the position of the first that may not."""
        return self.leaving.take([unit.pods for unit in units])

    def still_may(self) -> Mask:
        """Which units may go yet, each by itself, shape ``(U,)``."""
        pods = self.leaving.still_may()[pods_of(self.units)]
        sizes = [len(unit.pods) for unit in self.units]
        may: Mask = np.logical_and.reduceat(pods, np.cumsum([0, *sizes[:-1]]))
        return may


@contextmanager
def going(judgement: Judgement, units: Sequence[Unit]) -> Iterator[Going]:
    """Inside, some of ``units`` go that ``judgement`` lets go; then the ledger is as before."""
    with judgement.leaving() as leaving:
        yield Going(leaving, units)
