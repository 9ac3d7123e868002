"""Copies of JSON data."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wire.copying import copied
from tests.wire.deep import depth, nested

_PLAIN = st.none() | st.booleans() | st.integers() | st.text()
_JSON = st.recursive(
    _PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def _holders(value: Any) -> list[int]:
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [id(value), *(each for item in inner for each in _holders(item))]


@given(_JSON)
def test_a_copy_is_equal_and_shares_nothing_that_can_change(value: Any) -> None:
    made = copied(value)
    assert made == value
    assert not {*_holders(made)} & {*_holders(value)}


def test_what_stands_in_two_places_is_copied_for_each() -> None:
    shared: dict[str, int] = {}
    made = copied([shared, shared])
    assert made[0] is not made[1]


@pytest.mark.parametrize("levels", [0, 1, 500, 50_000])
def test_no_depth_is_too_much(levels: int) -> None:
    assert depth(copied(nested(levels))) == levels
