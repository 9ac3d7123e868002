"""What listings say by what they lack.

A source (one listing and watch) shows objects one by one. When a listing of it is complete, what
the source had shown before and the listing lacks has gone while the watch was down.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Listed(Generic[K]):
    """A complete listing: the keys in it, and those that have gone."""

    there: frozenset[K]
    gone: frozenset[K]


def take_out(gone: Iterable[K], take: Callable[[K], object]) -> None:
    """Take out each of ``gone``.

    Raises :class:`ExceptionGroup` with what went wrong, once all others are out.
    """
    faults: list[Exception] = []
    for key in gone:
        try:
            take(key)
        except Exception as fault:  # a bug with one object must not keep the others
            faults.append(fault)
    if faults:
        raise ExceptionGroup("objects not taken out", faults)


@dataclass(slots=True, eq=False)
class Listings(Generic[K]):
    """The keys that each source has shown, and those of its listing under way."""

    _known: dict[str, set[K]] = field(default_factory=dict)
    _listing: dict[str, set[K]] = field(default_factory=dict)

    def show(self, source: str, key: K) -> None:
        """An object was added, modified or listed."""
        self._known.setdefault(source, set()).add(key)
        self.name(source, key)

    def name(self, source: str, key: K) -> None:
        """A listing under way names an object that cannot be shown: it is there all the same."""
        if source in self._listing:
            self._listing[source].add(key)

    def lose(self, source: str, key: K) -> None:
        """An object was deleted."""
        self._known.get(source, set()).discard(key)
        self._listing.get(source, set()).discard(key)

    def knows(self, source: str, key: K) -> bool:
        """Whether ``source`` has shown the object ``key``, and not lost it since."""
        return key in self._known.get(source, ())

    def begin(self, source: str) -> None:
        """A full listing starts; one that was under way is void."""
        self._listing[source] = set()

    def end(self, source: str) -> Listed[K] | None:
        """Complete the listing of ``source``; None when no listing was under way."""
        listed = self._listing.pop(source, None)
        if listed is None:
            return None
        gone = self._known.get(source, set()) - listed
        self._known[source] = listed
        return Listed(frozenset(listed), frozenset(gone))
