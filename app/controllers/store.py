"""What the watches have shown of one kind.

A store never changes an object it holds; its readers must not either. All objects say what they are
(``apiVersion``, ``kind``), which those in the API server's lists do not.
"""

from collections.abc import Callable, Iterator, Mapping

from app.wire.unstructured import Key, Object, key_of, owner_of, revision, uid

Index = Callable[[Object], str]
"""The value an object is found by; empty: not at all."""


def by_controller(item: Object) -> str:
    """The UID of the object's controller."""
    owner = owner_of(item)
    return owner.uid if owner else ""


class Store:
    """Objects of one kind by key, and by the indexes it was made with."""

    def __init__(self, indexes: Mapping[str, Index] | None = None) -> None:
        self._items: dict[Key, Object] = {}
        self._indexes = dict(indexes or {})
        self._found: dict[str, dict[str, dict[Key, Object]]] = {n: {} for n in self._indexes}
        self._ahead: set[Key] = set()
        """Of what was written and the watch has not shown yet."""

    def get(self, key: Key) -> Object | None:
        """The object, or None."""
        return self._items.get(key)

    def all(self) -> Iterator[Object]:
        """Every object, in the order of arrival."""
        return iter(list(self._items.values()))

    def by(self, index: str, value: str) -> list[Object]:
        """The objects that ``index`` gives ``value``."""
        return list(self._found[index].get(value, {}).values())

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Object) -> Object | None:
        """Add or replace, unless something newer was written; returns what was there."""
        key = key_of(item)
        old = self._items.get(key)
        if old is not None:
            if key in self._ahead and _is_older(item, old):
                return old
            self._unindex(key, old)
        self._ahead.discard(key)
        self._items[key] = item
        for index, value_of in self._indexes.items():
            value = value_of(item)
            if value:
                self._found[index].setdefault(value, {})[key] = item
        return old

    def renew(self, written: Object) -> None:
        """Take what was just written, unless the watch has shown as much, or that it is gone."""
        key = key_of(written)
        there = self._items.get(key)
        if there is not None and _is_older(there, written):
            self.put(written)
            self._ahead.add(key)

    def drop(self, key: Key) -> Object | None:
        """Remove; returns what was there."""
        self._ahead.discard(key)
        old = self._items.pop(key, None)
        if old is not None:
            self._unindex(key, old)
        return old

    def _unindex(self, key: Key, item: Object) -> None:
        for index, value_of in self._indexes.items():
            value = value_of(item)
            there = self._found[index].get(value)
            if there is not None:
                there.pop(key, None)
                if not there:
                    del self._found[index][value]


def _is_older(item: Object, other: Object) -> bool:
    """Whether ``item`` is an earlier version of ``other``."""
    return uid(item) == uid(other) and revision(item) < revision(other)
