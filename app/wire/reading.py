"""Reading JSON that is not checked yet.

Mutation comes before the API server's schema, and pod templates have none, so any field may hold
anything. What is not of the expected kind reads as absent here: the schema says so where there is
one, the rules where there is none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.wire import quantity

NOTHING: Mapping[str, Any] = {}


def mapping(value: object) -> Mapping[str, Any]:
    """An object; empty when it is none."""
    return value if isinstance(value, dict) else NOTHING


def sequence(value: object) -> Sequence[Any]:
    """A list; empty when it is none."""
    return value if isinstance(value, list) else ()


def mappings(value: object) -> list[Mapping[str, Any]]:
    """A list of objects, in its order."""
    return [mapping(each) for each in sequence(value)]


def texts(value: object) -> list[str]:
    """The strings of a list."""
    return [each for each in sequence(value) if isinstance(each, str)]


def text(value: object) -> str:
    """A string; empty when it is none."""
    return value if isinstance(value, str) else ""


def integer(value: object) -> int:
    """A whole number; 0 when it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def number_or_none(value: object) -> int | None:
    """A whole number, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def amount(resource: str, value: object) -> int | None:
    """A quantity in the unit of its resource, or None."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        return quantity.amount(resource, value)
    except quantity.QuantityError:
        return None


def amounts(value: object) -> dict[str, int]:
    """The readable quantities of a resource list."""
    found = {name: amount(name, written) for name, written in mapping(value).items()}
    return {name: number for name, number in found.items() if number is not None}
