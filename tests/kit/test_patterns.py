"""Patterns mean what they mean in Go, and take no longer than their names are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.patterns import matcher, pattern_problem

LONG = "a" * 250 + "-b"
"""A name that a backtracking matcher tries in each way that it can be divided."""


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|aa)+$",
        "(a*)*c",
        "^(([a-z0-9])+-?)+x$",
        "(.*)*x",
        ".*.*.*.*.*.*.*.*x",
        "a?" * 99,
    ],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    assert pattern_problem(pattern) == ""
    match = matcher(pattern)
    assert [match(LONG) for _ in range(100)] == [pattern == "a?" * 99] * 100


def test_a_pattern_of_any_length_is_judged() -> None:
    assert pattern_problem("[a" * 500_000) != ""
    assert matcher("a" * 1_000)("a" * 1_000)


def test_a_pattern_matches_anywhere_in_the_name() -> None:
    assert matcher("ack1")("rack1-node")
    assert not matcher("^ack1")("rack1-node")
    assert matcher("(rack1|rack2)-")("rack2-node")
    assert matcher("node[0-9]+$")("rack-node12")


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "a{1001}", "(?P<n", "[b-a]", "\udc80"])
def test_what_go_does_not_read_is_no_pattern(pattern: str) -> None:
    assert pattern_problem(pattern) != ""


@pytest.mark.parametrize(
    "pattern", [r"node-\d+\z", "[[:alpha:]]+-1", "(?i)NODE", r"\Qa.b\E", "(?s).*"]
)
def test_what_go_reads_is_a_pattern(pattern: str) -> None:
    assert pattern_problem(pattern) == ""
    assert matcher(pattern)("") is (pattern == "(?s).*")


PLAIN = st.from_regex(r"\A\^?[ab.-]{0,3}[ab.][*+]?[ab-]{0,3}\$?\Z")


@given(PLAIN, st.text("ab-", max_size=12))
def test_a_plain_pattern_matches_what_it_matches_in_python(pattern: str, name: str) -> None:
    assert matcher(pattern)(name) is (re.search(pattern, name) is not None)
