"""Cron schedules and the moments they mean.

The language is that of the parser that Kubernetes uses: five fields of numbers, names, ranges,
lists and steps, ``?`` for ``*``, ``@daily`` and its like, ``@every 1h30m``, and a zone in front
(``TZ=Europe/Rome 0 6 * * *``). When both a day of the month and a day of the week are given, one of
them is enough.

A moment is on a schedule when the minute that a clock on the wall of its zone shows is. So what
falls into the hour that is skipped in spring does not happen, and what falls into the one that
comes twice in autumn happens twice.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_DAY: Final = timedelta(days=1)
_MINUTE_S: Final = 60
_LONGEST_NUMBER: Final = 9
_YEARS_AHEAD: Final = 5
"""A schedule without a moment in so many years has none."""

_MACROS: Final[Mapping[str, str]] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_LONGEST_SPAN_S: Final = 9e9
"""What Go's durations hold, some 290 years."""
_SPAN: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(h|ms|m|s|us|ns)")
_MONTHS: Final = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class ScheduleError(ValueError):
    """The text is no schedule."""


class Schedule(Protocol):
    """Moments, in seconds since the epoch."""

    def next(self, after: float) -> float | None:
        """The first one after a moment; None: there is none."""

    def latest(self, *, after: float, until: float) -> float | None:
        """The last one that is not later than ``until``."""


