"""``pumice audit`` and ``pumice why-evicted``: pages, values and lines."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.stand import Stand, answering

COVERAGE = {
    "outlives_process": True,
    "folder": "/audit",
    "since": 1_700_000_000.0,
    "dropped": 0,
    "problems": [],
}
DECISION = {
    "number": 1,
    "at": 1_700_000_001.0,
    "kind": "place",
    "group": "default/j-uid",
    "job": "j",
    "queue": "q",
    "pod": "j-0",
    "uid": "u",
    "node": "n1",
    "stimulus": "cycle",
    "cause": "",
    "text": "",
    "generation": 7,
    "preemptor": "",
    "rule": "",
    "plan": "",
    "story": [],
    "refusal": None,
}
EVICTION = DECISION | {
    "kind": "evict",
    "preemptor": "default/high",
    "rule": "priority",
    "text": "preempt",
    "cause": "decided",
    "plan": "p@1",
}


def trail(*decisions: dict[str, Any], **coverage: Any) -> bytes:
    return json.dumps({"decisions": decisions, "coverage": COVERAGE | coverage}).encode()


def evictions(**more: Any) -> bytes:
    accepted = EVICTION | {"cause": "evicted", "at": 1_700_000_002.0}
    found = {"pod": "default/j-0", "decisions": [EVICTION, accepted], "coverage": COVERAGE}
    return json.dumps(found | {"certificate": {"victims": ["u"]}} | more).encode()


def test_decisions_are_told_with_what_they_are_of(stand: Stand) -> None:
    with answering(trail(DECISION, EVICTION)) as (url, asked):
        text = stand.printed("audit", "j", "--kind", "place", "--extender-url", url)
    assert asked == ["/audit?kind=place&limit=100&job=default%2Fj"]
    titles, placed, evicted, coverage = text.splitlines()
    assert titles.split() == [
        *("Time", "Decision", "Group", "Pod", "Node", "Queue", "By", "Snapshot", "Why")
    ]
    assert placed.split() == [
        *("2023-11-14T22:13:21Z", "place", "default/j-uid", "j-0", "n1", "q", "cycle", "7")
    ]
    assert evicted.endswith("decided; preempt; for default/high, priority allows it")
    assert coverage == "Complete since 2023-11-14T22:13:20Z, kept in /audit."


def test_an_answer_that_is_not_complete_says_so(stand: Stand) -> None:
    answer = trail(outlives_process=False, folder="", dropped=3, problems=["/audit: no room"])
    with answering(answer) as (url, _):
        text = stand.printed("audit", "j", "--extender-url", url)
    assert text.splitlines() == [
        "No decisions found.",
        "Warning: /audit: no room",
        "Warning: 3 decisions were not kept, as too many came at once",
        "Since the extender began (2023-11-14T22:13:20Z), as no --audit-dir is set.",
    ]


def test_all_decisions_are_exported_a_line_each(stand: Stand) -> None:
    lines = b'{"number":1}\n{"number":2}\n'
    with answering(lines) as (url, asked):
        text = stand.printed("audit", "-o", "ndjson", "--extender-url", url)
    assert text.encode() == lines
    assert asked == ["/audit?limit=100&form=ndjson"]
    with answering(b"kind: x is none of admit\n", status=400) as (url, _):
        done = stand.refusal("audit", "-o", "ndjson", "--extender-url", url)
    assert done == (2, "Failed to audit decisions: kind: x is none of admit\n")
    code, why = stand.refusal("audit", "-o", "ndjson", "--extender-url", "http://127.0.0.1:1")
    assert (code, "does not tell" in why) == (5, True)


def test_a_time_is_one_or_a_while_ago(stand: Stand) -> None:
    with answering(trail()) as (url, asked):
        stand.printed("audit", "--since", "2023-11-14T22:13:20Z", "--extender-url", url)
        stand.printed("audit", "--since", "2h", "--extender-url", url)
    assert asked[0] == "/audit?since=1700000000.000&limit=100"
    assert float(asked[1].partition("since=")[2].partition("&")[0]) > 1_700_000_000
    code, why = stand.refusal("audit", "--since", "soon", "--extender-url", url)
    assert (code, "neither a duration such as 2h nor a time" in why) == (2, True)


def test_an_eviction_is_told_with_who_which_rule_and_when(stand: Stand) -> None:
    with answering(evictions()) as (url, asked):
        text = stand.printed("why-evicted", "j-0", "--extender-url", url)
    assert asked == ["/audit/evictions/default/j-0"]
    assert text.splitlines() == [
        "default/j-0 was evicted from n1 for default/high by preempt",
        "  it was of group default/j-uid in queue q",
        "  rule: the plugin priority allows it",
        "  decided on snapshot 7",
        "  2023-11-14T22:13:21Z: it was decided to evict it",
        "  2023-11-14T22:13:22Z: the API server accepted the eviction",
        "  certificate: of 1 victim (--certificate prints it)",
        "Complete since 2023-11-14T22:13:20Z, kept in /audit.",
    ]


def test_the_certificate_is_printed_alone(stand: Stand) -> None:
    with answering(evictions()) as (url, _):
        text = stand.printed("why-evicted", "j-0", "--certificate", "--extender-url", url)
    assert json.loads(text) == {"victims": ["u"]}
    with answering(evictions(certificate=None)) as (url, _):
        shown = stand.printed("why-evicted", "j-0", "--extender-url", url)
        code, why = stand.refusal("why-evicted", "j-0", "--certificate", "--extender-url", url)
    assert "  certificate: none is kept" in shown.splitlines()
    assert (code, "no certificate of that eviction is kept" in why) == (3, True)


def test_a_pod_of_which_no_eviction_is_kept(stand: Stand) -> None:
    with answering(b"no eviction of pod default/j-0 is kept\n", status=404) as (url, _):
        done = stand.refusal("why-evicted", "j-0", "--extender-url", url)
    assert done == (
        3,
        "Failed to tell why j-0 was evicted: no eviction of pod default/j-0 is kept\n",
    )


def test_programs_get_the_answers_as_they_are(stand: Stand) -> None:
    with answering(trail(DECISION)) as (url, _):
        text = stand.printed("audit", "-o", "json", "--extender-url", url)
    assert json.loads(text) == json.loads(trail(DECISION))
    with answering(evictions()) as (url, _):
        text = stand.printed("why-evicted", "j-0", "-o", "json", "--extender-url", url)
    assert json.loads(text) == json.loads(evictions())
