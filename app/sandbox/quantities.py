"""Kubernetes quantities (``100m``, ``1.5``, ``2Gi``, ``1e3``) as exact integers of thousandths.

Thousandths of a unit are the finest grain the sandbox needs (milli-CPU); anything finer is rounded
up, as the API server rounds a request up and never down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

NO_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
"""What the API server says of text that is none."""

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")
_LARGEST_POWER = 1000
"""Of ten: what lies beyond is all or nothing, and takes long to write out."""
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    **{letter: Fraction(10 ** (3 * power)) for power, letter in enumerate("MGTPE", start=2)},
}
_SCALE: dict[str, Fraction] = {
    **_DECIMAL,
    **{suffix: Fraction(factor) for suffix, factor in _BINARY.items()},
}


def parse_milli(value: object) -> int:
    """Thousandths of a unit; ``ValueError`` where ``value`` is not a quantity."""
    return _parse(str(value))


@lru_cache(maxsize=4096)
def _parse(text: str) -> int:
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"quantities must match the regular expression: {text!r}")
    number, suffix = Fraction(found[1]), found[2] or ""
    if suffix[:1] in {"e", "E"} and len(suffix) > 1:
        number *= Fraction(10) ** max(-_LARGEST_POWER, min(int(suffix[1:]), _LARGEST_POWER))
    elif suffix:
        number *= _SCALE[suffix]
    return -((-number * 1000) // 1)


def parse_list(resources: Mapping[str, object] | None) -> dict[str, int]:
    """A ``ResourceList`` in thousandths."""
    return {name: parse_milli(value) for name, value in (resources or {}).items()}


def text(milli: int, *, binary: bool = False) -> str:
    """The canonical form of thousandths; ``binary``: in ``Ki`` and up where that is shorter.

    The API server keeps the form in which an amount was written, which a sum does not have.
    """
    if milli % 1000:
        return f"{milli}m"
    whole = milli // 1000
    decimal = _shortened(whole, 1000, ("", "k", "M", "G", "T", "P", "E"))
    if not binary:
        return decimal
    return min(decimal, _shortened(whole, 1024, ("", *_BINARY)), key=len)


def _shortened(whole: int, step: int, suffixes: Sequence[str]) -> str:
    power = 0
    while whole and whole % step == 0 and power + 1 < len(suffixes):
        whole //= step
        power += 1
    return f"{whole}{suffixes[power]}"
