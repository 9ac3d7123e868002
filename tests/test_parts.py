"""The wall time of `make test`, part by part."""

from __future__ import annotations

from tests import parts


def test_a_part_lasts_until_the_next_one_begins_and_the_last_one_until_now() -> None:
    begun = ["1000 lint and format", "1007 unit tests", "1421 end to end"]
    assert parts.lines(begun, 2126) == [
        "  0:07 lint and format",
        "  6:54 unit tests",
        " 11:45 end to end",
        " 18:46 all",
    ]
