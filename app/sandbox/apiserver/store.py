"""Documents by kind, namespace and name, under one revision counter, with a window of history.

Every write takes the next revision, writes it into ``metadata.resourceVersion`` and is appended to
the history of its kind. A watch that starts at revision R is served from the history; when the
history no longer reaches back to R the answer is 410, as from the real watch cache.

Invariant: stored documents are shared and never changed. Listeners run inside the outermost write
and may write in turn; each hears every change, in the order of the revisions, and one that fails
is logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from app.sandbox.apiserver import errors
from app.wire.documents import Document, ObjectName, name_of

WINDOW = 20_000
"""Changes kept per kind: what a watcher may be behind before it must list again."""


class ChangeKind(Enum):
    """What a write did to an object, by the names of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class StoreChange:
    """One write: the document after it, and the one before it (None when it was created)."""

    revision: int
    kind: ChangeKind
    storage: str
    document: Document
    previous: Document | None


Listener: TypeAlias = Callable[[StoreChange], None]

logger = logging.getLogger(__name__)


def _tell(listener: Listener, change: StoreChange) -> None:
    """Tell one listener; its failure keeps neither the others nor the answer of the write back."""
    try:
        listener(change)
    except Exception:
        subject = f"{change.storage} {name_of(change.document)}"
        logger.exception("listener failed", extra={"subject": subject})


class Subscription:
    """Changes of one kind, in order; ended by ``close``."""

    def __init__(
        self, pending: Iterable[StoreChange], *, leave: Callable[[Subscription], None]
    ) -> None:
        self._pending = deque(pending)
        self._leave = leave
        self._arrived = asyncio.Event()
        self.closed = False

    @property
    def has_pending(self) -> bool:
        """Whether a change has arrived that was not taken yet."""
        return bool(self._pending)

    def offer(self, change: StoreChange) -> None:
        """Append a change and wake the waiting reader; never waits for the reader."""
        self._pending.append(change)
        self._arrived.set()

    def take(self) -> list[StoreChange]:
        """Everything that has arrived, without waiting."""
        taken = list(self._pending)
        self._pending.clear()
        self._arrived.clear()
        return taken

    async def wait(self) -> None:
        """Return when there is something to take, or nothing ever will be."""
        if not self._pending and not self.closed:
            await self._arrived.wait()

    def close(self) -> None:
        """End the subscription and wake its reader; a second call does nothing."""
        if not self.closed:
            self.closed = True
            self._leave(self)
            self._arrived.set()


@dataclass(slots=True)
class _Shelf:
    """The objects and the changes of one kind."""

    documents: dict[ObjectName, Document] = field(default_factory=dict)
    history: deque[StoreChange] = field(default_factory=deque)
    forgotten: int = 0
    subscriptions: list[Subscription] = field(default_factory=list)


class Store:
    """The only place that holds state."""

    def __init__(self, *, window: int = WINDOW) -> None:
        self._window = window
        self._shelves: dict[str, _Shelf] = {}
        self._listeners: list[Listener] = []
        self._unheard: deque[StoreChange] = deque()
        self._telling = False
        self.revision = 1

    def on_change(self, listener: Listener) -> None:
        """Call ``listener`` with every later change of every kind."""
        self._listeners.append(listener)

    def get(self, storage: str, name: ObjectName) -> Document | None:
        """The shared document, not to be changed; None where there is none."""
        return self._shelf(storage).documents.get(name)

    def ordered(self, storage: str, namespace: str = "") -> list[Document]:
        """All documents of a kind (of one namespace), ordered as etcd orders its keys."""
        documents = self._shelf(storage).documents
        names = sorted(name for name in documents if not namespace or name.namespace == namespace)
        return [documents[name] for name in names]

    def values(self, storage: str) -> Iterable[Document]:
        """All documents of a kind in no particular order, without copying the shelf."""
        return self._shelf(storage).documents.values()

    def put(self, storage: str, document: Document) -> Document:
        """Create or replace; returns what was stored, with its new revision."""
        name = name_of(document)
        shelf = self._shelf(storage)
        previous = shelf.documents.get(name)
        stored = self._stamped(document)
        shelf.documents[name] = stored
        kind = ChangeKind.ADDED if previous is None else ChangeKind.MODIFIED
        self._publish(StoreChange(self.revision, kind, storage, stored, previous))
        return stored

    def remove(self, storage: str, name: ObjectName) -> Document | None:
        """Delete; returns the last document, with the revision of its deletion."""
        shelf = self._shelf(storage)
        previous = shelf.documents.pop(name, None)
        if previous is None:
            return None
        last = self._stamped(previous)
        self._publish(StoreChange(self.revision, ChangeKind.DELETED, storage, last, previous))
        return last

    def subscribe(self, storage: str, *, since: int | None = None) -> Subscription:
        """Changes after revision ``since`` (from now on without it); 410 when too old."""
        shelf = self._shelf(storage)
        pending: list[StoreChange] = []
        if since is not None and since < self.revision:
            if since < shelf.forgotten:
                raise errors.expired(f"too old resource version: {since} ({shelf.forgotten})")
            pending = [change for change in shelf.history if change.revision > since]
        subscription = Subscription(pending, leave=shelf.subscriptions.remove)
        shelf.subscriptions.append(subscription)
        return subscription

    def forget_history(self) -> None:
        """Drop all history, as a restart or a compaction does: older watches get 410."""
        for shelf in self._shelves.values():
            shelf.history.clear()
            shelf.forgotten = self.revision

    def close(self) -> None:
        """End every watch."""
        for shelf in self._shelves.values():
            for subscription in list(shelf.subscriptions):
                subscription.close()

    def _shelf(self, storage: str) -> _Shelf:
        shelf = self._shelves.get(storage)
        if shelf is None:
            shelf = self._shelves[storage] = _Shelf()
        return shelf

    def _stamped(self, document: Document) -> Document:
        self.revision += 1
        metadata = {**document["metadata"], "resourceVersion": str(self.revision)}
        return {**document, "metadata": metadata}

    def _publish(self, change: StoreChange) -> None:
        shelf = self._shelf(change.storage)
        shelf.history.append(change)
        if len(shelf.history) > self._window:
            shelf.forgotten = shelf.history.popleft().revision
        for subscription in list(shelf.subscriptions):
            subscription.offer(change)
        self._unheard.append(change)
        if not self._telling:
            self._tell_listeners()

    def _tell_listeners(self) -> None:
        self._telling = True
        try:
            while self._unheard:
                change = self._unheard.popleft()
                for listener in self._listeners:
                    _tell(listener, change)
        finally:
            self._telling = False
