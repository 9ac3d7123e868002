"""Taints that keep a pod off a node."""

from __future__ import annotations

from collections.abc import Sequence

from app.wire.documents import Document, section

CORDON: Document = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def untolerated(node: Document, tolerations: Sequence[Document]) -> bool:
    """Whether a hard taint of the node is not tolerated."""
    return any(
        taint.get("effect") in {"NoSchedule", "NoExecute"} and not is_tolerated(taint, tolerations)
        for taint in section(node, "spec").get("taints") or []
    )


def is_tolerated(taint: Document, tolerations: Sequence[Document]) -> bool:
    """Whether any toleration matches the taint by effect, key and value."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Document, taint: Document) -> bool:
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator", "Equal") == "Exists":
        return not key or key == taint["key"]
    return key == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")
