"""Patterns as RE2 reads them."""

from __future__ import annotations

import pytest

from app.sandbox.apiserver.patterns import compiled


def fits(text: str, value: str) -> bool:
    pattern = compiled(text)
    assert pattern is not None
    assert pattern.text == text
    return pattern.fits(value)


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        (r"^\p{L}+$", "aé", "a1"),
        (r"^\pN+$", "1²", "a"),
        (r"^\P{L}+$", "12", "a"),
        (r"^\p{^L}+$", "12", "a"),
        (r"^[\p{Lu}_]+$", "A_É", "a"),
        (r"^[[:digit:]]+$", "12", "1:"),
        (r"^[[:alpha:][:digit:]-]+$", "a1-", "é"),
        (r"^[[:^digit:]]+$", "ab", "a1"),
        (r"^[^[:space:]]+$", "ab", "a b"),
        (r"^[[a&&b]+$", "[a&b", "c"),
        (r"^[]a]+$", "]a", "b"),
        (r"^[^]a]+$", "b", "]"),
        (r"^[\]a]+$", "]a", "b"),
        (r"^a$", "a", "a\n"),
        (r"\Aa\z", "a", "a\n"),
        (r"(?m)^a$", "b\na", "b"),
        (r"^\Q[a]+\E$", "[a]+", "a"),
        (r"^(?<first>a)(?P<second>b)$", "ab", "a"),
        (r"^\x{1F600}\x41$", "\U0001f600A", "A"),
        (r"^\w+$", "ab", "é"),
        (r"(?i)a$", "A", "b"),
        (r"^a(?i)b$", "aB", "AB"),
        (r"^\p{Greek}+$", "αβγ", "abc"),
    ],
    ids=str,
)
def test_a_pattern_means_what_it_means_to_the_real_server(text: str, good: str, bad: str) -> None:
    assert fits(text, good)
    assert not fits(text, bad)


@pytest.mark.parametrize(
    "text",
    ["[[:vowel:]]", "(", "[", r"\x{110000}", r"\x{99999999}", "a{1001}", "(?=a)", "\ud800"],
    ids=ascii,
)
def test_what_is_no_pattern_is_told(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert compiled(text) is None
    assert [one.getMessage() for one in caplog.records] == ["a pattern is not checked"]
