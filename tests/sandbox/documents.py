"""Documents that the sandbox's tests are made of."""

from __future__ import annotations

from app.sandbox.apiserver.binding import bind
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import SimClock
from app.wire.documents import Document, ObjectName

WIDGET_CRD: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "shortNames": ["wg"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 9},
                                    "count": {"type": "integer", "format": "int32"},
                                    "colour": {
                                        "type": "string",
                                        "enum": ["red", "blue"],
                                        "default": "red",
                                    },
                                    "template": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"phase": {"type": "string"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def widget(
    name: str = "w", *, spec: Document | None = None, metadata: Document | None = None
) -> Document:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": {"size": 1} if spec is None else spec,
    }


def pod(name: str = "p", *, metadata: Document | None = None, **spec: object) -> Document:
    """A pod with one container; keywords with underscores are fields of the spec."""
    container: Document = {"name": "c", "image": "busybox"}
    for field in ("command", "resources", "ports"):
        if field in spec:
            container[field] = spec.pop(field)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": {"containers": [container], **spec},
    }


def cpu(amount: str) -> Document:
    return {"requests": {"cpu": amount}}


def node(name: str, *, cpus: str = "4", **more: object) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": more,
        "status": {"capacity": {"cpu": cpus, "memory": "16Gi", "pods": "110"}},
    }


def make_server(*documents: Document, clock: SimClock | None = None) -> ApiServer:
    server = ApiServer(clock=clock or SimClock(), crds=[WIDGET_CRD], seed=1)
    for document in documents:
        server.create(document)
    return server


def at(name: str, namespace: str = "default") -> ObjectName:
    return ObjectName(namespace, name)


def stored_pod(server: ApiServer, name: str) -> Document:
    found = server.store.get("/pods", at(name))
    assert found is not None, f"no pod {name}"
    return found


def bind_pod(server: ApiServer, name: str, to: str, **metadata: object) -> None:
    """Bind a pod (of ``namespace``, if given) as a scheduler would."""
    home = str(metadata.pop("namespace", "default"))
    target = server.target("/pods", at(name, home), subresource="binding")
    binding = {"metadata": {"name": name, **metadata}, "target": {"name": to}}
    bind(server.operations, target, binding)
