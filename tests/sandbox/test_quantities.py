from __future__ import annotations

import pytest

from app.sandbox.quantities import parse_list, parse_milli


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("1", 1_000),
        (2, 2_000),
        ("100m", 100),
        ("0.5", 500),
        (".5", 500),
        ("1.5Gi", 1_610_612_736_000),
        ("1k", 1_000_000),
        ("1e3", 1_000_000),
        ("1E", 10**21),
        ("100u", 1),
        ("-1", -1_000),
    ],
)
def test_a_quantity_is_read_in_thousandths(text: object, milli: int) -> None:
    assert parse_milli(text) == milli


@pytest.mark.parametrize("text", ["", "x", "1KiB", "1 Gi", "--1"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        parse_milli(text)


def test_a_missing_resource_list_is_empty() -> None:
    assert parse_list(None) == {}