@dataclass(frozen=True, slots=True)
class Every:
    """One every so many seconds, counted from whatever went before."""

    seconds: int

    def next(self, after: float) -> float:
        """The first one after a moment."""
        return float(after // 1 + self.seconds)

    def latest(self, *, after: float, until: float) -> float | None:
        """The last one that is not later than ``until``."""
        passed = (until - after // 1) // self.seconds
        return float(after // 1 + passed * self.seconds) if passed >= 1 else None


@dataclass(frozen=True, slots=True)
class Field:
    """The values of one field; ``free``: it was left open by a star."""

    values: frozenset[int]
    free: bool


@dataclass(frozen=True, slots=True)
class Calendar:
    """Minutes of days. ``minutes`` are those of a day, ascending."""

    minutes: tuple[int, ...]
    days: Field
    months: Field
    weekdays: Field
    zone: ZoneInfo

    def next(self, after: float) -> float | None:
        """The first one after a moment; None: there is none."""
        start = self._date(after) - _DAY
        for ahead in range(_YEARS_AHEAD * 366):
            day = start + ahead * _DAY
            found = self._first(day, after)
            if found:
                # Where a clock is put back over midnight the next day begins before this one ends.
                return min([*found, *self._first(day + _DAY, after)])
        return None

    def latest(self, *, after: float, until: float) -> float | None:
        """The last one that is not later than ``until``."""
        day, first = self._date(until) + _DAY, self._date(after) - _DAY
        while day >= first:
            found = self._last(day, until)
            if found:
                latest = max([*found, *self._last(day - _DAY, until)])
                return latest if latest > after else None
            day -= _DAY
        return None

    def _first(self, day: date, after: float) -> Sequence[float]:
        """The first moment of ``day`` after one, if there is any."""
        if not self._has(day):
            return ()
        midnight = self._even_midnight(day)
        if midnight is None:
            moments = _moments(self, day)
            i = bisect_right(moments, after)
            return moments[i : i + 1]
        i = bisect_right(self.minutes, (after - midnight) / _MINUTE_S)
        return [midnight + m * _MINUTE_S for m in self.minutes[i : i + 1]]

    def _last(self, day: date, until: float) -> Sequence[float]:
        """The last moment of ``day`` that is not later, if there is any."""
        if not self._has(day):
            return ()
        midnight = self._even_midnight(day)
        if midnight is None:
            moments = _moments(self, day)
            return moments[: bisect_right(moments, until)][-1:]
        i = bisect_right(self.minutes, (until - midnight) / _MINUTE_S)
        return [midnight + m * _MINUTE_S for m in self.minutes[:i][-1:]]

    def _has(self, day: date) -> bool:
        if day.month not in self.months.values:
            return False
        in_month = day.day in self.days.values
        in_week = day.isoweekday() % 7 in self.weekdays.values
        if self.days.free or self.weekdays.free:
            return in_month and in_week
        return in_month or in_week

    def _even_midnight(self, day: date) -> float | None:
        """When ``day`` begins; None when the clocks are changed on it or close to it."""
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        around = {(noon + n * _DAY).astimezone(self.zone).utcoffset() for n in (-2, 0, 2)}
        if len(around) > 1:
            return None
        return datetime(day.year, day.month, day.day, tzinfo=self.zone).timestamp()

    def at(self, day: date, minute: int) -> Iterator[float]:
        """When the clock shows that minute of that day: never, once or twice."""
        shown = datetime(day.year, day.month, day.day, *divmod(minute, 60))  # noqa: DTZ001 - a clock
        for fold in (0, 1):
            at = shown.replace(tzinfo=self.zone, fold=fold).timestamp()
            if datetime.fromtimestamp(at, self.zone).replace(tzinfo=None) == shown:
                yield at

    def _date(self, at: float) -> date:
        return datetime.fromtimestamp(at, self.zone).date()


@lru_cache(maxsize=16)
def _moments(schedule: Calendar, day: date) -> list[float]:
    """All of a day on which, or close to which, clocks are changed."""
    return sorted({at for minute in schedule.minutes for at in schedule.at(day, minute)})


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name, empty for UTC; raises `ScheduleError`."""
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(f'unknown time zone "{name}"') from error


def names_zone(text: str) -> bool:
    """Whether a schedule says itself which zone it is in."""
    return text.startswith(("TZ=", "CRON_TZ="))


def parse(text: str, zone: ZoneInfo) -> Schedule:
    """The schedule that ``text`` means in ``zone``; raises `ScheduleError`."""
    if names_zone(text):
        front, _, text = text.partition(" ")
        zone = zone_of(front.partition("=")[2])
    text = text.strip()
    if text.startswith("@every "):
        return _every(text.removeprefix("@every "))
    if text.startswith("@"):
        if text not in _MACROS:
            raise ScheduleError(f'"{text}" is no known schedule')
        text = _MACROS[text]
    fields = text.split()
    if len(fields) != 5:
        raise ScheduleError(f"5 fields are expected, {len(fields)} found")
    minutes, hours = _field(fields[0], 0, 59), _field(fields[1], 0, 23)
    return Calendar(
        minutes=tuple(sorted(60 * h + m for h in hours.values for m in minutes.values)),
        days=_field(fields[2], 1, 31),
        months=_field(fields[3], 1, 12, {name: n for n, name in enumerate(_MONTHS, start=1)}),
        weekdays=_field(fields[4], 0, 6, {name: n for n, name in enumerate(_WEEKDAYS)}),
        zone=zone,
    )


def _every(span: str) -> Every:
    parts = _SPAN.findall(span)
    if not parts or "".join(number + unit for number, unit in parts) != span:
        raise ScheduleError(f'"{span}" is no duration')
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    if seconds > _LONGEST_SPAN_S:
        raise ScheduleError(f'"{span}" is too long')
    return Every(max(int(seconds), 1))


def _field(text: str, low: int, high: int, names: Mapping[str, int] | None = None) -> Field:
    values: set[int] = set()
    free = False
    for part in filter(None, text.split(",")):
        between, slash, step_text = part.partition("/")
        step = _number(step_text, {}) if slash else 1
        first, last, is_star = _range(between, low, high, names or {})
        if slash and "-" not in between:
            last = high
        if first < low or last > high:
            raise ScheduleError(f'"{part}" is not within {low}-{high}')
        if first > last:
            raise ScheduleError(f'"{part}" runs backwards')
        if step < 1:
            raise ScheduleError(f'"{part}" has a step of 0')
        values.update(range(first, last + 1, step))
        free = free or (is_star and step == 1)
    if not values:
        raise ScheduleError(f'"{text}" says nothing')
    return Field(frozenset(values), free)


def _range(text: str, low: int, high: int, names: Mapping[str, int]) -> tuple[int, int, bool]:
    if text in ("*", "?"):
        return low, high, True
    first, dash, last = text.partition("-")
    start = _number(first, names)
    return start, _number(last, names) if dash else start, False


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise ScheduleError(f'"{text}" is no number')
    return int(text)
