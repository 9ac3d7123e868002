"""Equal parts of many objects are decoded once and kept once.

Ten thousand pods of one job repeat the same containers, tolerations and labels. Their JSON text is
the key under which the decoded value is found again, so for all but the first the cost is one
hash. What is kept is bounded by forgetting everything when it is full: values that are in use
live on, and the next objects fill the cache with what is current.
"""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Interned(dict[K, V]):
    """At most ``limit`` values; safe between threads, which may at worst decode one thing twice."""

    def __init__(self, *, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def keep(self, key: K, value: V) -> V:
        """Remember ``value`` (or find the one remembered meanwhile) and give it back."""
        if len(self) >= self.limit:
            self.clear()
        return self.setdefault(key, value)
