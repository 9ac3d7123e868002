"""Durations of objects of ours: Go must be able to read them.

The schema takes any text. What Volcano's types cannot read, its webhook refuses; here it would be
a policy that acts at once, or never.
"""

from app.kit.durations import parse_duration
from app.wire.findings import Findings


def check_duration(value: object, path: str, findings: Findings) -> float | None:
    """The seconds of a duration, if it can be read; that it is a text the schema sees to."""
    if not isinstance(value, str):
        return None
    try:
        return parse_duration(value)
    except ValueError:
        findings.refuse(path, f'time: invalid duration "{value}"; write 90s or 1h30m')
        return None
