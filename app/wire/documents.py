"""Kubernetes objects as they travel: plain JSON documents, with the few accessors that all need.

A document that was stored is shared by many readers, so it is never changed in place: copy it first
(:mod:`app.wire.copying`), or build a new one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

Document: TypeAlias = dict[str, Any]
"""A JSON object: the place where a value of unknown shape is allowed."""


class ObjectName(NamedTuple):
    """Where an object lives; the namespace is empty for cluster-wide kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def name_of(document: Document) -> ObjectName:
    """Namespace and name of an object; KeyError where ``metadata.name`` is missing."""
    metadata = document["metadata"]
    return ObjectName(metadata.get("namespace") or "", metadata["name"])


def uid_of(document: Document) -> str:
    """The UID of an object; an empty text where the object was not stored yet."""
    return str(document["metadata"].get("uid") or "")


def labels_of(document: Document) -> dict[str, str]:
    """The labels themselves, not a copy; an empty dict where there are none."""
    return document["metadata"].get("labels") or {}


def annotations_of(document: Document) -> dict[str, str]:
    """The annotations themselves, not a copy; an empty dict where there are none."""
    return document["metadata"].get("annotations") or {}


def section(document: Document, *path: str) -> Document:
    """The object under ``path``; an empty one where a step is missing or null."""
    here: Document = document
    for step in path:
        found = here.get(step)
        if not isinstance(found, dict):
            return {}
        here = found
    return here


def items(document: Document, *path: str) -> list[Any]:
    """The list under ``path``; an empty one where a step is missing or null."""
    found = section(document, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else []


def condition(document: Document, kind: str) -> Document | None:
    """The first condition of the type ``kind`` in ``status.conditions``; None: there is none."""
    for found in items(document, "status", "conditions"):
        if isinstance(found, dict) and found.get("type") == kind:
            return found
    return None


def is_terminal(pod: Document) -> bool:
    """Whether the pod's phase is Succeeded or Failed."""
    return section(pod, "status").get("phase") in {"Succeeded", "Failed"}
