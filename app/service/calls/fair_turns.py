"""Many callers that go on at the same moment, without the loop standing still for others.

A caller that is told something runs in the loop's next turn, and nothing else is looked at before
all of them have run. A gang's members are told a few per turn, so that kube-scheduler's next call
is answered in between.
"""

import asyncio
from collections.abc import Iterable
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")

AT_A_TURN: Final = 4


def end_in_turns(futures: Iterable[asyncio.Future[T]], result: T) -> None:
    """Give the futures that still wait their ``result``, a few per turn of the loop."""
    rest = iter(futures)
    few = list(islice(rest, AT_A_TURN))
    for future in few:
        if not future.done():
            future.set_result(result)
    if len(few) == AT_A_TURN:
        asyncio.get_running_loop().call_soon(end_in_turns, rest, result)
