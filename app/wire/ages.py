"""Ages as ``kubectl`` shows them: two figures at most, coarser with age."""

from __future__ import annotations

from datetime import datetime

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """``45s``, ``3m20s``, ``12m``, ``5h10m``, ``3d4h``, ``40d``, ``2y3d``."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    total = max(0, total)
    if total < 2 * _MINUTE:
        return f"{total}s"
    if total < 10 * _MINUTE:
        return _pair(total, (_MINUTE, "m"), (1, "s"))
    if total < 3 * _HOUR:
        return f"{total // _MINUTE}m"
    if total < 8 * _HOUR:
        return _pair(total, (_HOUR, "h"), (_MINUTE, "m"))
    if total < 2 * _DAY:
        return f"{total // _HOUR}h"
    if total < 8 * _DAY:
        return _pair(total, (_DAY, "d"), (_HOUR, "h"))
    if total < 2 * _YEAR:
        return f"{total // _DAY}d"
    return _pair(total, (_YEAR, "y"), (_DAY, "d"))


def _pair(total: int, large: tuple[int, str], small: tuple[int, str]) -> str:
    head = f"{total // large[0]}{large[1]}"
    tail = total % large[0] // small[0]
    return f"{head}{tail}{small[1]}" if tail else head


def age(timestamp: object, now: float) -> str:
    """How long before ``now`` (seconds since the epoch) the RFC 3339 ``timestamp`` is."""
    if not isinstance(timestamp, str) or not timestamp:
        return "<unknown>"
    return human_duration(now - datetime.fromisoformat(timestamp).timestamp())
