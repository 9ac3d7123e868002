"""Cron schedules: what is one, and what it means, also when clocks are changed."""

import calendar
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import example, given
from hypothesis import strategies as st

from app.kit import cron
from app.kit.cron import Calendar, Schedule, ScheduleError
from tests.scale import examples

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "Pacific/Apia",
]


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def parse(text: str, zone: str = "UTC") -> Schedule:
    return cron.parse(text, cron.zone_of(zone))


def following(text: str, after: str, zone: str = "UTC", count: int = 1) -> list[str]:
    schedule, found, moment = parse(text, zone), [], at(after, zone)
    for _ in range(count):
        step = schedule.next(moment)
        assert step is not None
        moment = step
        found.append(datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2026-03-04T05:07:00"),
        ("*/15 * * * *", "2026-03-04T05:15:00"),
        ("7/20 * * * *", "2026-03-04T05:07:00"),
        ("0 9-17/4 * * *", "2026-03-04T09:00:00"),
        ("30 4 * * *", "2026-03-05T04:30:00"),
        ("0 0 1 * *", "2026-04-01T00:00:00"),
        ("0 0 * * mon", "2026-03-09T00:00:00"),
        ("0 0 * * MON-fri", "2026-03-05T00:00:00"),
        ("0 0 31 * *", "2026-03-31T00:00:00"),
        ("0 0 ? feb ?", "2027-02-01T00:00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00"),
        ("0 0 13 * 5", "2026-03-06T00:00:00"),
        ("0 0 */2 * 5", "2026-03-05T00:00:00"),
        ("0,30,45-47 5 4 3 *", "2026-03-04T05:30:00"),
        ("@hourly", "2026-03-04T06:00:00"),
        ("@daily", "2026-03-05T00:00:00"),
        ("@midnight", "2026-03-05T00:00:00"),
        ("@weekly", "2026-03-08T00:00:00"),
        ("@monthly", "2026-04-01T00:00:00"),
        ("@yearly", "2027-01-01T00:00:00"),
        ("@annually", "2027-01-01T00:00:00"),
        ("@every 1h30m", "2026-03-04T06:36:30"),
        ("@every 1.5m", "2026-03-04T05:08:00"),
        ("@every 10ms", "2026-03-04T05:06:31"),
        ("TZ=Asia/Tokyo 0 9 * * *", "2026-03-05T00:00:00"),
        ("CRON_TZ=Asia/Tokyo 0 20 * * *", "2026-03-04T11:00:00"),
    ],
)
def test_a_schedule_has_a_next_time(text: str, expected: str) -> None:
    assert following(text, "2026-03-04T05:06:30") == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 7",
        "5-1 * * * *",
        "*/0 * * * *",
        "-1 * * * *",
        "1- * * * *",
        "a * * * *",
        ", * * * *",
        "* * L * *",
        "* * * * mon#1",
        "@sometimes",
        "@every",
        "@every 5",
        "@every 3000000h",
        f"@every {'9' * 400}h",
        "@every 5 minutes",
        "TZ=Nowhere/City * * * * *",
        "TZ=UTC",
        "\u0661 * * * *",
    ],
)
def test_something_else_is_no_schedule(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse(text)


@pytest.mark.parametrize("name", ["Mars/Base", "../etc/passwd", "/etc/localtime", "a\0b", "Europe"])
def test_something_else_is_no_zone(name: str) -> None:
    with pytest.raises(ScheduleError):
        cron.zone_of(name)


def test_a_date_that_never_comes_has_no_next_time() -> None:
    assert parse("0 0 30 2 *").next(at("2026-01-01T00:00:00")) is None


def test_what_falls_into_the_skipped_hour_does_not_happen() -> None:
    # Berlin, 29 March 2026: 01:59:59 is followed by 03:00:00.
    assert following("30 2 * * *", "2026-03-28T12:00:00", "Europe/Berlin") == [
        "2026-03-30T00:30:00"
    ]
    assert following("0 * * * *", "2026-03-29T00:30:00", "Europe/Berlin", 3) == [
        "2026-03-29T00:00:00",
        "2026-03-29T01:00:00",
        "2026-03-29T02:00:00",
    ]


def test_what_falls_into_the_hour_that_comes_twice_happens_twice() -> None:
    # Berlin, 25 October 2026: 02:59:59 is followed by 02:00:00.
    assert following("30 2 * * *", "2026-10-24T12:00:00", "Europe/Berlin", 3) == [
        "2026-10-25T00:30:00",
        "2026-10-25T01:30:00",
        "2026-10-26T01:30:00",
    ]


_field = st.one_of(
    st.just("*"),
    st.integers(2, 17).map(lambda step: f"*/{step}"),
)


def _some(low: int, high: int, least: int = 1) -> st.SearchStrategy[str]:
    numbers = st.lists(st.integers(low, high), min_size=least, max_size=least + 3)
    return numbers.map(lambda values: ",".join(map(str, values)))


_expressions = st.tuples(
    _field | _some(0, 59),
    _field | _some(0, 23),
    st.just("*") | _some(1, 28),
    st.just("*") | _some(1, 12, least=3),
    st.just("*") | _some(0, 6),
).map(" ".join)
_moments = st.integers(int(at("1995-01-01T00:00:00")), int(at("2037-01-01T00:00:00")))
_CHANGES = [
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("America/St_Johns", "2009-11-01"),
    ("America/Sao_Paulo", "2017-10-15"),
    ("Pacific/Apia", "2011-12-30"),
    ("Africa/Casablanca", "2026-02-15"),
]


@examples(60)
@given(_expressions, _moments)
def test_in_utc_the_times_are_those_of_another_library(text: str, moment: int) -> None:
    found = parse(text).next(moment)

    other = croniter(text, moment).get_next(float)
    assert found == other or (found is None and other - moment > 5 * 365 * 86400)


def _shown(moment: float, zone: ZoneInfo, schedule: Calendar) -> bool:
    """Whether the clock on the wall says it is time."""
    wall = datetime.fromtimestamp(moment, zone)
    if wall.second or 60 * wall.hour + wall.minute not in schedule.minutes:
        return False
    in_month = wall.day in schedule.days.values
    in_week = (wall.weekday() + 1) % 7 in schedule.weekdays.values
    free = schedule.days.free or schedule.weekdays.free
    return wall.month in schedule.months.values and (
        (in_month and in_week) if free else (in_month or in_week)
    )


@examples(25)
@given(st.sampled_from(_CHANGES), st.integers(-1000, 200), _expressions)
@example(("America/St_Johns", "2009-11-01"), -30, "*/10 0,23 * * *")
@example(("Pacific/Apia", "2011-12-30"), 0, "0 0 30 * *")
def test_a_time_is_when_the_clock_on_the_wall_says_so(
    change: tuple[str, str], minutes: int, text: str
) -> None:
    zone = ZoneInfo(change[0])
    schedule = cron.parse(text, zone)
    assert isinstance(schedule, Calendar)
    start = calendar.timegm(datetime.fromisoformat(change[1]).timetuple()) + 60 * minutes
    end = start + int(timedelta(hours=16).total_seconds())
    expected = [m for m in range(start + 60, end + 60, 60) if _shown(m, zone, schedule)]

    found, step = [], schedule.next(start)
    while step is not None and step <= end:
        found.append(step)
        step = schedule.next(step)

    assert found == expected
    assert schedule.latest(after=start, until=end) == (expected[-1] if expected else None)


@pytest.mark.parametrize(
    ("passed", "latest"), [(59, None), (60, 60), (119, 60), (120, 120)], ids=str
)
def test_the_latest_of_every_minute(passed: int, latest: int | None) -> None:
    assert parse("@every 1m").latest(after=1000, until=1000 + passed) == (latest and 1000 + latest)


@examples(60)
@given(_expressions, st.sampled_from(ZONES), _moments, st.integers(0, 40 * 86400))
def test_the_latest_time_is_followed_by_none_that_has_come(
    text: str, zone: str, since: int, passed: int
) -> None:
    schedule, now = parse(text, zone), since + passed

    latest = schedule.latest(after=since, until=now)
    first = schedule.next(since)

    if latest is None:
        assert first is None or first > now
    else:
        assert first is not None
        assert since < first <= latest <= now
        after = schedule.next(latest)
        assert after is None or after > now
