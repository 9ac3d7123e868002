"""Work that takes a while, for a few callers at a time; some others wait, and more are refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class TooMany(RuntimeError):
    """Too many callers wait already: this one is not taken."""


class Turns:
    """``at_once`` callers have a turn; ``most`` are taken, those that have one included."""

    def __init__(self, what: str, *, at_once: int = 1, most: int) -> None:
        """``what`` is asked for, in the plural; an error names it."""
        self._what = what
        self._most = most
        self._taken = 0
        self._at_once = asyncio.Semaphore(at_once)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the callers before; raises `TooMany`."""
        if self._taken >= self._most:
            raise TooMany(f"{self._taken} {self._what} wait already; ask again later")
        self._taken += 1
        try:
            async with self._at_once:
                yield
        finally:
            self._taken -= 1
