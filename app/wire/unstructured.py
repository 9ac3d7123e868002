"""Objects as the API server stores them, and what is read off any of them.

Controllers pass on what they do not know (pod templates above all), so an object stays the mapping
it was in JSON; nothing here changes one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""One Kubernetes object."""


@dataclass(frozen=True, slots=True)
class Key:
    """Where an object is; ``namespace`` is empty for those of the whole cluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Owner:
    """A controlling owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str


def metadata(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of ``item``; empty when there is none."""
    return item.get("metadata") or {}


def key_of(item: Mapping[str, Any]) -> Key:
    """The key of ``item``."""
    return Key(namespace(item), name(item))


def name(item: Mapping[str, Any]) -> str:
    """``metadata.name``."""
    return str(metadata(item).get("name") or "")


def namespace(item: Mapping[str, Any]) -> str:
    """``metadata.namespace``."""
    return str(metadata(item).get("namespace") or "")


def uid(item: Mapping[str, Any]) -> str:
    """``metadata.uid``."""
    return str(metadata(item).get("uid") or "")


def version(item: Mapping[str, Any]) -> str:
    """``metadata.resourceVersion``."""
    return str(metadata(item).get("resourceVersion") or "")


def revision(item: Mapping[str, Any]) -> int:
    """The version as a number: of two of one object the newer has the larger; 0 without one."""
    text = version(item)
    return int(text) if text.isdecimal() else 0


def age(item: Mapping[str, Any]) -> tuple[str, int]:
    """A key to sort objects by: the oldest first, those of one second by their version."""
    return str(metadata(item).get("creationTimestamp") or ""), revision(item)


def labels(item: Mapping[str, Any]) -> Mapping[str, str]:
    """``metadata.labels``."""
    return metadata(item).get("labels") or {}


def annotations(item: Mapping[str, Any]) -> Mapping[str, str]:
    """``metadata.annotations``."""
    return metadata(item).get("annotations") or {}


def spec(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """``spec``."""
    return item.get("spec") or {}


def status(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """``status``."""
    return item.get("status") or {}


def is_deleting(item: Mapping[str, Any]) -> bool:
    """Whether ``item`` has been deleted and waits for finalizers or a grace period."""
    return bool(metadata(item).get("deletionTimestamp"))


def has_no_time_left(item: Mapping[str, Any]) -> bool:
    """Whether ``item`` is about to go: its grace period is over and no finalizer holds it.

    The API server takes such an object away with the next write, whatever that says, and answers as
    if it had stored it, with the version from before.
    """
    meta = metadata(item)
    return meta.get("deletionGracePeriodSeconds") == 0 and not meta.get("finalizers")


def owner_of(item: Mapping[str, Any]) -> Owner | None:
    """The controller that owns ``item``; None: there is none."""
    for reference in metadata(item).get("ownerReferences") or ():
        if reference.get("controller"):
            return Owner(
                str(reference.get("apiVersion") or ""),
                str(reference.get("kind") or ""),
                str(reference.get("name") or ""),
                str(reference.get("uid") or ""),
            )
    return None


def controlled_by(item: Mapping[str, Any]) -> Object:
    """The owner reference that makes ``item`` the controller of what carries it."""
    return {
        "apiVersion": item["apiVersion"],
        "kind": item["kind"],
        "name": name(item),
        "uid": uid(item),
        "controller": True,
        "blockOwnerDeletion": True,
    }
