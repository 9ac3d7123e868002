"""Patches over job specs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.jobflow.merging import merged
from tests.wire.deep import depth, nested

TASKS = {"tasks": [{"name": "a", "replicas": 1, "template": {"x": 1}}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("base", "patch", "expected"),
    [
        pytest.param({"queue": "a"}, {"queue": "b"}, {"queue": "b"}, id="a value replaces"),
        pytest.param({"queue": "a"}, {"maxRetry": 1}, {"queue": "a", "maxRetry": 1}, id="is added"),
        pytest.param({"queue": "a"}, {"queue": None}, {}, id="null takes away"),
        pytest.param(
            {"plugins": {"env": [], "svc": []}},
            {"plugins": {"svc": None, "ssh": ["--x"]}},
            {"plugins": {"env": [], "ssh": ["--x"]}},
            id="maps are merged",
        ),
        pytest.param(
            TASKS,
            {"tasks": [{"name": "a", "replicas": 3}, {"name": "c"}]},
            {
                "tasks": [
                    {"name": "a", "replicas": 3, "template": {"x": 1}},
                    {"name": "b"},
                    {"name": "c"},
                ]
            },
            id="tasks are merged by name",
        ),
        pytest.param({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}, id="other lists replace"),
        pytest.param(TASKS, {"tasks": []}, {"tasks": []}, id="an empty list replaces"),
        pytest.param(TASKS, {"tasks": [{"name": {}}]}, {"tasks": [{"name": {}}]}, id="no names"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": 2}}, {"a": {"c": 2}}, id="a map"),
    ],
)
def test_a_patch_is_laid_over_a_spec(
    base: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert merged(base, patch) == expected


_values = st.recursive(
    st.integers(0, 3) | st.sampled_from(["x", "y"]),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | st.lists(
            st.builds(lambda n, v: {"name": n, "v": v}, st.sampled_from("pqr"), inner),
            max_size=3,
            unique_by=lambda each: each["name"],
        )
    ),
    max_leaves=6,
)
_maps = st.dictionaries(st.sampled_from("abcd"), _values, max_size=4)


@given(_maps, _maps)
def test_laying_a_patch_over_twice_changes_nothing_more(
    base: dict[str, Any], patch: dict[str, Any]
) -> None:
    once = merged(base, patch)

    assert merged(once, patch) == once
    assert merged(base, {}) == base


def test_a_template_of_any_depth_is_merged() -> None:
    assert depth(merged({"unknown": nested(500)}, {"queue": "b"})["unknown"]) == 500
    assert depth(merged({}, {"tasks": nested(501)})["tasks"]) == 501
