"""PersistentVolumeClaims that a pod names, before any node is looked at.

Volumes themselves are not played: a claim that is there is good enough, whatever it is bound to.
"""

from __future__ import annotations

from app.sandbox.apiserver.store import Store
from app.sandbox.documents import Document, ObjectName, items, name_of, section

PLUGIN = "VolumeRestrictions"
"""Of the stock plugins that look for claims, the first: the one whose events wake the pod."""

STORAGE = "/persistentvolumeclaims"


def unusable(pod: Document, store: Store) -> str:
    """What is wrong with the pod's claims, in the words of the stock scheduler; empty: nothing."""
    for volume in items(pod, "spec", "volumes"):
        name = section(volume, "persistentVolumeClaim").get("claimName")
        if not name:
            continue
        claim = store.get(STORAGE, ObjectName(name_of(pod).namespace, name))
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim["metadata"].get("deletionTimestamp"):
            return f'persistentvolumeclaim "{name}" is being deleted'
    return ""
