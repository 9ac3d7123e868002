"""The largest gang of equal pods that would start now, found by asking the planner.

A gang of ``n`` pods that starts whole tells nothing of one of ``n + 1``, so the number is searched
by halves between none and what all nodes have free together. Each try is a whole cycle with all
that waits besides.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from app.core.simulation import Fate, Outcome
from app.model.reason import Refusal
from app.service.cycle.simulations import NewGroup, Simulations

MOST: Final = 10_000
"""Pods of one gang that are tried at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Largest:
    """``members`` pods start together now, as ``fate`` says; ``refusal``: why one more does not.

    ``fate`` None: not even one does.
    """

    members: int
    fate: Fate | None
    refusal: Refusal | None


async def largest(
    simulations: Simulations, gang_of: Callable[[int], Awaitable[NewGroup]], *, most: int
) -> Largest:
    """The largest number up to ``most`` with which a gang starts; ``gang_of`` makes one of a size.

    Raises `UnknownResource` and `TooMany`.
    """
    best: Fate | None = None
    refusal: Refusal | None = None
    low, high = 1, min(most, MOST)
    while low <= high:
        size = (low + high + 1) // 2
        fate = await simulations.fate_of(await gang_of(size))
        if fate.outcome is Outcome.RUNS and len(fate.places) >= size:
            best, low = fate, size + 1
        else:
            refusal, high = fate.refusal, size - 1
    return Largest(low - 1, best, refusal)
