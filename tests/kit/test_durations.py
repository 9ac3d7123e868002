"""Durations as Go writes them."""

import pytest

from app.kit.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("10s", 10),
        ("1h30m", 5400),
        ("1.5m", 90),
        (".5s", 0.5),
        ("1h2m3s4ms5us6ns", 3723.004005006),
        ("5\u00b5s", 5e-6),
        ("5\u03bcs", 5e-6),
        ("-2m", -120),
        ("+2m", 120),
        ("2562047h47m16s", 9223372036),
    ],
)
def test_a_duration_is_a_sum_of_numbers_with_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "10", "1d", "h", "1h 30m", "ten", "1e3s", "-", ".", "\uff15s"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["2562047h48m", "-2562048h", "9" * 400 + "h"])
def test_nor_is_what_is_longer_than_go_can_count(text: str) -> None:
    with pytest.raises(ValueError, match="longer"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (3e-9, "3ns"),
        (5e-6, "5\u00b5s"),
        (0.02, "20ms"),
        (1.5, "1.5s"),
        (59, "59s"),
        (60, "1m0s"),
        (300, "5m0s"),
        (3600, "1h0m0s"),
        (3661.25, "1h1m1.25s"),
        (90000, "25h0m0s"),
        (-5, "-5s"),
        (-90, "-1m30s"),
        (9223372036, "2562047h47m16s"),
    ],
)
def test_seconds_are_written_with_all_smaller_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_duration(text) == pytest.approx(seconds)
