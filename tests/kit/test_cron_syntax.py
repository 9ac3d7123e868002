"""Which texts are cron schedules: those that Kubernetes' own parser takes."""

import pytest

from app.kit import cron

UTC = cron.zone_of("")

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
def test_these_are_schedules(text: str) -> None:
    assert cron.parse(text, UTC).next(0.0) is not None


@pytest.mark.parametrize("text", [*OTHERS, "9" * 5000 + " * * * *"])
def test_these_are_none(text: str) -> None:
    with pytest.raises(cron.ScheduleError):
        cron.parse(text, UTC)
