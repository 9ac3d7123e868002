"""``pumice priority``: the place in the line of a queue, and what orders it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.stand import Stand, answering, group
from tests.cli.test_explain_causes import forbid, waiting


def in_line(name: str, rank: str, created: str) -> dict[str, Any]:
    columns = [{"by": "priority", "value": rank}, {"by": "age", "value": created}]
    return {"group": f"default/{name}", "columns": columns}


FOUND: dict[str, Any] = {
    "queue": "a",
    "position": 2,
    "waiting": 3,
    "itself": in_line("g", "0", "5"),
    "ahead": [in_line("high", "-9", "9")],
    "decided_by": "priority",
}


def test_it_shows_those_ahead_and_the_column_that_decided(stand: Stand) -> None:
    stand.create(group("g"))
    with answering(json.dumps(FOUND).encode()) as (url, asked):
        text = stand.printed("priority", "g", "--extender-url", url)
    assert asked == ["/line/default/g"]
    assert text.splitlines() == [
        "default/g is number 2 of 3 groups that wait in queue a.",
        "The group right before it goes first by priority.",
        "",
        "Group          Priority   Age",
        "default/high   -9         9",
        "default/g      0          5",
    ]


def test_a_group_that_the_user_may_not_see_is_asked_about(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = waiting(stand)
    forbid(monkeypatch, "podgroups")
    with answering(json.dumps(FOUND).encode()) as (url, asked):
        text = stand.printed("priority", "a", "--extender-url", url)
    assert asked == [f"/line/default/a-{made['metadata']['uid']}"]
    assert text.startswith("default/g is number 2 of 3 groups")


def test_a_name_that_is_none_says_so(stand: Stand) -> None:
    code, why = stand.refusal("priority", "none", "--extender-url", "http://127.0.0.1:1")
    assert (code, "there is no" in why) == (3, True)
