"""Sketches of run times: their error, their size, and what is left of a run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.eta.run_times import (
    BUCKETS,
    LEAST_RUNS,
    MOST_KEYS,
    RATIO,
    RunTime,
    Sketches,
    quantile,
)
from tests.scale import examples

SECONDS = st.lists(st.floats(1.0, 3e7), min_size=LEAST_RUNS, max_size=200)


def sketch_of(seconds: list[float]) -> Sketches:
    learned = Sketches()
    for each in seconds:
        learned.feed(b"key", each)
    return learned


@examples(200)
@given(SECONDS, st.floats(0.01, 0.99))
def test_a_quantile_is_off_by_one_bucket_at_most(seconds: list[float], share: float) -> None:
    counts = sketch_of(seconds).of(b"key")
    assert counts is not None
    found = quantile(counts, share)
    true = sorted(seconds)
    rank = min(max(int(np.ceil(share * len(true))) - 1, 0), len(true) - 1)
    assert found is not None
    assert found == pytest.approx(true[rank], rel=RATIO - 1 + 1e-9)


@examples(200)
@given(SECONDS, st.floats(0.0, 1.0), st.floats(0.0, 1e8))
def test_what_a_gang_runs_in_all_is_no_less_than_it_has_run(
    seconds: list[float], share: float, ran: float
) -> None:
    counts = sketch_of(seconds).of(b"key")
    assert counts is not None
    found = quantile(counts, share, beyond=ran)
    if found is None:
        assert ran >= max(seconds) / RATIO
    else:
        assert ran * (1 - 1e-9) <= found <= max(seconds) * RATIO * (1 + 1e-9)


@examples(50)
@given(SECONDS, SECONDS)
def test_two_sketches_together_are_the_sketch_of_all(one: list[float], two: list[float]) -> None:
    both, all_of_them = sketch_of(one), sketch_of([*one, *two])
    both.take(sketch_of(two).all())
    assert [list(counts) for _, counts in both.all()] == [
        list(counts) for _, counts in all_of_them.all()
    ]


def test_the_sketches_stay_below_a_megabyte_and_the_ones_fed_last_stay() -> None:
    learned = Sketches()
    for number in range(MOST_KEYS + 10):
        for _ in range(LEAST_RUNS):
            learned.feed(number.to_bytes(16, "big"), 60.0)
    assert len(learned) == MOST_KEYS
    assert MOST_KEYS * (BUCKETS * 2 + 16) < 1024 * 1024
    assert learned.of((0).to_bytes(16, "big")) is None
    assert learned.of((MOST_KEYS + 9).to_bytes(16, "big")) is not None


def test_late_runs_count_more_than_early_ones() -> None:
    counts = sketch_of([10.0] * 2000 + [1000.0] * 900).of(b"key")
    assert counts is not None
    assert quantile(counts, 0.5) == pytest.approx(1000.0, rel=0.07)


def test_few_runs_tell_nothing() -> None:
    assert sketch_of([10.0] * (LEAST_RUNS - 1)).of(b"key") is None


def test_what_a_gang_declares_holds_until_it_has_run_so_long() -> None:
    counts = sketch_of([500.0] * 10).of(b"key")
    assert counts is not None
    known = RunTime(declared=100.0, learned=(counts,))
    assert known.remaining(0.5, ran=40.0) == 60.0
    assert known.remaining(0.5, ran=150.0) == pytest.approx(350.0, rel=0.08)


def test_a_limit_ends_a_gang_however_long_others_ran() -> None:
    counts = sketch_of([500.0] * 10).of(b"key")
    assert counts is not None
    assert RunTime(limit=200.0, learned=(counts,)).remaining(0.5, ran=50.0) == 150.0
    assert RunTime(limit=200.0).remaining(0.9, ran=50.0) == 150.0
    assert RunTime(limit=200.0).remaining(0.9, ran=250.0) == 0.0


def test_of_a_gang_that_ran_longer_than_all_before_it_nothing_is_known() -> None:
    counts = sketch_of([20.0] * 10).of(b"key")
    assert counts is not None
    assert RunTime(learned=(counts,)).remaining(0.5, ran=100.0) is None
    assert RunTime(declared=20.0).remaining(0.5, ran=100.0) is None
