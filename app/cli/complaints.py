"""What is wrong with the value of an option, in words of our own.

Both typer and the settings of processes have their values read by pydantic, which speaks of inputs
and of errors of values.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails

_Say = Callable[[Any, Mapping[str, Any]], str]

_SAID: Final[Mapping[str, _Say]] = {
    **dict.fromkeys(
        ("int_parsing", "int_type", "int_from_float"), lambda given, _: f"{given!r} is no integer"
    ),
    "int_parsing_size": lambda given, _: f"{given!r} is too large",
    **dict.fromkeys(("float_parsing", "float_type"), lambda given, _: f"{given!r} is no number"),
    "finite_number": lambda given, _: f"{given!r} is no finite number",
    **dict.fromkeys(
        ("bool_parsing", "bool_type"), lambda given, _: f"{given!r} is neither true nor false"
    ),
    "greater_than": lambda given, of: f"{given} is not greater than {of['gt']:g}",
    "greater_than_equal": lambda given, of: f"{given} is less than {of['ge']:g}",
    "less_than": lambda given, of: f"{given} is not less than {of['lt']:g}",
    "less_than_equal": lambda given, of: f"{given} is greater than {of['le']:g}",
    **dict.fromkeys(
        ("literal_error", "enum"), lambda given, of: f"{given!r} is not {of['expected']}"
    ),
}


def said(error: ErrorDetails) -> str:
    """The complaint of pydantic, said again."""
    say = _SAID.get(error["type"])
    if say is not None:
        return say(error["input"], error.get("ctx") or {})
    return error["msg"].removeprefix("Value error, ")


def retold(error: typer.BadParameter) -> typer.BadParameter:
    """What typer complains of; where pydantic did, in these words."""
    if isinstance(error.__cause__, ValidationError):
        error.message = said(error.__cause__.errors()[0])
    return error
