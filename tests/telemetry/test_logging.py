"""Lines that the two formats write."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from app.telemetry.logging import Format, configure


@pytest.fixture(autouse=True)
def root_logger_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in list(root.handlers):
        root.removeHandler(handler)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)


def written(fmt: Format, level: str = "info") -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    configure(level, fmt, stream)
    return logging.getLogger("app.test"), stream


def test_a_json_line_carries_message_and_fields() -> None:
    log, stream = written("json")
    log.info("gang placed", extra={"gang": "ns/g", "members": 3})
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "app.test",
        "message": "gang placed",
        "gang": "ns/g",
        "members": 3,
    }


def test_a_json_line_writes_what_json_has_no_form_for_as_text() -> None:
    log, stream = written("json")
    log.info("odd", extra={"cause": ValueError("no")})
    assert json.loads(stream.getvalue())["cause"] == "no"


def test_a_field_never_hides_the_message_or_its_origin() -> None:
    log, stream = written("json")
    log.info("kept", extra={"level": "mine", "time": "mine"})
    line = json.loads(stream.getvalue())
    assert line["level"] == "info"
    assert line["time"] != "mine"


@pytest.mark.parametrize("fmt", ["json", "text"])
def test_an_exception_keeps_its_traceback(fmt: Format) -> None:
    log, stream = written(fmt)
    try:
        raise KeyError("gone")
    except KeyError:
        log.exception("failed")
    assert "Traceback" in stream.getvalue()
    assert "KeyError: 'gone'" in stream.getvalue()


def test_a_text_line_quotes_values_with_blanks() -> None:
    log, stream = written("text")
    log.info("said", extra={"who": "a b", "n": 1, "empty": ""})
    assert stream.getvalue().rstrip("\n").endswith('INFO app.test said who="a b" n=1 empty=""')


def test_records_below_the_level_are_not_written() -> None:
    log, stream = written("text", level="warning")
    log.info("hidden")
    assert stream.getvalue() == ""


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="LOUD"):
        configure("loud", "text", io.StringIO())
