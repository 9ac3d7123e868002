"""An event loop whose time stands still while anything can happen, and jumps when nothing can.

Timers fire in order without anybody waiting for them, so hours pass in milliseconds and always in
the same way. A loop that has nothing to do and no timer would wait for ever: that is an error.
"""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

START = 1_700_000_000.0
"""The wall time when a loop begins."""

_TURNS = 50


class _Jumping(selectors.BaseSelector):
    """Looks at the real files, but waits in virtual time."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing is left that could happen")
        if not ready and timeout:
            self.now += timeout
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """Begins at zero."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """The outcome of ``scenario``; whatever it leaves running is cancelled."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)


def clock() -> float:
    """Seconds since the epoch, of the running loop."""
    return START + asyncio.get_running_loop().time()


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


async def advance(seconds: float) -> None:
    """Let that much time pass, and what happens in it happen."""
    await asyncio.sleep(seconds)
    await settle()
