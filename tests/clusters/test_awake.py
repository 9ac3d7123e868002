"""The clock that leaves out in what time the machine stood still."""

from __future__ import annotations

import threading

from tests.clusters.awake import AwakeClock


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_what_goes_by_between_two_looks_counts() -> None:
    hands = Hands()
    clock = AwakeClock(hands)
    for _ in range(30):
        hands.at += 0.5
        clock.now()
    assert clock.now() == 15


def test_a_standstill_does_not_count() -> None:
    hands = Hands()
    clock = AwakeClock(hands)
    hands.at += 0.5
    assert clock.now() == 0.5
    hands.at += 60
    assert clock.now() == 0.5
    hands.at += 0.25
    assert clock.now() == 0.75


def test_it_is_looked_at_while_it_is_needed() -> None:
    looked = threading.Semaphore(0)

    def look() -> float:
        looked.release()
        return 0.0

    with AwakeClock(look):
        assert all(looked.acquire(timeout=20) for _ in range(3))
