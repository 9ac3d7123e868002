"""The objects of one kind as they are once the watch has caught up with our own writes.

A controller that decides must see what it did before: a pod just created is there, one just deleted
is going. What we wrote is laid over the store until the store has it, or something newer. The watch
may be faster than the answer to our own write: what it has shown to be gone by then stays gone.
What the watch does not show for long is to be asked for: it may have gone while the watch was
broken, or the watch be broken still.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from app.controllers.ports import Clock
from app.controllers.runtime import ObjectChange
from app.controllers.store import Store, by_controller
from app.wire import times
from app.wire.unstructured import Key, Object, has_no_time_left, is_deleting, key_of, revision, uid

OVERDUE_S: Final = 60.0

_GONE_KEPT: Final = 10_000
"""How many UIDs of objects that are gone are remembered.

They are needed for a short time: an answer comes soon after its request.
"""

CONTROLLER: Final = "controller"
"""The index of a store by the UID of the controller."""

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Written:
    item: Object
    owner: str
    at: float
    ended: bool
    """The API server has it no more: whatever the watch still shows of it is older."""

    def is_known_to(self, stored: Object) -> bool:
        """Whether ``stored`` tells as much, or is the next of that name."""
        if uid(stored) != uid(self.item):
            return revision(stored) >= revision(self.item)
        if self.ended or revision(stored) < revision(self.item):
            return False
        return is_deleting(stored) or not is_deleting(self.item)


class Fresh:
    """A store with our own writes laid over it."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._written: dict[Key, _Written] = {}
        self._by_owner: dict[str, set[Key]] = {}
        self._changes: dict[str, int] = {}
        self._tick = 0
        self._gone: dict[str, None] = {}
        """UIDs of objects that the watch has shown to be gone, the latest last."""

    def changes(self, owner: str) -> int:
        """Another number whenever the objects whose controller has that UID may have changed."""
        return self._changes.get(owner, 0)

    def get(self, key: Key) -> Object | None:
        """The object, or None."""
        stored = self._store.get(key)
        written = self._current(key, stored)
        return written if written is not None else stored

    def owned_by(self, owner: str) -> list[Object]:
        """The objects whose controller has that UID."""
        found = {key_of(item): item for item in self._store.by(CONTROLLER, owner)}
        for key in list(self._by_owner.get(owner, ())):
            item = self._current(key, self._store.get(key))
            if item is not None:
                found[key] = item
        return list(found.values())

    def unseen(self, owner: str) -> list[Object]:
        """The owner's objects that the watch has not shown."""
        return [written.item for written in self._unseen(owner)]

    def overdue(self, owner: str) -> list[Object]:
        """The owner's objects that the watch should have shown long ago."""
        now = self._clock()
        return [w.item for w in self._unseen(owner) if now - w.at >= OVERDUE_S]

    def gone(self, key: Key) -> None:
        """The API server does not have it."""
        self._forget(key)

    def created(self, item: Object) -> None:
        """Note an object that we created, by the answer, unless the object is gone already."""
        if uid(item) not in self._gone:
            self._lay(item)

    def changed(self, item: Object) -> None:
        """Note an object that we changed: ``item`` is the answer.

        The object may be gone already, or by that change.
        """
        key = key_of(item)
        if self._store.get(key) is not None or key in self._written:
            self._lay(item, ended=has_no_time_left(item))

    def deleted(self, item: Object) -> None:
        """Note an object that we deleted.

        The object is going, if not gone; whatever else we wrote to it stands.
        """
        known = self._known(item)
        if known is not None:
            self._lay(self._going(known))

    def ended(self, item: Object, *, annotations: Mapping[str, str] = _NONE) -> None:
        """The API server has it no more: it is going until the watch shows that it is gone.

        ``annotations``: what it was to get, and was too late for.
        """
        known = self._known(item)
        if known is not None:
            metadata = known["metadata"]
            all_ = {**(metadata.get("annotations") or {}), **annotations}
            late = {**known, "metadata": {**metadata, "annotations": all_}}
            self._lay(self._going(late), ended=True)

    def saw(self, change: ObjectChange) -> None:
        """The watch showed something."""
        if change.new is None:
            self._note_gone(uid(change.item))
        key = key_of(change.item)
        written = self._written.get(key)
        if written is not None:
            is_gone = change.new is None and uid(change.item) == uid(written.item)
            if is_gone or (change.new is not None and written.is_known_to(change.new)):
                self._forget(key)
        self._touch(by_controller(change.item))

    def _note_gone(self, which: str) -> None:
        self._gone[which] = None
        if len(self._gone) > _GONE_KEPT:
            del self._gone[next(iter(self._gone))]

    def _known(self, item: Object) -> Object | None:
        known = self.get(key_of(item))
        return known if known is not None and uid(known) == uid(item) else None

    def _going(self, item: Object) -> Object:
        going = {"deletionTimestamp": times.seconds(self._clock()), **item["metadata"]}
        return {**item, "metadata": going}

    def _lay(self, item: Object, *, ended: bool = False) -> None:
        key, owner = key_of(item), by_controller(item)
        self._forget(key)
        self._written[key] = _Written(item, owner, self._clock(), ended)
        self._by_owner.setdefault(owner, set()).add(key)
        self._touch(owner)

    def _current(self, key: Key, stored: Object | None) -> Object | None:
        written = self._written.get(key)
        if written is None:
            return None
        if stored is None or not written.is_known_to(stored):
            return written.item
        self._forget(key)
        return None

    def _unseen(self, owner: str) -> list[_Written]:
        keys = self._by_owner.get(owner, ())
        return [self._written[key] for key in keys if self._store.get(key) is None]

    def _forget(self, key: Key) -> None:
        written = self._written.pop(key, None)
        if written is None:
            return
        self._touch(written.owner)
        keys = self._by_owner[written.owner]
        keys.discard(key)
        if not keys:
            del self._by_owner[written.owner]

    def _touch(self, owner: str) -> None:
        if owner in self._by_owner or self._store.by(CONTROLLER, owner):
            self._tick += 1
            self._changes[owner] = self._tick
        else:
            self._changes.pop(owner, None)
