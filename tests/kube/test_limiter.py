"""The token bucket in virtual time."""

import asyncio

import pytest

from app.kube.limiter import RateLimiter


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def waits(limiter: RateLimiter, calls: int) -> list[float]:
    async def take() -> list[float]:
        return [await limiter.take() for _ in range(calls)]

    return asyncio.run(take())


def test_a_burst_passes_and_the_rest_goes_at_the_rate() -> None:
    time = Time()
    limiter = RateLimiter(qps=4, burst=2, clock=time.clock, sleep=time.sleep)
    assert waits(limiter, 4) == [0.0, 0.0, pytest.approx(0.25), pytest.approx(0.25)]
    assert time.now == pytest.approx(100.5)


def test_an_idle_bucket_fills_up_to_the_burst_and_no_further() -> None:
    time = Time()
    limiter = RateLimiter(qps=4, burst=2, clock=time.clock, sleep=time.sleep)
    waits(limiter, 2)
    time.now += 1000.0
    assert waits(limiter, 3) == [0.0, 0.0, pytest.approx(0.25)]


def test_those_who_come_together_each_wait_longer_than_the_one_before() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def all_at_once() -> None:
        limiter = RateLimiter(qps=10, burst=1, clock=lambda: 0.0, sleep=sleep)
        await asyncio.gather(*(limiter.take() for _ in range(4)))

    asyncio.run(all_at_once())
    assert slept == [pytest.approx(0.1), pytest.approx(0.2), pytest.approx(0.3)]


@pytest.mark.parametrize(("qps", "burst"), [(0.0, 1), (1.0, 0)])
def test_a_limit_that_lets_nothing_through_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        RateLimiter(qps=qps, burst=burst, clock=lambda: 0.0, sleep=asyncio.sleep)
