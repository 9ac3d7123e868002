"""Niceness: lowered where that is permitted, and no reason not to start where it is not."""

import os

import pytest

from app.main.urgency import be_urgent


def test_it_is_lowered_from_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", asked.append)
    be_urgent(5)
    be_urgent(0)
    assert asked == [-5]


def test_without_the_right_to_it_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_by: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "nice", refuse)
    with caplog.at_level("INFO"):
        be_urgent(5)
    assert "not permitted" in caplog.text
