"""What a request is about, and what is said of an object that is not there."""

from __future__ import annotations

from dataclasses import dataclass

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.registry import ResourceKind
from app.wire.documents import ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request is about."""

    kind: ResourceKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def object_name(self) -> ObjectName:
        return ObjectName(self.namespace if self.kind.namespaced else "", self.name)

    def missing(self) -> errors.ApiError:
        return errors.not_found(self.kind.plural, self.kind.group, self.name)
