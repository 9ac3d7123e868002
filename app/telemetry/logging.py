"""Logging set-up: one line per record on standard error, as JSON or as text.

Messages are constants and what varies stands beside them (``extra={...}``), so a line of either
format is the message plus fields. Records of libraries take the same way.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import Final, Literal, TextIO

import msgspec

Format = Literal["json", "text"]

_STANDARD: Final = frozenset(
    vars(logging.LogRecord("", 0, "", 0, "", None, None)).keys()
    | {"message", "asctime", "taskName", "color_message"}
)


def configure(level: str, fmt: Format, stream: TextIO | None = None) -> None:
    """Send all records of at least ``level`` to ``stream`` (standard error), replacing handlers."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter() if fmt == "json" else TextFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


def fields(record: logging.LogRecord) -> dict[str, object]:
    """What the caller put beside the message."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def timestamp(record: logging.LogRecord) -> str:
    """When the record was made, in UTC with milliseconds."""
    made = datetime.fromtimestamp(record.created, tz=UTC)
    return made.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON; ``extra`` fields never replace the standard ones."""
        line: dict[str, object] = {
            "time": timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update((key, value) for key, value in fields(record).items() if key not in line)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class TextFormatter(logging.Formatter):
    """``time LEVEL logger message key=value …``, values with blanks quoted."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text; the traceback of an exception follows on further lines."""
        parts = [timestamp(record), record.levelname, record.name, record.getMessage()]
        parts += [f"{key}={_quoted(value)}" for key, value in fields(record).items()]
        line = " ".join(parts)
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


def _quoted(value: object) -> str:
    text = str(value)
    plain = text and not any(c.isspace() or c in '"=' for c in text)
    return text if plain else msgspec.json.encode(text).decode()
