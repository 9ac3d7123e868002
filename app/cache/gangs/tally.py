"""Counts by key that grow and shrink: what is not there any more has no entry.

Labels that members are counted by may be new ones each time, and groups live long.
"""

from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def bump(counts: dict[K, int], key: K, by: int) -> None:
    """``by`` more of ``key``, or less."""
    value = counts.get(key, 0) + by
    if value:
        counts[key] = value
    else:
        counts.pop(key, None)
