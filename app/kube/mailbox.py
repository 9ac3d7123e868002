"""From the informer threads into the event loop, with few wake-ups.

The first item after a pause wakes the loop at once. What follows within ``interval_s`` waits for
one common drain, so a storm of events costs at most ``1 / interval_s`` wake-ups a second while a
single event is handed over immediately. A long queue (a cold start) is taken in slices, so that the
loop serves others in between; items should be small. Items keep the order in which they were put.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from app.telemetry import metrics

log = logging.getLogger(__name__)

T = TypeVar("T")

INTERVAL_S: Final = 0.005
SLICE: Final = 4


class Mailbox(Generic[T]):
    """``put`` in any thread; ``handler`` runs in the loop, once per drain, with what came."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        handler: Callable[[list[T]], None],
        *,
        interval_s: float = INTERVAL_S,
        slice_size: int = SLICE,
    ) -> None:
        self._loop = loop
        self._handler = handler
        self._interval_s = interval_s
        self._slice_size = slice_size
        self._items: deque[T] = deque()
        self._lock = threading.Lock()
        self._scheduled = False
        self._closed = False
        self._oldest_at = 0.0

    def put(self, item: T) -> None:
        """Hand ``item`` over soon; dropped once closed."""
        with self._lock:
            if self._closed:
                return
            if not self._items:
                self._oldest_at = time.monotonic()
            self._items.append(item)
            if not self._scheduled:
                self._scheduled = True
                self._loop.call_soon_threadsafe(self._drain)

    def close(self) -> None:
        """Drop what is left and what still comes; call before the loop ends."""
        with self._lock:
            self._closed = True
            self._items.clear()

    def _drain(self) -> None:
        with self._lock:
            if not self._items:
                self._scheduled = False
                return
            count = min(len(self._items), self._slice_size)
            items = [self._items.popleft() for _ in range(count)]
            more = bool(self._items)
            waited_s = time.monotonic() - self._oldest_at
        metrics.MAILBOX_WAKEUPS.inc()
        metrics.MAILBOX_DELAY_SECONDS.observe(waited_s)
        try:
            self._handler(items)
        except Exception:  # the items that follow must still be handed over
            log.exception("mailbox handler failed", extra={"items": len(items)})
        if more:
            self._loop.call_soon(self._drain)
        else:
            self._loop.call_later(self._interval_s, self._drain)
