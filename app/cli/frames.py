"""Lines of views that fill the terminal: never wider than it, and never orders to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.text import Text

APART: Final = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first lines: what is shown, of which cluster, when, and what is wrong at the moment."""

    command: str
    host: str
    time: str
    """The time of the day, as it is said."""
    every: str = ""
    """How often the view is drawn, as it is said; empty: whenever something changes."""
    trouble: str = ""


def head_lines(head: Head, width: int) -> list[Text]:
    """One line, and a second where there is trouble."""
    left = f"{head.command}{APART}{head.host}"
    every = f"every {head.every}{APART}" if head.every else ""
    right = f"{head.time}{APART}{every}q ends"
    gap = width - cell_len(left) - cell_len(right)
    text = f"{left}{' ' * gap}{right}" if gap >= len(APART) else f"{head.time}{APART}q ends"
    lines = [line(text, width, style="reverse")]
    if head.trouble:
        told = f"{head.trouble}; what is shown may be old"
        lines.append(line(told, width, style="bold red"))
    return lines


def line(text: str, width: int, *, style: str = "") -> Text:
    """The text on one line of at most so many columns."""
    drawn = Text(printable(text), style=style, no_wrap=True, overflow="ellipsis")
    drawn.truncate(max(width, 1), overflow="ellipsis")
    return drawn


def table_lines(rows: Sequence[str], width: int, height: int) -> list[Text]:
    """A table with its titles in front on at most so many lines; the last says what is left out."""
    titles, *others = rows or [""]
    shown = others if len(others) < height else others[: max(height - 2, 0)]
    left = len(others) - len(shown)
    more = [line(f"… {left} more", width, style="dim")] if left else []
    body = [line(row, width) for row in shown]
    return [line(titles, width, style="bold"), *body, *more][: max(height, 0)]


def printable(text: str) -> str:
    """The text on one line, without what a terminal would take for orders to itself."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
