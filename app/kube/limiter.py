"""The client-side rate limit: a token bucket that may have debts, so that waiters keep order.

A call takes its token at once and, if the bucket is in debt, sleeps until its token exists. The
wait of each is fixed when it arrives: no call is woken to look again, and none overtakes.
"""

from collections.abc import Awaitable, Callable

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


class RateLimiter:
    """``qps`` calls a second in the long run, ``burst`` at once."""

    def __init__(self, *, qps: float, burst: int, clock: Clock, sleep: Sleep) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps must be above 0 and burst at least 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._sleep = sleep
        self._tokens = float(burst)
        self._filled_at = clock()

    async def take(self) -> float:
        """Wait for one token; returns the seconds waited."""
        now = self._clock()
        gained = (now - self._filled_at) * self._qps
        self._filled_at = now
        self._tokens = min(self._burst, self._tokens + gained) - 1.0
        if self._tokens >= 0.0:
            return 0.0
        wait_s = -self._tokens / self._qps
        await self._sleep(wait_s)
        return wait_s
