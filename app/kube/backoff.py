"""How long to wait after the n-th failure in a row."""

from collections.abc import Callable
from typing import Final

BASE_S: Final = 0.2
CAP_S: Final = 8.0


class Backoff:
    """Doubles from ``BASE_S`` to ``CAP_S``; each wait is between a half and the whole of that."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._failures = 0

    def next(self) -> float:
        """One more failure: seconds to wait."""
        whole = min(CAP_S, BASE_S * 2.0 ** min(self._failures, 16))
        self._failures += 1
        return whole * (0.5 + 0.5 * self._random())

    def reset(self) -> None:
        """Begin with the first delay again, as requests succeed again."""
        self._failures = 0
