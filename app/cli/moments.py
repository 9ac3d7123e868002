"""Points in time in the zone of their reader, as Go writes them."""

from datetime import datetime

from app.cli.tables import NONE


def day(timestamp: object) -> str:
    """The day; empty where there is no moment."""
    at = _here(timestamp)
    return f"{at:%Y-%m-%d}" if at else ""


def moment(timestamp: object) -> str:
    """The whole time, with its zone."""
    at = _here(timestamp)
    return f"{at:%Y-%m-%d %H:%M:%S %z %Z}" if at else NONE


def _here(timestamp: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(timestamp)).astimezone()
    except (ValueError, OverflowError):
        return None
