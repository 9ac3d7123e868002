"""``scale``: how many replicas a workload has, as one small object that is read and written.

What is written goes to ``spec.replicas`` of the workload itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.operations import (
    Operations,
    Target,
    WriteOptions,
)
from app.sandbox.apiserver.patches import (
    JSON_PATCH,
    MERGE_PATCH,
    check_patch,
    json_patch,
    merge_patch,
)
from app.sandbox.documents import Document, section

_SHARED_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(workload: Document) -> Document:
    """The ``Scale`` of a workload."""
    metadata, labels = workload["metadata"], section(workload, "spec", "selector", "matchLabels")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _SHARED_METADATA if name in metadata},
        "spec": {"replicas": section(workload, "spec").get("replicas", 1)},
        "status": {
            "replicas": section(workload, "status").get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }


def patched(operations: Operations, target: Target, body: Any, content_type: str) -> Document:
    """The ``Scale`` that a patch makes of the present one."""
    current = scale_of(operations.stored(target))
    check_patch(body, content_type)
    if content_type == JSON_PATCH:
        return json_patch(current, body)
    merged: Document = merge_patch(current, body)
    return merged


def write(
    operations: Operations, target: Target, scale: Document, *, options: WriteOptions
) -> Document:
    """Give the workload the replicas that ``scale`` says; the ``Scale`` it has then."""
    replicas = section(scale, "spec").get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        problem = errors.invalid_value(
            "spec.replicas", replicas, "must be greater than or equal to 0"
        )
        raise errors.invalid("Scale", "autoscaling", target.name, errors=[problem])
    change: Document = {"spec": {"replicas": replicas}}
    if revision := section(scale, "metadata").get("resourceVersion"):
        change["metadata"] = {"resourceVersion": revision}
    workload = replace(target, subresource="")
    written = operations.patch(workload, change, content_type=MERGE_PATCH, options=options)
    return scale_of(written.document)
