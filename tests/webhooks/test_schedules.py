"""Which texts are cron schedules."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.cronjob import cron
from app.webhooks.schedules import is_schedule

UTC = ZoneInfo("UTC")


def runs(text: str) -> bool:
    """Whether the controller can read it."""
    try:
        cron.parse(text, UTC)
    except cron.ScheduleError:
        return False
    return True


SCHEDULES = (
    "* * * * *",
    "0 9-17/2 1,15 jan-MAR Mon-fri",
    "59 23 31 12 6",
    "@hourly",
    "@every 1h30m",
    "@every .5s",
    "0 0 ? * 0",
    " 0  0 * * * ",
    "*/70 * * * *",
    "10/5 * * * *",
    "1,,2 * * * *",
)
OTHERS = (
    "",
    "* * * *",
    "* * * * * *",
    "60 * * * *",
    "0 24 * * *",
    "0 0 0 * *",
    "0 0 * 13 *",
    "0 0 * * 7",
    "5-1 * * * *",
    "*/0 * * * *",
    "*/-1 * * * *",
    "*-5 * * * *",
    "jan * * * *",
    ", * * * *",
    "@sometimes",
    "@every",
    "@every 1",
    "@every x",
    "* * L * *",
    "0 0 * * sun#1",
    "\u0661 * * * *",
)


@pytest.mark.parametrize("text", SCHEDULES)
def test_is_a_schedule(text: str) -> None:
    assert is_schedule(text)
    assert runs(text)


@pytest.mark.parametrize("text", OTHERS)
def test_is_none(text: str) -> None:
    assert not is_schedule(text)
    assert not runs(text)


def test_a_number_without_end_is_none() -> None:
    assert not is_schedule(f"{'1' * 5000} * * * *")


PIECE = st.text("0123456789*?/-,abcdefjmnostuw", max_size=6) | st.sampled_from(
    ["*", "*/5", "1-5", "jan", "mon-fri", "0", "7", "31"]
)


@given(st.lists(PIECE, min_size=4, max_size=6).map(" ".join))
def test_admission_and_the_controller_agree(text: str) -> None:
    assert is_schedule(text) == runs(text)


@given(st.text("@every 0123456789.hmsun", max_size=14) | st.text(max_size=12))
def test_they_agree_on_other_texts(text: str) -> None:
    if not cron.names_zone(text):
        assert is_schedule(text) == runs(text)
