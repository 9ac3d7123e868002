"""When waiting gangs start, as the extender tells it."""

from __future__ import annotations

import json

from app.cli.start_times import AskedStartTimes
from tests.cli.stand import Stand, answering
from tests.cli.test_top import busy

__all__ = ["busy"]  # a fixture

NEVER = {"outcome": "never", "now": 1.0, "p50": None, "p90": None, "beyond": None}


def test_the_namespace_that_is_looked_at_is_asked_about() -> None:
    answer = {"etas": [{"group": "d/g", **NEVER}]}
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
    assert "ETA" not in shown
    answer = {"etas": [{"group": "default/waits", **NEVER}]}
    with answering(json.dumps(answer).encode()) as (url, _):
        assert "never" in busy.printed("top", "--extender-url", url)
