"""From what informers saw to the runtime.

A kind may have several sources, each for a part of its objects (:mod:`app.kit.listings`). One
that goes from a part to another, or is made anew there, may be shown by its new source first.
"""

import logging
from collections.abc import Mapping
from functools import partial

from app.controllers.runtime import Runtime
from app.kit.listings import Listings, take_out
from app.wire.kinds import Resource
from app.wire.unstructured import Key, Object, key_of

log = logging.getLogger(__name__)


class Intake:
    """Takes batches of all sources."""

    def __init__(self, runtime: Runtime, sources: Mapping[str, Resource]) -> None:
        self._runtime = runtime
        self._sources = sources
        self._listings: Listings[Key] = Listings()

    def upsert(self, source: str, item: Object) -> None:
        """An object was added, modified or listed."""
        self._listings.show(source, key_of(item))
        self._runtime.put(self._sources[source], item)

    def remove(self, source: str, item: Object) -> None:
        """An object was deleted, or is not one of this source any more."""
        self._listings.lose(source, key_of(item))
        self._drop(source, key_of(item))

    def begin_listing(self, source: str) -> None:
        """A full listing starts."""
        self._listings.begin(source)

    def end_listing(self, source: str) -> None:
        """Complete the listing of ``source``: objects that were not in it are gone.

        Raises :class:`ExceptionGroup` with what went wrong, once all others are out.
        """
        listed = self._listings.end(source)
        gone = sorted(listed.gone if listed is not None else (), key=str)
        take_out(gone, partial(self._drop, source))

    def _drop(self, source: str, key: Key) -> None:
        kind = self._sources[source]
        shown = any(
            self._listings.knows(other, key) and each == kind
            for other, each in self._sources.items()
        )
        if not shown:  # the source itself has lost it
            self._runtime.drop(kind, key)

    def reject(
        self, source: str, name: str, message: str, *, uid: str = "", deleted: bool = False
    ) -> None:
        """An object is not even an object; it is left out."""
        log.warning(
            "object left out",
            extra={"source": source, "object": name, "uid": uid, "gone": deleted, "why": message},
        )

    def batch_done(self) -> None:
        """Nothing waits for the end of a batch."""
