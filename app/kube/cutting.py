"""JSON cut into its parts, however deep these are.

msgspec reads by recursion, also what it only skips, and gives up some hundred levels down. Here
brackets are counted instead. That is slow, and meant for what msgspec gave up on; only where the
parts end is found out, not whether they are JSON.
"""

import re
from collections.abc import Iterator
from typing import Final

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_to_sign = re.compile(rb'(?:[^"\[\]{},]++|' + _STRING + rb")*+[\[\]{},]", re.DOTALL).match
_name = re.compile(rb"\s*(" + _STRING + rb")\s*:", re.DOTALL).match
_COMMA: Final = ord(",")


def parts(text: bytes) -> Iterator[bytes]:
    """What stands between the commas of an array or object; ValueError where it does not end."""
    depth = begin = at = 0
    while found := _to_sign(text, at):
        at = found.end()
        sign = text[at - 1]
        if sign == _COMMA:
            if depth == 1:
                yield text[begin : at - 1]
                begin = at
        elif sign in b"[{":
            depth += 1
            if depth == 1:
                begin = at
        else:
            depth -= 1
            if depth == 0:
                last = text[begin : at - 1]
                if last.strip():
                    yield last
                return
    raise ValueError("not a whole array or object")


def members(text: bytes) -> dict[bytes, bytes]:
    """The values of an object by their names, which stay as they are written."""
    found: dict[bytes, bytes] = {}
    for part in parts(text):
        name = _name(part)
        if name is None:
            raise ValueError("not a member of an object")
        found[name[1][1:-1]] = part[name.end() :]
    return found
