"""Tabs in YAML: taken where Go's reader takes them, refused where it refuses them.

Go's reader is a translation of libyaml, so libyaml (`yaml.CSafeLoader`) is what ours is held to.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.wire import go_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a:\tb", {"a": "b"}),
        ("a: \t b", {"a": "b"}),
        ("a\t: b", {"a": "b"}),
        ("a:\t'b'\t", {"a": "b"}),
        ("a:\t\n  b: c", {"a": {"b": "c"}}),
        ("- a: b\t# c", [{"a": "b"}]),
        ("- a: b\t\n  c: d", [{"a": "b", "c": "d"}]),
        ("a: # b\tc\n- d", {"a": ["d"]}),
        ("a: {b:\t1,\tc: 2\t}", {"a": {"b": 1, "c": 2}}),
        ("a: [\n\tb,\n\tc\n]", {"a": ["b", "c"]}),
        ("a: b\tc", {"a": "b\tc"}),
        ("a: b,\tc\t\n  d", {"a": "b,\tc d"}),
        ("a: 'b\tc'", {"a": "b\tc"}),
        ("a:\t|\n  b\tc\n", {"a": "b\tc\n"}),
        ("a\t\n---", "a"),
    ],
)
def test_tabs_separate(text: str, value: Any) -> None:
    loaded = list(yaml.load_all(text, go_yaml.Loader))
    assert loaded[0] == value
    assert loaded[0] == next(iter(yaml.load_all(text, yaml.CSafeLoader)))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("\ta: b", 1, 1),
        ("a:\n\tb: c", 2, 1),
        ("a:\n  \tb: c", 2, 3),
        ("-\ta", 1, 2),
        ("a: 'b'\n\tc: d", 2, 1),
    ],
)
def test_tabs_do_not_indent(text: str, line: int, column: int) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match="cannot start any token") as caught:
        go_yaml.load(text)
    mark = caught.value.problem_mark
    assert mark is not None
    assert (mark.line + 1, mark.column + 1) == (line, column)
    with pytest.raises(yaml.YAMLError):
        yaml.load(text, yaml.CSafeLoader)


@pytest.mark.parametrize(
    "value",
    ["!!bool maybe", "!!timestamp soon", "!!int two", "!!float 1,5", "2026-13-01", "9" * 5000],
)
def test_a_value_that_contradicts_itself_is_an_error_with_a_place(value: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match=go_yaml.UNREADABLE) as caught:
        go_yaml.load(f"a: 1\nb: {value}\n")
    mark = caught.value.problem_mark
    assert mark is not None
    assert (mark.line + 1, mark.column + 1) == (2, 4)


def outcome(text: str, loader: Any) -> str:
    """The value, or where and why there is none."""
    try:
        return repr(yaml.load(text, loader))
    except (ValueError, TypeError, KeyError, AttributeError):
        return go_yaml.UNREADABLE
    except yaml.YAMLError as error:
        unreadable = go_yaml.UNREADABLE in str(error)
        return go_yaml.UNREADABLE if unreadable else f"{type(error).__name__}: {error}"


@given(st.lists(st.sampled_from([*"ab1:-#[]{},'\"|?&*!%\n ", ": ", "- "]), max_size=12))
def test_text_without_tabs_is_read_as_ever(parts: list[str]) -> None:
    text = "".join(parts)
    assert outcome(text, go_yaml.Loader) == outcome(text, yaml.SafeLoader)
