"""``pods/binding``: the one write that gives a pod its node.

Refused with 409 when the pod is bound, is going or is gated, or when it is not the pod that the
caller means (UID). Annotations of the Binding are copied onto the pod in the same write.
"""

from __future__ import annotations

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.operations import Operations
from app.sandbox.apiserver.target import Target, success_status
from app.sandbox.clock import timestamp
from app.wire.documents import Document, items, section

PODS = "/pods"


def bind(
    operations: Operations, target: Target, binding: Document, *, dry_run: bool = False
) -> Document:
    """Bind the pod, unless it is tried only, and answer with a ``Status``."""
    pod = operations.stored(target)
    if section(binding, "metadata").get("name") != target.name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    node = section(binding, "target").get("name")
    if not node:
        problem = errors.required("target.name")
        raise errors.invalid("Binding", "", target.name, errors=[problem])
    _check_identity(target, pod, section(binding, "metadata"))
    _check_free(target, pod)
    if not dry_run:
        operations.store.put(PODS, _bound(pod, node, binding, now=operations.clock.now()))
    return success_status()


def _check_identity(target: Target, pod: Document, wanted: Document) -> None:
    for word, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        found = pod["metadata"][field]
        if wanted.get(field) and wanted[field] != found:
            why = errors.storage_precondition(
                f"/registry/pods/{target.object_name}", word, wanted[field], found=found
            )
            raise errors.conflict("pods", "", target.name, why=why)


def _check_free(target: Target, pod: Document) -> None:
    name, spec = target.name, pod["spec"]
    why = ""
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise errors.conflict("pods/binding", "", name, why=why)


def _bound(pod: Document, node: str, binding: Document, *, now: float) -> Document:
    status = dict(pod.get("status") or {})
    status.pop("nominatedNodeName", None)
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    others = [
        one for one in items(pod, "status", "conditions") if one.get("type") != "PodScheduled"
    ]
    status["conditions"] = [*others, scheduled]
    metadata = dict(pod["metadata"])
    for field in ("annotations", "labels"):
        added = section(binding, "metadata").get(field)
        if added:
            metadata[field] = {**(metadata.get(field) or {}), **added}
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": status,
    }
