"""Serves what CustomResourceDefinitions define, as they come, change and go."""

from __future__ import annotations

from app.sandbox.apiserver.crds import served_kinds
from app.sandbox.apiserver.registry import Registry, storage_key
from app.sandbox.apiserver.stock_rules import CRDS
from app.sandbox.apiserver.store import ChangeKind, Store, StoreChange
from app.wire.documents import Document, name_of, section


class CustomKinds:
    """Keeps the registry equal to the stored definitions; objects go with their definition."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        store.on_change(self._changed)

    def _changed(self, change: StoreChange) -> None:
        if change.storage != CRDS:
            return
        if change.previous is not None:
            self._withdraw(change.previous)
        if change.kind is ChangeKind.DELETED:
            self._clear(change.document)
        else:
            for kind in served_kinds(change.document):
                self._registry.add(kind)

    def _withdraw(self, crd: Document) -> None:
        spec = section(crd, "spec")
        self._registry.remove(group=spec["group"], plural=section(spec, "names")["plural"])

    def _clear(self, crd: Document) -> None:
        spec = section(crd, "spec")
        storage = storage_key(spec["group"], section(spec, "names")["plural"])
        for document in self._store.ordered(storage):
            self._store.remove(storage, name_of(document))
