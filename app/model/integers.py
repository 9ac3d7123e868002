"""Integers in texts, such as values of labels, as Go's ``strconv.ParseInt`` reads them."""

import re
from typing import Final

_DECIMAL: Final = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
"""Python's ``int`` also takes blanks around it, underscores, and the digits of all scripts."""


def int64(text: str) -> int | None:
    """The decimal number, None where there is none or it needs more than 64 bits."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if -(1 << 63) <= number < 1 << 63 else None


def int32(text: str) -> int | None:
    """The decimal number, None where there is none or it needs more than 32 bits."""
    number = int64(text)
    return number if number is not None and -(1 << 31) <= number < 1 << 31 else None
