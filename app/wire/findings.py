"""What the rules found: refusals and warnings, each with the field it is about.

A rule adds what it finds and goes on, so one answer names everything that is wrong with an object.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from app.kit.shortening import shortened

MOST_WARNINGS: Final = 10
"""The API server passes on some four thousand characters of them."""

MOST_REFUSALS: Final = 30
"""Of one object; the rest is counted."""
LONGEST: Final = 1_000
"""Characters of one finding, which may quote a value of any length."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and where: ``spec.tasks[1].name``."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(slots=True)
class Findings:
    """Everything found about one object: ``errors`` refuse it, ``warnings`` are only told."""

    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def refuse(self, path: str, message: str) -> None:
        """The object may not be stored as it is."""
        self.errors.append(Finding(path, message))

    def warn(self, path: str, message: str) -> None:
        """Note that the object is allowed, but will hardly do what is wanted."""
        self.warnings.append(Finding(path, message))

    def message(self) -> str:
        """The first refusals in one line; clients match fragments, which may end in a semicolon."""
        lines = [f"{_line(error)};" for error in self.errors[:MOST_REFUSALS]]
        more = len(self.errors) - len(lines)
        return " ".join([*lines, f"and {more} more;"] if more else lines)

    def told(self) -> tuple[str, ...]:
        """The first warnings, a line each."""
        lines = tuple(map(_line, self.warnings[:MOST_WARNINGS]))
        more = len(self.warnings) - len(lines)
        return (*lines, f"and {more} more warnings") if more else lines


def _line(finding: Finding) -> str:
    return _CONTROL.sub(" ", shortened(str(finding), LONGEST))


def at(path: str, *steps: str | int) -> str:
    """``path`` and what is inside: ``at("spec", "tasks", 0)`` is ``spec.tasks[0]``."""
    for step in steps:
        path = f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}"
    return path


def invalid(value: object, why: str) -> str:
    """The API server's words for a value that will not do."""
    said = "null" if value is None else f'"{value}"'
    return f"Invalid value: {said}: {why}"


def listed(values: Sequence[object]) -> str:
    """Values as Volcano prints a list."""
    return f"[{' '.join(map(str, values))}]"
