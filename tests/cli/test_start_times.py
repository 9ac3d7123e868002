"""When waiting gangs start, as the extender tells it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.cli.start_times import AskedStartTimes, start_times
from tests.cli.stand import Stand, answering
from tests.cli.test_top import busy

__all__ = ["busy"]  # a fixture


@pytest.mark.parametrize(
    ("eta", "text"),
    [
        ({"outcome": "now", "p50": 100.0}, "now"),
        ({"outcome": "later", "p50": 340.0, "p90": 640.0}, "4m to 9m"),
        ({"outcome": "later", "p50": 340.0, "p90": 340.5}, "4m"),
        ({"outcome": "later", "p50": 340.0, "p90": None}, "4m to later"),
        ({"outcome": "beyond", "beyond": 86_500.0}, "after 24h"),
        ({"outcome": "never"}, "never"),
        ({"outcome": "unknown"}, "-"),
        ({"outcome": "running"}, "-"),
    ],
)
def test_a_start_is_told_in_a_few_letters(eta: dict[str, Any], text: str) -> None:
    assert start_times({"etas": [{"group": "d/g", "now": 100.0, **eta}]}) == {"d/g": text}


def test_the_namespace_that_is_looked_at_is_asked_about() -> None:
    answer = {"etas": [{"group": "d/g", "outcome": "never", "now": 1.0}]}
    with answering(json.dumps(answer).encode()) as (url, asked):
        of_one, of_all = AskedStartTimes(url, "d"), AskedStartTimes(url, "")
        of_one.ask()
        of_all.ask()
    assert asked == ["/eta/d", "/eta"]
    assert of_one.latest == {"d/g": "never"}


def test_an_extender_that_does_not_foretell_leaves_the_view_as_it_is(busy: Stand) -> None:
    with answering(b"not found", status=404) as (url, _):
        shown = busy.printed("top", "--extender-url", url)
    assert "Waiting: 1\n" in shown
    assert "Starts in" not in shown
    with answering(b'{"etas": [{"group": "default/waits", "outcome": "never"}]}') as (url, _):
        assert "never" in busy.printed("top", "--extender-url", url)
