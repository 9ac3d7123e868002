"""Points in time are shown where the user is."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from app.cli import job_rows
from app.cli.moments import day, moment
from tests.cli.stand import job

LATE = "2023-11-14T22:13:20Z"


@pytest.fixture(params=["UTC", "Asia/Shanghai", "America/New_York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name: str = request.param
    monkeypatch.setenv("TZ", name)
    time.tzset()
    yield name
    monkeypatch.undo()
    time.tzset()


def test_a_moment_names_its_zone(zone: str) -> None:
    assert moment(LATE) == {
        "UTC": "2023-11-14 22:13:20 +0000 UTC",
        "Asia/Shanghai": "2023-11-15 06:13:20 +0800 CST",
        "America/New_York": "2023-11-14 17:13:20 -0500 EST",
    }.get(zone)


def test_a_job_was_made_on_a_day_of_the_user_s(zone: str) -> None:
    item = job("a")
    item["metadata"]["creationTimestamp"] = LATE
    shown = "2023-11-15" if zone == "Asia/Shanghai" else "2023-11-14"
    assert day(LATE) == shown
    assert job_rows.rows([item]).splitlines()[1].split()[1] == shown


@pytest.mark.parametrize("nothing", [None, "", "yesterday", 7])
def test_what_is_no_moment_is_nothing(nothing: object) -> None:
    assert (day(nothing), moment(nothing)) == ("", "<none>")
