"""Answers to WATCH: the changes of the store as the events of one selection.

An object that begins to match a selector is ADDED and one that ceases is DELETED, whatever happened
to it in the store. Bookmarks carry the revision up to which the watcher has seen everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.lists import Selection, select
from app.sandbox.apiserver.operations import Operations
from app.sandbox.apiserver.store import ChangeKind, StoreChange, Subscription
from app.sandbox.apiserver.target import Target
from app.wire.documents import Document

_INITIAL_END = {"k8s.io/initial-events-end": "true"}


class Watch:
    """One watcher: what it has still to be told."""

    def __init__(self, operations: Operations, target: Target, query: dict[str, str]) -> None:
        self._operations = operations
        self._target = target
        self._selection: Selection = select(target, query)
        revision = query.get("resourceVersion", "")
        self._initial = revision in {"", "0"} or query.get("sendInitialEvents") == "true"
        self._bookmarks = query.get("allowWatchBookmarks") == "true"
        self._announces_end = self._bookmarks and query.get("sendInitialEvents") == "true"
        since = None if self._initial else _parsed(revision)
        self._subscription: Subscription = operations.store.subscribe(target.kind.key, since=since)
        self._seen = operations.store.revision if since is None else since

    @property
    def is_over(self) -> bool:
        """Whether the watch was closed, by the client's side or by the server's."""
        return self._subscription.closed

    async def wait(self) -> None:
        """Return when changes have arrived or the watch is over."""
        await self._subscription.wait()

    def close(self) -> None:
        """Stop the watch; a waiting reader is woken."""
        self._subscription.close()

    def events(self) -> Iterator[tuple[str, Document]]:
        """The events that can be told now, as (type, object)."""
        if self._initial:
            self._initial = False
            yield from self._initial_events()
        for change in self._subscription.take():
            self._seen = change.revision
            event = _event(change, self._selection)
            if event is not None:
                kind, document = event
                yield kind, self._operations.shown(self._target.kind, document)

    def bookmark(self) -> tuple[str, Document] | None:
        """The event that says how far the watcher has seen, if it wants to know."""
        if not self._bookmarks:
            return None
        if not self._subscription.has_pending:
            self._seen = self._operations.store.revision
        return self._bookmark({})

    def _initial_events(self) -> Iterator[tuple[str, Document]]:
        store, kind = self._operations.store, self._target.kind
        for document in store.ordered(kind.key, self._target.namespace):
            if self._selection.matches(document):
                yield "ADDED", self._operations.shown(kind, document)
        if self._announces_end:
            yield self._bookmark({"annotations": _INITIAL_END})

    def _bookmark(self, more: Document) -> tuple[str, Document]:
        kind = self._target.kind
        metadata = {"resourceVersion": str(self._seen), "creationTimestamp": None, **more}
        return "BOOKMARK", {
            "kind": kind.kind,
            "apiVersion": kind.api_version,
            "metadata": metadata,
        }


def _parsed(revision: str) -> int:
    if not revision.isdigit():
        raise errors.bad_request(f'Invalid value: "{revision}": resourceVersion is not a number')
    return int(revision)


def _event(change: StoreChange, selection: Selection) -> tuple[str, Document] | None:
    matched = change.previous is not None and selection.matches(change.previous)
    matches = change.kind is not ChangeKind.DELETED and selection.matches(change.document)
    if matches:
        return ("MODIFIED" if matched else "ADDED"), change.document
    if matched:
        return "DELETED", _last_seen(change)
    return None


def _last_seen(change: StoreChange) -> Document:
    """The object as the watcher knew it, with the revision at which it left."""
    previous = change.previous or change.document
    revision = {"resourceVersion": str(change.revision)}
    return {**previous, "metadata": {**previous["metadata"], **revision}}
