"""The least of OpenAPI v3 that stock ``kubectl`` needs to trust the server with validation.

``kubectl apply`` looks for the kind's PATCH operation and its query parameters ``fieldValidation``
and ``dryRun``; with both it leaves the checking to the server. Custom kinds carry their schema too,
which serves ``kubectl explain``.
"""

from __future__ import annotations

from app.sandbox.apiserver.registry import Registry, ResourceKind
from app.wire.documents import Document, items, section

_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


def _root(kind: ResourceKind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def index(registry: Registry, *, revision: int) -> Document:
    """``/openapi/v3``: where the document of each group version is."""
    roots = dict.fromkeys(_root(kind) for kind in registry.all())
    return {
        "paths": {
            root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={revision}"} for root in roots
        }
    }


def document(registry: Registry, root: str, *, crds: list[Document]) -> Document | None:
    """``/openapi/v3/apis/batch/v1``; None where nothing is served."""
    kinds = [kind for kind in registry.all() if _root(kind) == root]
    if not kinds:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": {_path(kind): _operations(kind) for kind in kinds},
        "components": {"schemas": {_schema_name(kind): _schema(kind, crds) for kind in kinds}},
    }


def _path(kind: ResourceKind) -> str:
    scope = "namespaces/{namespace}/" if kind.namespaced else ""
    return f"/{_root(kind)}/{scope}{kind.plural}/{{name}}"


def _identity(kind: ResourceKind) -> Document:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _schema_name(kind: ResourceKind) -> str:
    reverse = ".".join(reversed(kind.group.split("."))) if kind.group else "io.k8s.api.core"
    return f"{reverse}.{kind.version}.{kind.kind}"


def _operations(kind: ResourceKind) -> Document:
    reference = {"$ref": f"#/components/schemas/{_schema_name(kind)}"}
    answer = {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}}
    return {
        verb: {
            "parameters": _PARAMETERS,
            "responses": answer,
            "x-kubernetes-action": verb,
            "x-kubernetes-group-version-kind": _identity(kind),
        }
        for verb in ("get", "put", "patch", "delete")
    }


def _schema(kind: ResourceKind, crds: list[Document]) -> Document:
    found: Document = {"type": "object"}
    for crd in crds:
        spec = section(crd, "spec")
        if spec.get("group") == kind.group and section(spec, "names").get("plural") == kind.plural:
            for version in items(spec, "versions"):
                if version.get("name") == kind.version:
                    found = section(version, "schema", "openAPIV3Schema")
    return {**found, "x-kubernetes-group-version-kind": [_identity(kind)]}
