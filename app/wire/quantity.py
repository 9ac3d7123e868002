"""Kubernetes quantities (``1500m``, ``512Mi``, ``1e3``) to integers in base units, and back.

``cpu`` counts milli-cores, every other resource whole units. What does not divide is rounded away
from zero, as the API server does when it needs an integer: a request is never taken for less than
it asks. Magnitudes stop at ``UNLIMITED``, those that are summed sooner, so that sums still fit a
vector.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from app.model.amounts import CPU, OF_CLASS, UNLIMITED, Amounts, amounts
from app.wire.errors import DecodeError, joined

Quantity = str | int | float
"""As JSON has it; clients may leave the quotes out."""

QuantityMap = dict[str, Quantity]

_FORM: Final = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?"
)
_BINARY: Final = {f"{letter}i": 1 << (10 * n) for n, letter in enumerate("KMGTPE", start=1)}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

_LONGEST: Final = 64
"""Characters; nothing that means a number of this world is longer."""
_LARGEST_POWER: Final = 128
"""Of ten: one digit times it is beyond ``UNLIMITED``, the longest number over it less than one."""

_BYTES: Final = ("memory", "ephemeral-storage", "storage")


class QuantityError(ValueError):
    """The text is not a quantity."""

    def __init__(self, text: Quantity) -> None:
        super().__init__(f'"{str(text)[:_LONGEST]}" is not a quantity')


@lru_cache(maxsize=8192, typed=True)
def parse(text: Quantity, *, milli: bool = False) -> int:
    """``text`` in whole units, or in thousandths; raises `QuantityError`."""
    written = text if isinstance(text, str) else repr(text)
    form = _FORM.fullmatch(written) if len(written) <= _LONGEST else None
    if form is None:
        raise QuantityError(text)
    sign, whole, fraction, suffix, exponent = form.groups(default="")
    if not whole and not fraction:
        raise QuantityError(text)
    power = _DECIMAL.get(suffix, 0) + int(exponent or 0) - len(fraction) + (3 if milli else 0)
    magnitude = _scaled(int(whole + fraction) * _BINARY.get(suffix, 1), power)
    return -magnitude if sign == "-" else magnitude


def _scaled(digits: int, power: int) -> int:
    if not digits:
        return 0
    if power >= 0:
        return min(digits * _ten_to(power), UNLIMITED)
    return min(-(-digits // _ten_to(-power)), UNLIMITED)


def _ten_to(power: int) -> int:
    return int(10 ** min(power, _LARGEST_POWER))


def amount(resource: str, text: Quantity) -> int:
    """``text`` in the unit of ``resource``.

    Quota names (``requests.cpu``) and capacities of device classes (``memory.deviceclass/gpu``)
    have that one's.
    """
    return parse(text, milli=_plain(resource) == CPU)


def read(values: Mapping[str, Quantity] | None, at: str) -> dict[str, int]:
    """The amounts of a resource list that stood at ``at``; raises `DecodeError`."""
    found = {}
    for name, text in (values or {}).items():
        try:
            found[name] = amount(name, text)
        except QuantityError as error:
            raise DecodeError(joined(at, name), str(error)) from error
    return found


def read_amounts(
    values: Mapping[str, Quantity] | None, at: str, *, most: int = UNLIMITED
) -> Amounts:
    """Amounts in canonical form; each stops at ``most``, for amounts that are summed."""
    return amounts({name: min(value, most) for name, value in read(values, at).items()})


def text(resource: str, value: int) -> str:
    """``value`` as one would write it: ``2``, ``1500m``, ``512Mi``."""
    plain = _plain(resource)
    if plain == CPU:
        return f"{value}m" if value % 1000 else str(value // 1000)
    if plain in _BYTES or plain.startswith("hugepages-"):
        return _byte_text(value)
    return str(value)


def texts(values: Amounts) -> dict[str, str]:
    """A resource list."""
    return {name: text(name, value) for name, value in values}


def _byte_text(value: int) -> str:
    for suffix, unit in reversed(_BINARY.items()):
        if value and value % unit == 0:
            return f"{value // unit}{suffix}"
    return str(value)


def _plain(resource: str) -> str:
    of_class = resource.partition(OF_CLASS)[0]
    return of_class.removeprefix("requests.").removeprefix("limits.")
