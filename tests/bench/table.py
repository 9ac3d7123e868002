"""Figures of a benchmark as rows of a table, with those that are judged."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; judged when there is a limit."""

    what: str
    value: str
    limit: str = ""
    holds: bool = True


def judged(what: str, value: float, limit: float, unit: str) -> Row:
    holds = not math.isnan(value) and value < limit
    return Row(what, f"{value:.3g} {unit}", f"< {limit:g} {unit}", holds)


def table(rows: list[Row]) -> str:
    cells = [("", "measured", "limit", ""), ("-" * 3,) * 4]
    cells += [
        (row.what, row.value, row.limit, ("holds" if row.holds else "FAILS") if row.limit else "")
        for row in rows
    ]
    widths = [max(len(cell[column]) for cell in cells) for column in range(4)]
    return "\n".join(
        "| "
        + " | ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True))
        + " |"
        for cell in cells
    )
