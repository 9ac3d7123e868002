"""Which starts are due: the latest that was missed, unless it is too old."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.cronjob.schedule import MANY, Starts, starts
from app.kit import cron
from tests.scale import examples

HOUR = 3600.0
EVERY_HOUR = cron.parse("0 * * * *", cron.zone_of(""))
DAY = 86400.0 * 20000


@pytest.mark.parametrize(
    ("since", "now", "deadline", "expected"),
    [
        pytest.param(0, 0.5, None, Starts(None, None, HOUR), id="nothing yet"),
        pytest.param(0, 1, None, Starts(HOUR, None, 2 * HOUR), id="on the second"),
        pytest.param(0, 3.5, None, Starts(3 * HOUR, None, 4 * HOUR), id="only the latest"),
        pytest.param(0, 3.5, 1800, Starts(3 * HOUR, None, 4 * HOUR), id="just in time"),
        pytest.param(0, 3.5, 1799, Starts(None, 3 * HOUR, 4 * HOUR), id="too late"),
        pytest.param(3, 3.5, None, Starts(None, None, 4 * HOUR), id="done already"),
        pytest.param(0, 100, None, Starts(100 * HOUR, None, 101 * HOUR), id="not many"),
        pytest.param(0, 101, None, Starts(101 * HOUR, None, 102 * HOUR, too_many=True), id="many"),
        pytest.param(
            0, 200, 100 * HOUR, Starts(200 * HOUR, None, 201 * HOUR), id="few within the deadline"
        ),
    ],
)
def test_the_latest_missed_start_is_due(
    since: float, now: float, deadline: float | None, expected: Starts
) -> None:
    found = starts(EVERY_HOUR, since=since * HOUR, now=now * HOUR, deadline_s=deadline)

    assert found == expected


def test_starts_of_an_interval_are_counted_from_the_last_one() -> None:
    schedule = cron.parse("@every 90s", cron.zone_of(""))

    assert starts(schedule, since=1000, now=1089, deadline_s=None) == Starts(None, None, 1090)
    assert starts(schedule, since=1000, now=1300, deadline_s=None) == Starts(1270, None, 1360)


@examples(60)
@given(
    st.sampled_from(["* * * * *", "*/7 3-9 * * *", "0 0 1 * *", "15 14 * * 2", "@every 3m7s"]),
    st.integers(0, 3 * 86400),
    st.none() | st.integers(0, 86400),
)
def test_a_start_is_within_its_deadline_and_none_is_left_between_it_and_the_next(
    text: str, passed: int, deadline: int | None
) -> None:
    schedule, now = cron.parse(text, cron.zone_of("Europe/Berlin")), DAY + passed
    found = starts(schedule, since=DAY, now=now, deadline_s=deadline)

    assert found.following is not None
    assert found.following > now
    for start in (found.due, found.missed):
        if start is not None:
            assert DAY < start <= now
            assert schedule.next(start) == found.following
    if found.due is not None:
        assert deadline is None or now - found.due <= deadline
        assert found.missed is None
    if found.missed is not None:
        assert deadline is not None
        assert now - found.missed > deadline
    if found.too_many:
        assert found.due is not None
        step = schedule.next(DAY)
        for _ in range(MANY):
            assert step is not None
            step = schedule.next(step)
        assert step is not None
        assert step <= now
