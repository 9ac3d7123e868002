"""What may change on a pod once it exists.

The rules are those the gate protocol stands on: gates can only go, placement can only be tightened
and only while gated, a nomination cannot be made on a bound pod.
"""

from __future__ import annotations

from typing import Any

from app.sandbox.apiserver.errors import FieldError, forbidden_field, invalid_value
from app.sandbox.apiserver.pod_placement import placement_errors
from app.wire.copying import copied
from app.wire.documents import Document, items, section

_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`"
    " (only additions to existing tolerations),`spec.terminationGracePeriodSeconds`"
    " (allow it to be set to 1 if it was previously negative)"
)
_FREE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod_update_errors(new: Document, old: Document) -> list[FieldError]:
    """Broken rules of an update of the pod itself (not of its status)."""
    before, after = section(old, "spec"), section(new, "spec")
    found = placement_errors(after) if after != before else []
    found += _gate_errors(before, after) + _toleration_errors(before, after)
    gated = bool(before.get("schedulingGates"))
    if gated:
        found += _selector_errors(before, after) + _affinity_errors(before, after)
    if _frozen(before, gated=gated) != _frozen(after, gated=gated):
        found.append(forbidden_field("spec", _IMMUTABLE))
    return found


def pod_status_errors(new: Document, old: Document) -> list[FieldError]:
    """Broken rules of an update of the status."""
    nominated = section(new, "status").get("nominatedNodeName")
    changed = nominated != section(old, "status").get("nominatedNodeName")
    if nominated and changed and section(old, "spec").get("nodeName"):
        text = "may not be set on pods that are already bound to a node"
        return [forbidden_field("status.nominatedNodeName", text)]
    return []


def _frozen(spec: Document, *, gated: bool) -> Any:
    """The spec without what an update may change."""
    left = {key: value for key, value in spec.items() if key not in _FREE and value not in ({}, [])}
    for field in ("containers", "initContainers"):
        left[field] = [
            {key: value for key, value in container.items() if key != "image"}
            for container in items(spec, field)
        ]
    if spec.get("terminationGracePeriodSeconds") == 1:
        left.pop("terminationGracePeriodSeconds")
    if gated:
        left.pop("nodeSelector", None)
        affinity = copied(left.pop("affinity", None) or {})
        affinity.pop("nodeAffinity", None)
        left["affinity"] = affinity
    return left


def _gate_errors(before: Document, after: Document) -> list[FieldError]:
    known = {gate["name"] for gate in before.get("schedulingGates") or []}
    only = "only deletion is allowed, but found new scheduling gate"
    return [
        forbidden_field(f"spec.schedulingGates[{index}].name", f"{only} '{gate['name']}'")
        for index, gate in enumerate(after.get("schedulingGates") or [])
        if gate["name"] not in known
    ]


def _toleration_errors(before: Document, after: Document) -> list[FieldError]:
    kept = after.get("tolerations") or []
    if all(one in kept for one in before.get("tolerations") or []):
        return []
    return [
        forbidden_field(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        )
    ]


def _selector_errors(before: Document, after: Document) -> list[FieldError]:
    now = section(after, "nodeSelector")
    if all(now.get(key) == value for key, value in section(before, "nodeSelector").items()):
        return []
    text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid_value("spec.nodeSelector", now, text)]


def _affinity_errors(before: Document, after: Document) -> list[FieldError]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    old = items(before, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    new = items(after, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    if not old:
        return []
    if len(old) != len(new):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid_value(path, new or None, text)]
    return [
        invalid_value(
            f"{path}[{index}]",
            "",
            "only additions are allowed (no mutations or deletions)",
        )
        for index, (was, now) in enumerate(zip(old, new, strict=True))
        if not (_extends(was, now, "matchExpressions") and _extends(was, now, "matchFields"))
    ]


def _extends(was: Document, now: Document, field: str) -> bool:
    old, new = items(was, field), items(now, field)
    return new[: len(old)] == old
