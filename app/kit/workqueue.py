"""A queue of keys for workers: fair, without duplicates, with back-off per key.

The guarantees are client-go's: a key added many times before a worker takes it is worked on once; a
key added while it is being worked on is worked on again afterwards, never at the same time; a key
that failed comes back after a pause that doubles. Besides, each lane of keys (the namespace that
they are of) has its turn: one with ten thousand keys holds none of the others up.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar


class Again(Exception):
    """Raised by the work: come back to this key, after ``after_s`` if given.

    Without ``after_s`` it counts as a failure; with it the key starts afresh.
    """

    def __init__(self, why: str, *, after_s: float | None = None) -> None:
        super().__init__(why)
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pause before the n-th repeat: ``base_s`` doubled each time, at most ``max_s``."""

    base_s: float = 0.1
    max_s: float = 10.0

    def pause(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row."""
        return min(self.base_s * 2.0 ** min(failures - 1, 30), self.max_s)


K = TypeVar("K", bound=Hashable)


class _Lanes(Generic[K]):
    """Keys in the order in which they came, in lanes.

    The lanes take turns, a key each.
    """

    def __init__(self, lane_of: Callable[[K], Hashable]) -> None:
        self._lane_of = lane_of
        self._lanes: OrderedDict[Hashable, deque[K]] = OrderedDict()
        self._keys: set[K] = set()

    def add(self, key: K) -> bool:
        """Put ``key`` at the end of its lane; returns False if it waits already."""
        if key in self._keys:
            return False
        self._keys.add(key)
        self._lanes.setdefault(self._lane_of(key), deque()).append(key)
        return True

    def take(self) -> K:
        """Take out the first key of the lane whose turn it is; there must be one."""
        lane, keys = next(iter(self._lanes.items()))
        key = keys.popleft()
        self._keys.discard(key)
        if keys:
            self._lanes.move_to_end(lane)
        else:
            del self._lanes[lane]
        return key

    def __len__(self) -> int:
        return len(self._keys)


def _one_lane(_key: Hashable) -> Hashable:
    return None


class WorkQueue(Generic[K]):
    """Keys waiting for ``work``; run :meth:`run` in a task with as many workers as wanted."""

    def __init__(
        self,
        work: Callable[[K], Awaitable[None]],
        *,
        backoff: Backoff | None = None,
        failed: Callable[[K, Exception], None],
        lane_of: Callable[[K], Hashable] = _one_lane,
    ) -> None:
        """``lane_of`` tells the lane of a key, when it is added; the lanes take turns."""
        self._work = work
        self._failed = failed
        self._backoff = backoff or Backoff()
        self._queue = _Lanes(lane_of)
        self._processing: set[K] = set()
        self._dirty: set[K] = set()
        self._failures: dict[K, int] = {}
        self._later: dict[K, asyncio.TimerHandle] = {}
        self._ready = asyncio.Semaphore(0)
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, key: K) -> None:
        """Ask for ``key`` to be worked on."""
        if key in self._processing:
            self._dirty.add(key)
        elif self._queue.add(key):
            self._idle.clear()
            self._ready.release()

    def add_later(self, key: K, after_s: float) -> None:
        """Ask for the key after a pause; the sooner of two asks counts."""
        loop = asyncio.get_running_loop()
        due = loop.time() + after_s
        before = self._later.get(key)
        if before is not None:
            if before.when() <= due:
                return
            before.cancel()
        self._later[key] = loop.call_at(due, self._due, key)

    def __len__(self) -> int:
        return len(self._queue) + len(self._processing)

    async def run(self, workers: int) -> None:
        """Work for ever; cancel to stop. A key being worked on is cancelled with it."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._worker())
        finally:
            for timer in self._later.values():
                timer.cancel()
            self._later.clear()

    async def settled(self) -> None:
        """Wait until nothing is queued or being worked on (keys due later do not count)."""
        await self._idle.wait()

    def _due(self, key: K) -> None:
        self._later.pop(key, None)
        self.add(key)

    async def _worker(self) -> None:
        while True:
            await self._ready.acquire()
            key = self._queue.take()
            self._processing.add(key)
            try:
                await self._attempt(key)
            finally:
                self._finish(key)

    async def _attempt(self, key: K) -> None:
        try:
            await self._work(key)
        except Again as again:
            self._repeat(key, again.after_s)
        except Exception as error:
            self._failed(key, error)
            self._repeat(key, None)
        else:
            self._failures.pop(key, None)

    def _repeat(self, key: K, after_s: float | None) -> None:
        if after_s is not None:
            self._failures.pop(key, None)
            self.add_later(key, after_s)
            return
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_later(key, self._backoff.pause(failures))

    def _finish(self, key: K) -> None:
        self._processing.discard(key)
        if key in self._dirty:
            self._dirty.discard(key)
            self.add(key)
        if not self._queue and not self._processing:
            self._idle.set()
