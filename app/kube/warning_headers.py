"""What the API server warns of, beside its answer: ``Warning: 299 - "unknown field"``."""

import re
from collections.abc import Iterable
from typing import Final

_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
_WARNING: Final = re.compile(rf'\d{{3}} \S+ {_QUOTED}(?: "[^"]*")?')  # code, who, text, date
_ESCAPED: Final = re.compile(r"\\(.)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def warnings_in(headers: Iterable[str]) -> list[str]:
    """The texts, each in one line; a header of another form has none."""
    return [
        _CONTROL.sub(" ", _ESCAPED.sub(r"\1", text))
        for header in headers
        for text in _WARNING.findall(header)
    ]
