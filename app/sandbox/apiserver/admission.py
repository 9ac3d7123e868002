"""The hook point of admission: what a plugged function sees and may answer.

Hooks run in order on create, update and delete, after defaulting and before validation. A hook
returns a changed document (create and update), ``Admitted`` with warnings, a ``Denied``, or None to
let the request pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from app.wire.documents import Document

USER = "kubernetes-admin"
"""The user of every request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """The part of ``AdmissionReview.request`` that decisions are made of."""

    operation: str
    group: str
    version: str
    kind: str
    resource: str
    subresource: str
    namespace: str
    name: str
    object: Document | None
    old_object: Document | None
    user: str = USER
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Denied:
    """A refusal, worded as the client will read it."""

    message: str
    code: int = 403
    reason: str = "Forbidden"


@dataclass(frozen=True, slots=True)
class Admitted:
    """The object, which is None on delete, and what the client is told besides."""

    document: Document | None
    warnings: tuple[str, ...] = ()


Answer: TypeAlias = Document | Admitted | Denied | None


class Admission(Protocol):
    """Anything that admits: usually a plain function."""

    def __call__(self, request: AdmissionRequest, /) -> Answer:
        """The answer to one request; None lets the request pass as it is."""
