"""Where the sandbox takes its time from.

``WallClock`` is real time. ``SimClock`` stands still until ``advance`` moves it from one due sleep
to the next, so that a scenario of hours runs in milliseconds and always in the same order: sleeps
end in the order of their due times, equal ones in the order in which they were started.

Between two steps ``SimClock`` lets the event loop run ``settle`` turns, which is how it waits for
everything that can happen without time passing. Work that leaves the event loop (threads, real
sockets) is not waited for: virtual time is for in-process scenarios.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Seconds since the epoch, and a way to wait for them to pass."""

    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds`` of this clock; a negative number counts as zero."""


class WallClock:
    """Real time: the one place of the sandbox that reads it."""

    def now(self) -> float:
        """Seconds since the epoch, as the machine's clock has them."""
        return time.time()  # noqa: TID251 - this is the clock that all others are given

    async def sleep(self, seconds: float) -> None:
        """Sleep for ``seconds`` of real time; a negative number counts as zero."""
        await asyncio.sleep(max(0.0, seconds))


class SimClock:
    """Virtual time that moves only when told to."""

    def __init__(self, *, start: float = 1_700_000_000.0, settle: int = 64) -> None:
        self._now = start
        self._settle = settle
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Virtual seconds since the epoch."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Return when ``advance`` has moved the clock by ``seconds``; at once for zero or less."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wake = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), wake))
        await wake

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        for _ in range(self._settle):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass, waking every sleeper that falls due on the way, in order."""
        end = self._now + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            await self._step()
        self._now = end
        await self.settle()

    async def advance_until(self, reached: Callable[[], bool], *, limit: float) -> None:
        """Move from sleeper to sleeper until ``reached``; ``TimeoutError`` after ``limit``."""
        end = self._now + limit
        await self.settle()
        while not reached():
            if not self._sleepers or self._sleepers[0][0] > end:
                raise TimeoutError(f"not reached within {limit:g} simulated seconds")
            await self._step()

    async def _step(self) -> None:
        due, _, wake = heapq.heappop(self._sleepers)
        if wake.done():
            return
        self._now = max(self._now, due)
        wake.set_result(None)
        await self.settle()


def timestamp(seconds: float) -> str:
    """``metav1.Time``: RFC 3339 with whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """``metav1.MicroTime``: RFC 3339 with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_timestamp(text: str) -> float:
    """Seconds since the epoch of an ISO 8601 text with its zone; ValueError for another text."""
    return datetime.fromisoformat(text).timestamp()
