"""``pumice share``: what queues deserve now, hold and ask for, as a tree."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.stand import Stand, answering


def queue(parent: str = "", share: float | None = 0.5, **amounts: Any) -> dict[str, Any]:
    return {"parent": parent, "share": share, "entitled": {"cpu": 4000}, **amounts}


FOUND = {
    "root": queue(share=None, entitled=None),
    "b": queue(allocated={"cpu": 2000, "pods": 2}, request={"cpu": 6000}, groups=3),
    "a": queue(),
    "below": queue("a", share=1.5),
    "lost": queue("gone"),
    "x": queue("y"),
    "y": queue("x"),
}


def test_queues_stand_below_their_parents_with_their_numbers(stand: Stand) -> None:
    with answering(json.dumps(FOUND).encode()) as (url, asked):
        lines = stand.printed("share", "--extender-url", url).splitlines()
    assert asked == ["/debug/queues"]
    assert lines[0].split() == ["Queue", "Share", "Deserves", "Holds", "Asks", "Groups"]
    assert [line.split()[0] for line in lines[1:]] == ["lost", "root", "a", "below", "b", "x", "y"]
    assert lines[4].startswith("    below   [##########] 150%")
    assert lines[5].split()[1:] == ["[#####.....]", "50%", "cpu=4", "cpu=2", "cpu=6", "3"]


def test_programs_get_the_amounts_in_base_units(stand: Stand) -> None:
    with answering(json.dumps(FOUND).encode()) as (url, _):
        shown = json.loads(stand.printed("share", "--extender-url", url, "-o", "json"))
    [b] = [each for each in shown if each["queue"] == "b"]
    assert (b["holds"], b["asks"]["cpu"], b["depth"]) == ({"cpu": 2000, "pods": 2}, 6000, 1)


def test_a_chain_of_thousands_of_queues_is_shown(stand: Stand) -> None:
    chain = {"root": queue()} | {f"q{i}": queue(f"q{i - 1}" if i else "root") for i in range(5_000)}
    with answering(json.dumps(chain).encode()) as (url, _):
        shown = json.loads(stand.printed("share", "--extender-url", url, "-o", "json"))
    assert [each["depth"] for each in shown] == list(range(5_001))
