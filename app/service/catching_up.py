"""Keeping one of kube-scheduler's calls for what the watch is about to show."""

import asyncio
from collections.abc import Callable

_LOOK_EVERY_S = 0.002


async def comes_true(check: Callable[[], bool], *, within_s: float) -> bool:
    """Whether ``check`` does so in that time; kube-scheduler does nothing else meanwhile."""
    for _ in range(round(within_s / _LOOK_EVERY_S)):
        await asyncio.sleep(_LOOK_EVERY_S)
        if check():
            return True
    return False
