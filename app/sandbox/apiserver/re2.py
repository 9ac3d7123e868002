"""Patterns of schemas: RE2's way of writing them as Python's.

Both mean the same by most of it. Translated are classes of POSIX (``[[:digit:]]``) and of Unicode's
general categories (``\\p{Lu}``), quoting (``\\Q…\\E``), named groups, characters by number, and the
end of the text, which Python also finds before a last line break. What remains, such as classes of
scripts, is not checked: values pass, and a warning says so.
"""

from __future__ import annotations

import logging
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

logger = logging.getLogger(__name__)

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_CATEGORY = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))")
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]")
_NUMBERED = re.compile(r"\\x\{([0-9A-Fa-f]+)\}")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)


class _Unknown(Exception):
    """Something that Python has no words for."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as its author wrote it, and as Python takes it."""

    text: str
    compiled: re.Pattern[str]

    def fits(self, value: str) -> bool:
        return self.compiled.search(value) is not None


def compiled(text: str) -> Pattern | None:
    """None where the pattern cannot be checked here."""
    try:
        return Pattern(text, re.compile("".join(_translated(text)), re.ASCII))
    except (_Unknown, re.error, OverflowError, ValueError) as error:
        fields = {"pattern": text, "error": str(error)}
        logger.warning("a pattern is not checked", extra=fields)
        return None


def _translated(text: str) -> Iterator[str]:
    at, multiline = 0, "m" in "".join(re.findall(r"\(\?([a-z]+)[:)-]", text))
    while at < len(text):
        if text[at] == "[":
            inside, at = _class(text, at)
            yield inside
        elif found := _QUOTED.match(text, at):
            yield re.escape(found[1])
            at = found.end()
        elif found := _CATEGORY.match(text, at):
            yield f"[{_category(found)}]"
            at = found.end()
        elif text.startswith("(?<", at) and text[at + 3 : at + 4] not in {"=", "!"}:
            yield "(?P<"
            at += 3
        elif text[at] == "$" and not multiline:
            yield r"\Z"
            at += 1
        else:
            piece, at = _character(text, at)
            yield piece


def _character(text: str, at: int) -> tuple[str, int]:
    """One character, or what a backslash makes of those after it."""
    if text[at] != "\\":
        return text[at], at + 1
    if found := _NUMBERED.match(text, at):
        return re.escape(chr(int(found[1], 16))), found.end()
    piece = text[at : at + 2]
    return (r"\Z" if piece == r"\z" else piece), at + 2


def _class(text: str, at: int) -> tuple[str, int]:
    """A class in brackets; nothing in it nests, whatever later versions of Python may think."""
    start = "[^" if text.startswith("[^", at) else "["
    at += len(start)
    pieces = [start]
    if text.startswith("]", at):
        pieces.append(r"\]")
        at += 1
    while at < len(text) and text[at] != "]":
        if found := _POSIX_CLASS.match(text, at):
            pieces.append(_posix(found))
            at = found.end()
        elif found := _CATEGORY.match(text, at):
            pieces.append(_category(found))
            at = found.end()
        else:
            piece, at = _character(text, at)
            pieces.append(f"\\{piece}" if piece in "[&~|" else piece)
    return "".join([*pieces, "]"]), at + 1


def _posix(found: re.Match[str]) -> str:
    if found[2] not in _POSIX:
        raise _Unknown(found[0])
    ranges = _POSIX[found[2]]
    if not found[1]:
        return ranges
    inside = re.compile(f"[{ranges}]")
    return _ranges(lambda code: inside.match(chr(code)) is None)


def _category(found: re.Match[str]) -> str:
    """The characters of ``\\p{L}``, or of all but those, as ranges."""
    name = found[3] or found[4]
    codes = _categories().get(name)
    if codes is None:
        raise _Unknown(found[0])
    outside = (found[1] == "P") is not bool(found[2])
    return _ranges(lambda code: (code in codes) is not outside)


@cache
def _categories() -> dict[str, frozenset[int]]:
    """The code points of each category, and of each of their first letters."""
    found: dict[str, set[int]] = defaultdict(set)
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        found[category].add(code)
        found[category[0]].add(code)
    return {name: frozenset(codes) for name, codes in found.items()}


def _ranges(holds: Callable[[int], bool]) -> str:
    """The characters for which ``holds`` is true, for use in a class."""
    pieces: list[str] = []
    start: int | None = None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and holds(code)
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            pieces.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(pieces)
