"""``scale``: how many replicas a workload has, as one small object that is read and written.

What is written goes to ``spec.replicas`` of the workload itself, or where the definition of its
kind says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.identity import check_name
from app.sandbox.apiserver.jsonpath import lookup
from app.sandbox.apiserver.operations import Operations, WriteOptions
from app.sandbox.apiserver.patches import (
    JSON_PATCH,
    MERGE_PATCH,
    check_patch,
    json_patch,
    merge_patch,
)
from app.sandbox.apiserver.registry import ResourceKind
from app.sandbox.apiserver.target import Target
from app.wire.documents import Document, section

_SHARED_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: ResourceKind, workload: Document) -> Document:
    """The ``Scale`` of a workload; 500 where a custom one does not say what it wants."""
    wanted = _value(workload, kind.scale.wanted)
    if wanted is None and kind.custom:
        text = f'the spec replicas field "{kind.scale.wanted}" does not exist'
        causes = {"causes": [{"message": text}]}
        text = f"Internal error occurred: {text}"
        raise errors.ApiError(500, "InternalError", text, details=causes)
    return _scale(kind, workload, 1 if wanted is None else wanted)


def _scale(kind: ResourceKind, workload: Document, wanted: Any) -> Document:
    metadata, selector = workload["metadata"], _selector(kind, workload)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _SHARED_METADATA if name in metadata},
        "spec": {"replicas": wanted},
        "status": {
            "replicas": _value(workload, kind.scale.found) or 0,
            **({} if selector is None else {"selector": selector}),
        },
    }


def _selector(kind: ResourceKind, workload: Document) -> Any:
    """A custom kind writes it down as one text, if at all."""
    if kind.custom:
        return _value(workload, kind.scale.selector) if kind.scale.selector else None
    labels = section(workload, "spec", "selector", "matchLabels")
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _value(workload: Document, path: str) -> Any:
    return next(iter(lookup(workload, path)), None)


def patched(operations: Operations, target: Target, body: Any, content_type: str) -> Document:
    """The ``Scale`` that a patch makes of the present one."""
    workload = operations.stored(target)
    check_patch(body, content_type)
    wanted = _value(workload, target.kind.scale.wanted)
    current = _scale(target.kind, workload, 0 if wanted is None else wanted)
    if content_type == JSON_PATCH:
        return json_patch(current, body)
    merged: Document = merge_patch(current, body)
    return merged


def write(
    operations: Operations, target: Target, scale: Document, *, options: WriteOptions
) -> Document:
    """Give the workload the replicas that ``scale`` says; the ``Scale`` it has then."""
    kind, replicas = target.kind, section(scale, "spec").get("replicas", 0)
    check_name(target, {"metadata": section(scale, "metadata")})
    if not isinstance(replicas, int) or replicas < 0:
        raise _negative(target, replicas)
    change: Document = {}
    *steps, last = kind.scale.wanted.strip(".").split(".")
    here = change
    for step in steps:
        here = here.setdefault(step, {})
    here[last] = replicas
    if revision := section(scale, "metadata").get("resourceVersion"):
        change["metadata"] = {"resourceVersion": revision}
    workload = replace(target, subresource="")
    written = operations.patch(workload, change, content_type=MERGE_PATCH, options=options)
    return scale_of(kind, written.document)


def _negative(target: Target, replicas: Any) -> errors.ApiError:
    """Custom kinds are told by the path of their own field."""
    kind, name = target.kind, target.name
    if kind.custom:
        text = "should be a non-negative integer"
        problem = errors.invalid_value(kind.scale.wanted, replicas, text)
        return errors.invalid(kind.kind, kind.group, name, errors=[problem])
    problem = errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
    return errors.invalid("Scale", "autoscaling", name, errors=[problem])
