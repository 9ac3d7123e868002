"""What a request is about, and the answers that name no more than that."""

from __future__ import annotations

from dataclasses import dataclass

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.registry import ResourceKind
from app.wire.documents import Document, ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request is about."""

    kind: ResourceKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def object_name(self) -> ObjectName:
        """The key of the object in the store; without namespace for a cluster-wide kind."""
        return ObjectName(self.namespace if self.kind.namespaced else "", self.name)

    def missing(self) -> errors.ApiError:
        """The 404 error that names this object; the caller raises the error."""
        return errors.not_found(self.kind.plural, self.kind.group, self.name)


def success_status() -> Document:
    """The answer to a subresource that was created."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
