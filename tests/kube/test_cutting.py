"""Containers of JSON cut into their parts, whatever is in these."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube.cutting import members, parts

TEXTS = st.text('\\"[]{},: aé\n\0\U0001f30b', max_size=8)
VALUES = st.recursive(
    TEXTS | st.none() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)
INDENT = st.none() | st.just(2)


@given(elements=st.lists(VALUES), indent=INDENT, ascii_only=st.booleans())
def test_the_parts_of_an_array_are_its_elements(
    *, elements: list[object], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(elements, indent=indent, ensure_ascii=ascii_only).encode()
    assert [json.loads(part) for part in parts(text)] == elements


@given(values=st.dictionaries(TEXTS, VALUES), indent=INDENT)
def test_the_members_of_an_object_are_its_values_by_name(
    values: dict[str, object], indent: int | None
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    found = {json.loads(b'"%s"' % name): json.loads(value) for name, value in members(text).items()}
    assert found == values


@pytest.mark.parametrize("empty", [b"[]", b" [ \n ] "])
def test_an_empty_array_has_no_parts(empty: bytes) -> None:
    assert list(parts(empty)) == []


def test_an_empty_object_has_no_members() -> None:
    assert members(b"{ }") == {}


def test_depth_is_no_matter() -> None:
    depth = 100_000
    deep = b"[" * depth + b"]" * depth
    assert list(parts(b"[1, %s, 2]" % deep)) == [b"1", b" " + deep, b" 2"]
    assert members(b'{"a": %s, "b": 2}' % deep) == {b"a": b" " + deep, b"b": b" 2"}


def test_a_text_that_does_not_end_is_looked_at_once() -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match="whole"):
        list(parts(b'["' + b'\\"' * 1_000_000))
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("text", [b"", b"null", b'"[]"', b"[1, 2", b"[[1]", b"]"])
def test_what_is_no_whole_container_has_no_parts(text: bytes) -> None:
    with pytest.raises(ValueError, match="whole"):
        list(parts(text))


@pytest.mark.parametrize("text", [b"[1]", b"{1: 2}", b'{"a"}', b'{"a" 1}'])
def test_what_is_no_object_has_no_members(text: bytes) -> None:
    with pytest.raises(ValueError, match="member"):
        members(text)
