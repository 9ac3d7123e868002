"""References to owners: one that names nobody would have its object collected at once."""

from __future__ import annotations

from collections.abc import Iterator

from app.sandbox.apiserver.errors import FieldError, invalid_value
from app.wire.documents import Document, items

_TEXTS = {
    "apiVersion": "version must not be empty",
    "kind": "must not be empty",
    "name": "must not be empty",
    "uid": "must not be empty",
}


def owner_errors(document: Document) -> Iterator[FieldError]:
    """What is missing in the references of an object; kube-apiserver does not say in which."""
    for owner in items(document, "metadata", "ownerReferences"):
        for name, text in _TEXTS.items():
            if not owner.get(name):
                yield invalid_value(f"metadata.ownerReferences.{name}", "", text)
