"""Which texts are cron schedules: the language that the cron job controller reads.

Five fields of numbers, names, ranges, lists and steps, or a name such as ``@hourly``, or ``@every``
and a duration. A test holds this equal to the controller's own reading; only whether a text is a
schedule is asked here, never when.
"""

import re
from collections.abc import Mapping
from typing import Final

_MACROS: Final = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
)
_EVERY: Final = re.compile(r"@every (([0-9]+\.?[0-9]*|\.[0-9]+)(h|ms|m|s|us|ns))+")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
        start=1,
    )
}
_WEEKDAYS: Final = {
    name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])
}
_FIELDS: Final[tuple[tuple[int, int, Mapping[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _WEEKDAYS),
)
"""Lowest, highest and names of minutes, hours, days, months and weekdays."""


def is_schedule(text: str) -> bool:
    """Whether the controller can run it."""
    written = text.strip()
    if written.startswith("@"):
        return written in _MACROS or _EVERY.fullmatch(written) is not None
    fields = written.split()
    if len(fields) != len(_FIELDS):
        return False
    return all(map(_is_field, fields, *zip(*_FIELDS, strict=True)))


def _is_field(text: str, low: int, high: int, names: Mapping[str, int]) -> bool:
    parts = [part for part in text.split(",") if part]
    return bool(parts) and all(_is_part(part, low, high, names) for part in parts)


def _is_part(text: str, low: int, high: int, names: Mapping[str, int]) -> bool:
    between, slash, step = text.partition("/")
    if slash and (_number(step, {}) or 0) < 1:
        return False
    if between in {"*", "?"}:
        return True
    first, dash, last = between.partition("-")
    start, end = _number(first, names), _number(last if dash else first, names)
    return start is not None and end is not None and low <= start <= end <= high


def _number(text: str, names: Mapping[str, int]) -> int | None:
    if text.lower() in names:
        return names[text.lower()]
    return int(text) if _NUMBER.fullmatch(text) else None
