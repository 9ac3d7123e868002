"""Work of the planner in slices: the event loop answers calls of kube-scheduler in between."""

import asyncio
from collections.abc import Generator
from typing import TypeVar

from app.service.ports import Clock

T = TypeVar("T")


async def in_slices(
    steps: Generator[None, None, T], *, clock: Clock, slice_s: float, in_one_go: bool = False
) -> T:
    """Run ``steps`` to their end, giving the loop a turn whenever ``slice_s`` seconds are used up.

    ``in_one_go``: it gets none.
    """
    slice_ends = clock() + slice_s
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: T = done.value
            return found
        if not in_one_go and clock() > slice_ends:
            await asyncio.sleep(0)
            slice_ends = clock() + slice_s
