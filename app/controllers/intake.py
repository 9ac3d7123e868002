"""From what informers saw to the runtime.

A *source* is one listing and watch; a kind may have several, each for a part of its objects. When a
listing is complete, what that source had shown before and the listing lacks has gone while nobody
watched.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.controllers.runtime import Runtime
from app.wire.kinds import Resource
from app.wire.unstructured import Key, Object, key_of

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Source:
    resource: Resource
    known: set[Key] = field(default_factory=set)
    listing: set[Key] | None = None


class Intake:
    """Takes batches of all sources."""

    def __init__(self, runtime: Runtime, sources: Mapping[str, Resource]) -> None:
        self._runtime = runtime
        self._sources = {name: _Source(resource) for name, resource in sources.items()}

    def upsert(self, source: str, item: Object) -> None:
        """An object was added, modified or listed."""
        its = self._sources[source]
        key = key_of(item)
        its.known.add(key)
        if its.listing is not None:
            its.listing.add(key)
        self._runtime.put(its.resource, item)

    def remove(self, source: str, item: Object) -> None:
        """An object was deleted, or is not one of this source any more."""
        self._gone(self._sources[source], key_of(item))

    def begin_listing(self, source: str) -> None:
        """A full listing starts."""
        self._sources[source].listing = set()

    def end_listing(self, source: str) -> None:
        """It is complete: what was not in it is gone."""
        its = self._sources[source]
        if its.listing is None:
            return
        listed, its.listing = its.listing, None
        for key in sorted(its.known - listed, key=str):
            self._gone(its, key)

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

    def _gone(self, source: _Source, key: Key) -> None:
        source.known.discard(key)
        if source.listing is not None:
            source.listing.discard(key)
        self._runtime.drop(source.resource, key)
