"""Regular expressions as Go reads them, matched in a time that no pattern makes long.

They are RE2's, as in Go. Python's matcher tries each way in which a text can be divided, which for
``(a+)+$`` and a name of 40 letters takes years. For patterns with one repetition it is as safe, and
some times as fast.
"""

import re
from collections.abc import Callable
from typing import Final

import re2

_BEYOND_RE2: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:[=!(>]|<[=!]|P=)|\\[1-9])")
_ATOMS: Final = r"(?:[A-Za-z0-9_.-]|\\[.-]|\[[A-Za-z0-9-]*[A-Za-z0-9]\])*"
_PLAIN: Final = re.compile(rf"\^?(?:{_ATOMS}|{_ATOMS}[A-Za-z0-9_.\]][*+]{_ATOMS})\$?")
"""Patterns that mean the same to Python, with one repetition at most."""

_SHORT: Final = 128
"""Characters of a pattern that is looked at for being one of these."""

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False

Matches = Callable[[str], bool]


def pattern_problem(pattern: str) -> str:
    """Why ``pattern`` is no regular expression; empty when it is one."""
    found = _BEYOND_RE2.search(pattern)
    if found:
        return f"`{found.group()}` is not supported"
    try:
        re2.compile(pattern, _OPTIONS)
    except (re2.error, UnicodeEncodeError) as error:
        return f"error parsing regexp: {_said(error)}"
    return ""


def matcher(pattern: str) -> Matches:
    """Whether ``pattern``, which has no problem, is found anywhere in a text."""
    plain = len(pattern) <= _SHORT and _PLAIN.fullmatch(pattern) is not None
    search = re.compile(pattern).search if plain else re2.compile(pattern, _OPTIONS).search
    return lambda text: search(text) is not None


def _said(error: Exception) -> str:
    """What RE2 says; its wrapper hands it on as bytes."""
    said = error.args[0] if error.args else error
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
