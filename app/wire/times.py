"""RFC 3339 text to seconds since the epoch, and back."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from app.wire.errors import DecodeError

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A timestamp inside a decoded struct."""


def epoch(moment: datetime | None) -> float:
    """Seconds since the epoch; 0 when there is none."""
    return moment.timestamp() if moment is not None else 0.0


def parse(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 text; raises `DecodeError`."""
    try:
        return msgspec.convert(text, Moment).timestamp()
    except msgspec.ValidationError as error:
        raise DecodeError("", f'"{text}" is not a time') from error


def seconds(at: float) -> str:
    """A Kubernetes ``Time``: whole seconds, the rest cut off."""
    return datetime.fromtimestamp(int(at // 1), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def microseconds(at: float) -> str:
    """A Kubernetes ``MicroTime``."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
