"""The bodies of the writes that have a form of their own: Binding, Eviction and Event.

Plain values, ready to be encoded. A Binding and an Eviction carry the pod's UID, so that a pod that
was made anew under the same name is never bound, nor evicted, for the one it replaced.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

JsonObject = dict[str, object]
EventType = Literal["Normal", "Warning"]

MESSAGE_LIMIT = 1024
"""Characters that the API server accepts as the message of an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """What an event is about."""

    kind: str
    api_version: str
    name: str
    uid: str
    namespace: str = ""
    """Empty for objects without a namespace; their events are kept in ``default``."""

    @property
    def event_namespace(self) -> str:
        """The namespace in which events about the object are kept."""
        return self.namespace or "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFact:
    """What happened, as the user is to read it; equal facts are counted in one event."""

    about: ObjectRef
    kind: EventType
    reason: str
    message: str


def binding(
    name: str, *, namespace: str, uid: str, node: str, annotations: Mapping[str, str] | None = None
) -> JsonObject:
    """The pod ``name`` goes to ``node``, if it still is the one with that UID."""
    metadata: JsonObject = {"name": name, "namespace": namespace, "uid": uid}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def eviction(name: str, *, namespace: str, uid: str) -> JsonObject:
    """The pod ``name`` goes, if it still is the one with that UID."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }


def event(fact: EventFact, *, name: str, component: str, at: datetime) -> JsonObject:
    """A core/v1 event that counts one occurrence.

    With ``firstTimestamp``, ``lastTimestamp`` and ``count``: many clients do not show an event that
    has only ``eventTime``.
    """
    about: JsonObject = {
        "kind": fact.about.kind,
        "apiVersion": fact.about.api_version,
        "name": fact.about.name,
        "uid": fact.about.uid,
    }
    if fact.about.namespace:
        about["namespace"] = fact.about.namespace
    stamp = seconds(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": fact.about.event_namespace},
        "involvedObject": about,
        "type": fact.kind,
        "reason": fact.reason,
        "message": fact.message[:MESSAGE_LIMIT],
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }


def event_again(*, count: int, at: datetime) -> JsonObject:
    """The merge patch by which an event counts one more occurrence."""
    return {"count": count, "lastTimestamp": seconds(at)}


def seconds(at: datetime) -> str:
    """A Kubernetes ``Time``."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def microseconds(at: datetime) -> str:
    """A Kubernetes ``MicroTime``."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
