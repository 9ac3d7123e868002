"""Durations as Go writes them (``1h30m``, ``1.5s``, ``300ms``), in seconds."""

import re

_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_BELOW_A_SECOND = ("ms", "\u00b5s")
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_WHOLE = re.compile(rf"([+-]?)((?:{_PART.pattern})+|0)")

_LONGEST_S = ((1 << 63) - 1) * 1e-9
"""Go counts nanoseconds, in 64 bits."""


def parse_duration(text: str) -> float:
    """Seconds in ``text``; ``ValueError`` where it is not a duration with units."""
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        raise ValueError(f"{text!r} is not a duration such as 1h30m")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(whole[2]))
    if seconds > _LONGEST_S:
        raise ValueError(f"{text!r} is longer than a duration can be")
    return -seconds if whole[1] == "-" else seconds


def format_duration(seconds: float) -> str:
    """``seconds`` as Go writes them: ``1h0m0s``, ``-1.5s``, ``20ms``, ``0s``."""
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if 0 < seconds < 1:
        unit = next((unit for unit in _BELOW_A_SECOND if seconds >= _SECONDS[unit]), "ns")
        return f"{seconds / _SECONDS[unit]:g}{unit}"
    minutes, last = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours}h{minutes}m{last:g}s"
    return f"{minutes}m{last:g}s" if minutes else f"{last:g}s"
