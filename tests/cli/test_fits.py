"""``pumice fits``: the largest gang that would start now."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.stand import Stand, answering

FOUND: dict[str, Any] = {
    "queue": "a",
    "request": {"cpu": "2"},
    "members": 3,
    "nodes": {"n0": 1, "n1": 2},
    "text": "cpu asked 2, free 1",
}


def test_it_says_how_many_where_and_why_not_one_more(stand: Stand) -> None:
    with answering(json.dumps(FOUND).encode()) as (url, asked):
        text = stand.printed("fits", "--request", "cpu=2", "-q", "a", "--extender-url", url)
    assert asked == ["/fits?request=cpu%3D2&queue=a&namespace=default"]
    assert text.splitlines() == [
        "3 pods of cpu=2 in queue a would start together now.",
        "One more would not: cpu asked 2, free 1",
        "Node   Pods",
        "n0     1",
        "n1     2",
    ]


def test_programs_get_the_answer_as_it_is(stand: Stand) -> None:
    with answering(json.dumps(FOUND).encode()) as (url, _):
        asks = ["fits", "--request", "cpu=2", "--extender-url", url, "-o", "json"]
        assert json.loads(stand.printed(*asks)) == FOUND


def test_what_cannot_be_asked_says_why(stand: Stand) -> None:
    code, why = stand.refusal("fits", "--request", "cpu", "--extender-url", "http://127.0.0.1:1")
    assert (code, "invalid argument syntax" in why) == (2, True)
    code, why = stand.refusal("fits", "--request", "cpu=1")
    assert (code, "--extender-url" in why) == (2, True)
