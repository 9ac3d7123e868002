"""Users who are not administrators, to see what they may do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.clusters.client import ApiClient, Object, tls_context
from tests.clusters.controlplane import ControlPlane

RBAC = "rbac.authorization.k8s.io"


def account(
    cluster: ControlPlane, namespace: str, name: str, own: Object, *rules: Object
) -> Iterator[ApiClient]:
    """A user with the rights of ``own`` in the namespace, and of ``rules`` in the cluster."""
    api = cluster.api
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    metadata = {"name": name, "namespace": namespace}
    whole = {"name": f"{namespace}-{name}"}
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [own]},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": subjects,
        },
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": whole, "rules": [*rules]},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": whole,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": whole["name"]},
            "subjects": subjects,
        },
    ]
    for item in made:
        api.create(item)
    token = cluster.service_account_token(namespace, name)
    trust = tls_context(cluster.authority.certificate)
    with ApiClient(cluster.url, verify=trust, token=token) as client:
        yield client
    for item in made:
        if "namespace" not in item["metadata"]:
            api.delete(api.resource_of(item), item["metadata"]["name"])
