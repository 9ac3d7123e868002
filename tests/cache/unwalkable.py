"""A table in which things may be looked up, but that nobody may walk through."""

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Unwalkable(dict[K, V]):
    """Whoever walks through it does more the more there are."""

    def values(self) -> Any:
        raise AssertionError("all were walked through")

    keys = items = __iter__ = values
