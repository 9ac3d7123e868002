"""Defaults in the help of processes.

An option that is not given is None there, which leaves the word to a variable; what holds without
either stands in the settings.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from pydantic_core import PydanticUndefined
from typer.core import TyperOption

from app.cli.switches import Process
from app.settings.process import ProcessSettings

_MARK = "(default: "
"""Help that has it already says it in words."""


def process(*settings: type[ProcessSettings]) -> type[Process]:
    """The class of a command whose options are these settings; the first that has one counts."""

    class Telling(Process):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            for option in self.params:
                if isinstance(option, TyperOption) and _MARK not in (option.help or ""):
                    option.help = f"{option.help or ''}{_told(option, settings)}"

    return Telling


def _told(option: TyperOption, settings: Sequence[type[ProcessSettings]]) -> str:
    name = option.opts[0].removeprefix("--").replace("-", "_")
    fields = (kind.model_fields[name] for kind in settings if name in kind.model_fields)
    field = next(fields, None)
    text = "" if field is None else _text(field.default)
    return f" {_MARK}{text})" if text else ""


def _text(value: object) -> str:
    """The value as a user would give it; empty where there is nothing to give."""
    if value is None or value is PydanticUndefined:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value.value if isinstance(value, Enum) else value)
