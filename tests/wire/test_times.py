"""Times as Kubernetes writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wire import times
from app.wire.errors import DecodeError


@given(st.integers(0, 4_000_000_000))
def test_whole_seconds_survive(at: int) -> None:
    assert times.parse(times.seconds(at)) == at


@given(st.integers(0, 4_000_000_000_000_000))
def test_microseconds_survive(micros: int) -> None:
    at = micros / 1_000_000
    assert times.parse(times.microseconds(at)) == pytest.approx(at, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-11-21T04:32:15Z", 1795235535.0),
        ("2026-11-21T06:32:15+02:00", 1795235535.0),
        ("2026-11-21T04:32:15.500000Z", 1795235535.5),
    ],
)
def test_offsets_and_fractions_are_read(text: str, at: float) -> None:
    assert times.parse(text) == at


def test_fractions_of_a_second_are_cut_off() -> None:
    assert times.seconds(0.999) == "1970-01-01T00:00:00Z"
    assert times.microseconds(0.25) == "1970-01-01T00:00:00.250000Z"


@pytest.mark.parametrize("text", ["", "now", "2026-11-21", "2026-11-21T04:32:15"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="is not a time"):
        times.parse(text)


def test_no_moment_is_the_epoch() -> None:
    assert times.epoch(None) == 0.0
