"""Flag syntax of plugin arguments.

As Go's flag package reads it, which Volcano uses: one or two dashes, ``--port=22`` or ``--port 22``
in two arguments, a switch alone is true, the last of equal flags counts. Volcano logs a bad flag
and drops it and all that follow; here each is a :class:`Fault`, and those that follow are read. A
flag that the plugin does not have is no reason to refuse a job: manifests carry those of other
releases along (``ssh: [--no-root]``). One thing is read as it is meant instead of as Go reads it: a
switch that is followed by ``true`` or ``false`` takes that value (Go sets the switch and stops
there).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.core.arguments import parse_bool

Value = bool | int | str

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class FlagType:
    """What a flag's value must be; ``read`` raises ``ValueError`` for any other text."""

    description: str
    example: str
    read: Callable[[str], Value]


@dataclass(frozen=True, slots=True)
class Fault:
    """One argument that is not used."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The flags that were given, those that cannot be used, and arguments that mean nothing."""

    values: Mapping[str, Value]
    faults: tuple[Fault, ...]
    ignored: tuple[Fault, ...]


def _port(text: str) -> int:
    return _within(text, 1, 65535)


def _count(text: str) -> int:
    return _within(text, 1, 2**31 - 1)


def _within(text: str, lowest: int, highest: int) -> int:
    number = int(text, 0)
    if not lowest <= number <= highest:
        raise ValueError(f"{number} is not from {lowest} to {highest}")
    return number


def _some(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text.strip()


def _mount_path(text: str) -> str:
    text = text.strip()
    if not text.startswith("/") or ":" in text:
        raise ValueError(f"{text} cannot be mounted on")
    return text.rstrip("/") or "/"


SWITCH = FlagType("true or false", "true|false", parse_bool)
PORT = FlagType("a port from 1 to 65535", "PORT", _port)
COUNT = FlagType("a whole number above 0", "NUMBER", _count)
NAME = FlagType("a name", "NAME", _some)
TEXT = FlagType("text", "TEXT", str)
MOUNT_PATH = FlagType("an absolute path without ':'", "PATH", _mount_path)


def one_of(*words: str) -> FlagType:
    """One of a few words."""

    def read(text: str) -> str:
        word = text.strip()
        if word not in words:
            raise ValueError(f"{word} is none of them")
        return word

    return FlagType(f"one of {', '.join(words)}", "|".join(words), read)


def parse(known: Mapping[str, FlagType], arguments: Sequence[str]) -> Parsed:
    """Read all of ``arguments``; those after a fault too."""
    values: dict[str, Value] = {}
    faults: list[Fault] = []
    ignored: list[Fault] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0).lstrip()
        if argument.rstrip() in {"", "--"}:
            continue
        if not _is_flag(argument):
            ignored.append(Fault(f"{_quoted(argument)} is not a flag", _spelling(known)))
            continue
        name, equals, given = argument.lstrip("-").partition("=")
        name = name.rstrip()
        value = given if equals else None
        kind = known.get(name)
        if kind is None:
            ignored.append(Fault(f"there is no flag --{_short(name)}", _spelling(known)))
            if value is None:
                _drop_value(rest)
            continue
        if value is None:
            value = _next_value(kind, rest)
        _read_into(values, faults, name=name, kind=kind, text=value)
    return Parsed(values, tuple(faults), tuple(ignored))


def _read_into(
    values: dict[str, Value], faults: list[Fault], *, name: str, kind: FlagType, text: str | None
) -> None:
    if text is None:
        faults.append(Fault(f"--{name} has no value", f"write --{name}={kind.example}"))
        return
    try:
        values[name] = kind.read(text)
    except ValueError:
        what = f"--{name}: {_quoted(text)} is not {kind.description}"
        faults.append(Fault(what, f"write --{name}={kind.example}"))


def _next_value(kind: FlagType, rest: list[str]) -> str | None:
    if kind is not SWITCH:
        return rest.pop(0) if rest else None
    if rest and rest[0].strip().lower() in {"true", "false"}:
        return rest.pop(0)
    return "true"


def _drop_value(rest: list[str]) -> None:
    """Skip the value of an unknown flag: it is not a fault of its own."""
    if rest and not _is_flag(rest[0]):
        rest.pop(0)


def _is_flag(argument: str) -> bool:
    name = argument.strip().lstrip("-")
    dashes = len(argument.strip()) - len(name)
    return dashes in {1, 2} and name != "" and not name.startswith("=")


def _quoted(text: str) -> str:
    """Enough to find the place; an argument may be a whole private key."""
    return repr(_short(text))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _spelling(known: Mapping[str, FlagType]) -> str:
    if not known:
        return "this plugin takes no flags"
    return "its flags are " + ", ".join(
        f"--{name}" if kind is SWITCH else f"--{name}={kind.example}"
        for name, kind in known.items()
    )
