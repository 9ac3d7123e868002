"""Events in two shapes, ``v1`` and ``events.k8s.io/v1``, of one stored ``v1`` document."""

from __future__ import annotations

from app.wire.documents import Document

_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_BACK = {old: new for new, old in _RENAMED.items()}
_LEFT_OUT = frozenset({"reportingComponent", "reportingInstance"})
"""Shown by ``v1`` even where there are none."""


def to_core(event: Document) -> Document:
    """The stored ``v1`` document of an ``events.k8s.io/v1`` event; ``event`` stays unchanged."""
    renamed = {_RENAMED.get(key, key): value for key, value in event.items()}
    return {**renamed, "apiVersion": "v1"}


def from_core(event: Document) -> Document:
    """A stored ``v1`` event as ``events.k8s.io/v1`` shows it; ``event`` stays unchanged."""
    renamed = {
        _BACK.get(key, key): value for key, value in event.items() if value or key not in _LEFT_OUT
    }
    return {**renamed, "apiVersion": "events.k8s.io/v1"}
