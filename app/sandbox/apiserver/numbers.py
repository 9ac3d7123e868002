"""Numbers in queries."""

from __future__ import annotations

import re

from app.sandbox.apiserver import errors

_WHOLE = re.compile(r"[+-]?[0-9]+")


def whole_number(text: str) -> int:
    """The number that ``text`` says; 400 where it says none."""
    if _WHOLE.fullmatch(text) is None:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)
