"""Time without that in which the whole machine stood still.

A virtual machine does when it is moved or saved. Whoever is watched stood still too, so it does not
count, as where something is waited for (``wait_until``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

_LOOK_S = 0.1
_STANDSTILL_S = 1.0


class AwakeClock:
    """Goes on while somebody looks at it often; `with` has a thread do that."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._last = monotonic()
        self._now = 0.0

    def now(self) -> float:
        """Seconds since it was made."""
        with self._lock:
            last, self._last = self._last, self._monotonic()
            passed = self._last - last
            self._now += passed if passed < _STANDSTILL_S else 0.0
            return self._now

    def __enter__(self) -> Self:
        threading.Thread(target=self._look, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()

    def _look(self) -> None:
        while not self._ending.wait(_LOOK_S):
            self.now()
