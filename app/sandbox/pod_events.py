"""Events about pods, as a kubelet writes them."""

from __future__ import annotations

from hashlib import sha256

from app.sandbox.clock import timestamp
from app.wire.documents import Document, name_of, section, uid_of


def pod_event(pod: Document, *, kind: str, reason: str, note: str, now: float) -> Document:
    """``kind`` is Normal or Warning. The same event about the same pod has the same name."""
    subject, digest = name_of(pod), sha256(f"{uid_of(pod)} {reason} {note}".encode()).hexdigest()
    node = section(pod, "spec").get("nodeName") or ""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{subject.name}.{digest[:16]}", "namespace": subject.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": subject.name,
            "namespace": subject.namespace,
            "uid": uid_of(pod),
        },
        "reason": reason,
        "message": note,
        "type": kind,
        "count": 1,
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "source": {"component": "kubelet", "host": node},
        "reportingComponent": "kubelet",
        "reportingInstance": node,
    }
