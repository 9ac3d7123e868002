"""Waits after failures."""

import pytest

from app.kube.informer import BACKOFF_BASE_S, BACKOFF_CAP_S, Backoff


def test_waits_double_up_to_the_cap() -> None:
    backoff = Backoff(lambda: 1.0)
    waits = [backoff.next() for _ in range(8)]
    assert waits == [pytest.approx(min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2**n)) for n in range(8)]


def test_jitter_takes_away_up_to_a_half() -> None:
    assert Backoff(lambda: 0.0).next() == pytest.approx(BACKOFF_BASE_S / 2)


def test_success_begins_anew() -> None:
    backoff = Backoff(lambda: 1.0)
    for _ in range(100):
        backoff.next()
    backoff.reset()
    assert backoff.next() == pytest.approx(BACKOFF_BASE_S)
