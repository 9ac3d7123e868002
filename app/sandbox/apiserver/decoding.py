"""The body of a request as the document that is worked on: of the right kind, and of its types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.registry import ResourceKind
from app.sandbox.apiserver.stock_fields import Misfit, TypeOf, conform
from app.wire.copying import copied
from app.wire.documents import Document, section


@dataclass(frozen=True, slots=True)
class Decoded:
    """A document in the version that is stored, and its unknown fields."""

    document: Document
    unknown: tuple[str, ...] = ()


class Decoder:
    """Reads bodies; what it gives is private to the request."""

    def __init__(self, type_of: TypeOf) -> None:
        self._type_of = type_of

    def decoded(self, kind: ResourceKind, namespace: str, body: Any) -> Decoded:
        """The object of a body; raises ``Misfit`` where a value is not of its field's type."""
        _check_kind(kind, body)
        document = copied({**body, "kind": kind.kind, "apiVersion": kind.api_version})
        unknown = self._conformed(kind, document)
        document = kind.to_storage(document)
        metadata = document["metadata"] = dict(document.get("metadata") or {})
        metadata.pop("managedFields", None)
        if not kind.namespaced:
            metadata.pop("namespace", None)
        else:
            _check_namespace(metadata, namespace)
            metadata["namespace"] = namespace
        return Decoded(document, tuple(unknown))

    def _conformed(self, kind: ResourceKind, document: Document) -> list[str]:
        """Of a custom object only the metadata is known here; the rest has a schema."""
        if not kind.custom:
            of = self._type_of(kind.api_version, kind.kind)
            return [] if of is None else conform(document, of)
        head = self._type_of("v1", "ObjectMeta")
        if head is None or document.get("metadata") is None:
            return []
        return [f"metadata.{path}" for path in conform(document["metadata"], head)]

    def whole(self, kind: ResourceKind, namespace: str, body: Any) -> Decoded:
        """The object of a body that was sent as a whole; 400 where it cannot be read."""
        try:
            return self.decoded(kind, namespace, body)
        except Misfit as misfit:
            raise errors.unreadable(kind.kind, kind.version, str(misfit)) from None

    def patched(self, kind: ResourceKind, namespace: str, document: Document) -> Decoded:
        """What a patch has made of an object; 422 where that cannot be read."""
        try:
            return self.decoded(kind, namespace, document)
        except Misfit as misfit:
            raise errors.bad_patch(document, str(misfit)) from None

    def message(self, version: str, kind: str, namespace: str, body: Any) -> Document:
        """A body about a pod that is no object of its own: a Binding, an Eviction."""
        of, document = self._type_of(version, kind), copied(body)
        try:
            if of is not None:
                conform(document, of)
        except Misfit as misfit:
            raise errors.unreadable(kind, version.rpartition("/")[2], str(misfit)) from None
        if not isinstance(document, dict):
            raise errors.bad_request("the request body is not an object")
        if (said := document.get("kind") or kind) != kind:
            text = f'no kind "{said}" is registered for it'
            raise errors.unreadable(kind, version.rpartition("/")[2], text)
        _check_namespace(section(document, "metadata"), namespace)
        return document

    def delete_options(self, body: Any) -> Document:
        """A private copy of the body of a DELETE; 400 where a field has the wrong type."""
        of, document = self._type_of("v1", "DeleteOptions"), copied(body)
        try:
            if of is not None:
                conform(document, of)
        except Misfit as misfit:
            raise errors.bad_request(str(misfit)) from None
        if not isinstance(document, dict):
            raise errors.bad_request("the request body is not an object")
        return document


def _check_namespace(metadata: Document, namespace: str) -> None:
    if metadata.get("namespace") not in {None, "", namespace}:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _check_kind(kind: ResourceKind, body: Any) -> None:
    if not isinstance(body, dict):
        raise errors.bad_request("the request body is not an object")
    said = [body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind]
    for field, word in zip(("apiVersion", "kind"), said, strict=True):
        if not isinstance(word, str):
            raise errors.bad_request(
                f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get"
                f" version/kind; json parse error: .{field} is not of type string"
            )
    if said != [kind.api_version, kind.kind]:
        group_version, name = said
        version = group_version.rpartition("/")[2]
        raise errors.bad_request(
            f'{name} in version "{version}" cannot be handled as a {kind.kind}:'
            f' no kind "{name}" is registered for version "{group_version}"'
        )
