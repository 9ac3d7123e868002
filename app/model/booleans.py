"""Booleans in texts, such as values of annotations, as Go's ``strconv.ParseBool`` reads them."""

from typing import Final

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def boolean(text: str) -> bool | None:
    """What the text says, None where it says neither."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None
