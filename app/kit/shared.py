"""Work that takes a while, done once for all callers at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class Shared(Generic[V]):
    """``ask`` is called for the first caller; all callers before it ends have its answer."""

    def __init__(self, ask: Callable[[], Awaitable[V]]) -> None:
        self._ask = ask
        self._task: asyncio.Task[V] | None = None

    @property
    def is_asked(self) -> bool:
        """Whether callers wait for an answer, or it is worked on."""
        return self._task is not None

    async def get(self) -> V:
        """The answer, or what ``ask`` raises. A caller that hangs up ends its own waiting only."""
        task = self._task
        if task is None:
            task = self._task = asyncio.ensure_future(self._answer())
            task.add_done_callback(_noted)
        return await asyncio.shield(task)

    async def _answer(self) -> V:
        try:
            return await self._ask()
        finally:
            self._task = None


def _noted(task: "asyncio.Task[Any]") -> None:
    """All that waited may have gone: then nothing has looked at its error."""
    if not task.cancelled():
        task.exception()
