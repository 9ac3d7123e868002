"""Objects as lines of columns, byte for byte as Volcano's command line pads them.

Pure: objects in, text out. Nothing is ever cut off and nothing coloured: what is wider than its
column makes the column wider.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.wire.unstructured import Object

NONE = "<none>"
_APART = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A title, what stands below it, and how wide it is at least."""

    title: str
    cell: Callable[[Object], Any]
    minimum: int
    gap: int = 1
    """Blanks after the longest value."""


def fitted(
    title: str, cell: Callable[[Object], Any], *, gap: int, title_gap: int | None = None
) -> Column:
    """A column as wide as its longest text and ``gap`` blanks."""
    return Column(title, cell, len(title) + (gap if title_gap is None else title_gap), gap)


def extended(columns: Sequence[Column], more: Sequence[Column]) -> tuple[Column, ...]:
    """``more`` columns to the right, apart from a last one that nothing was to follow."""
    last = columns[-1]
    apart = replace(last, minimum=max(last.minimum, len(last.title) + _APART))
    return (*columns[:-1], apart, *more)


def table(columns: Sequence[Column], items: Iterable[Object]) -> str:
    """A line of titles and a line per object."""
    return "".join(line + "\n" for line in GrowingTable().lines(columns, items))


class GrowingTable:
    """A table whose rows come one after the other: its columns only ever grow wider."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def lines(self, columns: Sequence[Column], items: Iterable[Object]) -> list[str]:
        """The line of titles, and one for each object."""
        rows = [[_text(column.cell(item)) for column in columns] for item in items]
        before = self._widths or [0] * len(columns)
        self._widths = [
            max(before[i], column.minimum, *(len(row[i]) + column.gap for row in rows), 0)
            for i, column in enumerate(columns)
        ]
        lines = [[column.title for column in columns], *rows]
        return [
            "".join(cell.ljust(width) for cell, width in zip(line, self._widths, strict=True))
            for line in lines
        ]


def resources(amounts: Any) -> str:
    """A resource list on one line: ``cpu=4,memory=8Gi``."""
    listed = sorted((amounts or {}).items())
    return ",".join(f"{name}={amount}" for name, amount in listed) or NONE


def _text(value: Any) -> str:
    return "" if value is None else str(value)
