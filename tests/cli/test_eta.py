"""``pumice eta``, and the column of it in ``pumice job list -o wide``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.cli.eta import in_short
from tests.cli.stand import Stand, answering, group, job

NOW = 1_700_000_000.0
FOUND: dict[str, Any] = {
    "group": "default/g",
    "job": "default/g",
    "queue": "a",
    "outcome": "later",
    "text": "It starts in 12m to 31m on n1, after the end of default/first.",
    "now": NOW,
    "p50": NOW + 720,
    "p90": NOW + 1860,
    "beyond": None,
    "ahead": 2,
    "change": {
        "at": NOW - 60,
        "before": NOW + 300,
        "after": NOW + 720,
        "kind": "came-before",
        "text": "default/urgent comes before it",
    },
    "error": {"answers": 40, "median_s": 35.0, "median_share": 0.12, "inside_p90": 0.925},
}


def test_it_says_when_where_and_how_good_earlier_answers_were(stand: Stand) -> None:
    stand.create(group("g"))
    with answering(json.dumps(FOUND).encode()) as (url, asked):
        text = stand.printed("eta", "g", "--extender-url", url)
    assert asked == ["/eta/default/g"]
    assert text.splitlines() == [
        "default/g: It starts in 12m to 31m on n1, after the end of default/first.",
        "Half of the times it starts by 2023-11-14T22:25:20Z.",
        "Nine of ten times it starts by 2023-11-14T22:44:20Z.",
        "2 groups start before it.",
        "Until 2023-11-14T22:12:20Z that was 2023-11-14T22:18:20Z: default/urgent comes before it.",
        "The last 40 answers in queue a: 35s off in the median, 12 % of the wait; 92 % started by "
        "the later time.",
    ]


def test_the_whole_answer_is_json(stand: Stand) -> None:
    stand.create(group("g"))
    with answering(json.dumps(FOUND).encode()) as (url, _):
        text = stand.printed("eta", "g", "-o", "json", "--extender-url", url)
    assert json.loads(text) == FOUND


def test_a_name_that_is_none_says_so(stand: Stand) -> None:
    code, why = stand.refusal("eta", "none", "--extender-url", "http://127.0.0.1:1")
    assert (code, "there is no" in why) == (3, True)


def test_wide_lists_of_jobs_tell_the_etas_of_those_that_wait(stand: Stand) -> None:
    stand.create(job("g"), job("runs"))
    with answering(json.dumps({"etas": [FOUND]}).encode()) as (url, asked):
        text = stand.printed("job", "list", "-o", "wide", "--extender-url", url)
    head, *rows = text.splitlines()
    assert asked == ["/eta/default"]
    assert head.split()[-1] == "ETA"
    assert {row.split()[0]: row.split()[-1] for row in rows} == {"g": "12m-31m", "runs": "<none>"}


def test_without_an_extender_there_is_no_such_column(stand: Stand) -> None:
    stand.create(job("g"))
    assert "ETA" not in stand.printed("job", "list", "-o", "wide")
    done = stand.run("job", "list", "-o", "wide", "--extender-url", "http://127.0.0.1:1")
    assert (done.code, "ETA" in done.out) == (0, False)
    assert "the column ETA is left out" in done.err


@pytest.mark.parametrize(
    ("said", "cell"),
    [
        ({}, "12m-31m"),
        ({"p90": NOW + 720}, "12m"),
        ({"p90": None}, ">=12m"),
        ({"outcome": "now", "p50": NOW, "p90": NOW}, "now"),
        ({"outcome": "unknown", "p50": None, "p90": None}, "unknown"),
        ({"outcome": "never", "p50": None, "p90": None}, "never"),
        ({"outcome": "beyond", "p50": None, "p90": None, "beyond": NOW + 30}, ">30s"),
    ],
)
def test_a_cell_is_a_word_or_two_durations(said: dict[str, Any], cell: str) -> None:
    assert in_short({**FOUND, **said}) == cell
