"""PersistentVolumeClaims that a pod names, before any node is looked at.

Volumes themselves are not played: a claim that is bound is good enough, whatever it is bound to.
No claim is bound for the sake of a pod.
"""

from __future__ import annotations

from typing import NamedTuple

from app.sandbox.apiserver.store import Store
from app.wire.documents import Document, ObjectName, items, name_of, section

RESTRICTIONS = "VolumeRestrictions"
"""Of the stock plugins that look for claims, the first: the one whose events wake the pod."""

BINDING = "VolumeBinding"
"""The plugin that asks whether they are bound."""

STORAGE = "/persistentvolumeclaims"
_BOUND = "pv.kubernetes.io/bind-completed"


class Unusable(NamedTuple):
    """The plugin that refuses the pod everywhere, and why, in the stock scheduler's words."""

    plugin: str
    why: str


def unusable(pod: Document, store: Store) -> Unusable | None:
    """What is wrong with the pod's claims; None: nothing."""
    unbound = False
    for volume in items(pod, "spec", "volumes"):
        name = section(volume, "persistentVolumeClaim").get("claimName")
        if not name:
            continue
        claim = store.get(STORAGE, ObjectName(name_of(pod).namespace, name))
        if claim is None:
            return Unusable(RESTRICTIONS, f'persistentvolumeclaim "{name}" not found')
        if claim["metadata"].get("deletionTimestamp"):
            return Unusable(RESTRICTIONS, f'persistentvolumeclaim "{name}" is being deleted')
        unbound = unbound or not _is_bound(claim)
    if unbound:
        return Unusable(BINDING, "pod has unbound immediate PersistentVolumeClaims")
    return None


def _is_bound(claim: Document) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    return bool(section(claim, "spec").get("volumeName")) and _BOUND in annotations
