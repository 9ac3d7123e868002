"""The options of commands that start a process, made of the settings.

A setting has one flag of its name, and is described where it is declared
(:func:`~app.settings.process.option`). An option that is not given is None here, which leaves the
word to a variable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Final, get_args

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from app.cli.processes import Switch
from app.cli.versions import Version
from app.settings.process import FLAGS, TOLD, ProcessSettings

Settings = Sequence[type[ProcessSettings]]
"""The first one that has a setting tells of it."""
_ANNOTATED: Final[Any] = Annotated
"""``Annotated`` for types that are known only at run time."""
_FIRST: Final = ("kubeconfig", "scheduler_conf", "scheduler_name")
_LAST: Final = tuple(name for name in ProcessSettings.model_fields if name not in _FIRST)


@dataclass(frozen=True, slots=True)
class Option:
    """The option of the setting ``name``."""

    name: str
    field: FieldInfo

    @property
    def flags(self) -> tuple[str, ...]:
        """The flag of the setting, and Volcano's name for it where that is another one."""
        own = f"--{self.name.replace('_', '-')}"
        return (own, *self._noted(FLAGS, ()))

    @property
    def default(self) -> str:
        """What holds without the option, as a user would give it or in words; empty: nothing."""
        return str(self._noted(TOLD, "")) or _text(self.field.default)

    @property
    def in_words(self) -> bool:
        """Whether the default is told in words."""
        return bool(self._noted(TOLD, ""))

    @property
    def text(self) -> str:
        """What the option does."""
        return self.field.description or ""

    @property
    def help(self) -> str:
        """What the option does, and its default."""
        told = f" (default: {self.default})" if self.default else ""
        return f"{self.text}.{told}"

    def parameter(self) -> Parameter:
        """The parameter of a command that takes the option."""
        given = _kind(self.field.annotation) | None
        option = typer.Option(*self.flags, help=self.help)
        return Parameter(
            self.name, Parameter.KEYWORD_ONLY, default=None, annotation=_ANNOTATED[given, option]
        )

    def _noted(self, key: str, otherwise: Any) -> Any:
        noted = self.field.json_schema_extra
        return noted.get(key, otherwise) if isinstance(noted, dict) else otherwise


def options_of(settings: Settings, only: Sequence[str] = ()) -> list[Option]:
    """The options of a command in the order of its help; ``only`` these settings, or all."""
    found: dict[str, FieldInfo] = {}
    for kind in reversed(settings):
        found |= kind.model_fields
    names = [name for name in found if name not in _LAST and name not in _FIRST]
    ordered = [name for name in (*_FIRST, *names, *_LAST) if name in found]
    return [Option(name, found[name]) for name in only or ordered]


def with_options(
    run: Callable[[dict[str, Any]], None], options: Sequence[Option]
) -> Callable[..., None]:
    """A command with these options; ``run`` gets those that were given, by their names."""

    def command(**given: Any) -> None:
        run({name: value for name, value in given.items() if value is not None})

    parameters = [*(option.parameter() for option in options), _version()]
    command.__doc__ = run.__doc__
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__dict__["__signature__"] = Signature(parameters)
    return command


def _version() -> Parameter:
    return Parameter("version", Parameter.KEYWORD_ONLY, default=None, annotation=Version)


def _kind(annotation: Any) -> Any:
    """What the command line takes for a setting; the settings judge the value."""
    kinds = {_bare(each) for each in get_args(annotation) or (annotation,)} - {type(None)}
    if kinds == {bool}:
        return Switch
    known = [each for each in kinds if each in (int, float, Path) or _is_enum(each)]
    return known[0] if len(kinds) == len(known) == 1 else str


def _bare(annotation: Any) -> Any:
    """The type without what is noted beside it."""
    return get_args(annotation)[0] if get_args(annotation) else annotation


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _text(value: object) -> str:
    """The value as a user would give it; empty where there is nothing to give."""
    if value is None or value is PydanticUndefined:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value.value if isinstance(value, Enum) else value)
