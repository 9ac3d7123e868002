"""The stock kinds that the sandbox serves, as rows of the registry."""

from __future__ import annotations

from typing import NamedTuple

from app.sandbox.apiserver import event_views
from app.sandbox.apiserver.columns import STOCK_COLUMNS
from app.sandbox.apiserver.registry import ResourceKind, storage_key, unchanged
from app.wire.pod_columns import POD_COLUMNS


class _Row(NamedTuple):
    plural: str
    kind: str
    short_names: str = ""
    subresources: str = ""
    namespaced: bool = True
    categories: str = ""


_CORE = (
    _Row("bindings", "Binding"),
    _Row("configmaps", "ConfigMap", "cm"),
    _Row("endpoints", "Endpoints", "ep"),
    _Row("events", "Event", "ev"),
    _Row("namespaces", "Namespace", "ns", "status", namespaced=False),
    _Row("nodes", "Node", "no", "status", namespaced=False),
    _Row("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", "status"),
    _Row("persistentvolumes", "PersistentVolume", "pv", "status", namespaced=False),
    _Row(
        "pods", "Pod", "po", "status binding eviction log attach exec portforward", categories="all"
    ),
    _Row("resourcequotas", "ResourceQuota", "quota", "status"),
    _Row("secrets", "Secret"),
    _Row("serviceaccounts", "ServiceAccount", "sa"),
    _Row("services", "Service", "svc", "status", categories="all"),
)
_GROUPS: dict[tuple[str, str], tuple[_Row, ...]] = {
    ("apps", "v1"): (
        _Row("daemonsets", "DaemonSet", "ds", "status", categories="all"),
        _Row("deployments", "Deployment", "deploy", "status scale", categories="all"),
        _Row("replicasets", "ReplicaSet", "rs", "status scale", categories="all"),
        _Row("statefulsets", "StatefulSet", "sts", "status scale", categories="all"),
    ),
    ("authentication.k8s.io", "v1"): (
        _Row("selfsubjectreviews", "SelfSubjectReview", namespaced=False),
    ),
    ("authorization.k8s.io", "v1"): (
        _Row("localsubjectaccessreviews", "LocalSubjectAccessReview"),
        _Row("selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False),
        _Row("selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False),
        _Row("subjectaccessreviews", "SubjectAccessReview", namespaced=False),
    ),
    ("batch", "v1"): (
        _Row("cronjobs", "CronJob", "cj", "status", categories="all"),
        _Row("jobs", "Job", "", "status", categories="all"),
    ),
    ("events.k8s.io", "v1"): (_Row("events", "Event", "ev"),),
    ("networking.k8s.io", "v1"): (_Row("networkpolicies", "NetworkPolicy", "netpol"),),
    ("policy", "v1"): (_Row("poddisruptionbudgets", "PodDisruptionBudget", "pdb", "status"),),
    ("rbac.authorization.k8s.io", "v1"): (
        _Row("clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        _Row("clusterroles", "ClusterRole", namespaced=False),
        _Row("rolebindings", "RoleBinding"),
        _Row("roles", "Role"),
    ),
    ("resource.k8s.io", "v1"): (
        _Row("deviceclasses", "DeviceClass", namespaced=False),
        _Row("resourceclaims", "ResourceClaim", "", "status"),
        _Row("resourceclaimtemplates", "ResourceClaimTemplate"),
        _Row("resourceslices", "ResourceSlice", namespaced=False),
    ),
    ("scheduling.k8s.io", "v1"): (
        _Row("priorityclasses", "PriorityClass", "pc", namespaced=False),
    ),
    ("storage.k8s.io", "v1"): (
        _Row("csidrivers", "CSIDriver", namespaced=False),
        _Row("csinodes", "CSINode", namespaced=False),
        _Row("csistoragecapacities", "CSIStorageCapacity"),
        _Row("storageclasses", "StorageClass", "sc", namespaced=False),
        _Row("volumeattachments", "VolumeAttachment", namespaced=False),
    ),
    ("coordination.k8s.io", "v1"): (_Row("leases", "Lease"),),
    ("discovery.k8s.io", "v1"): (_Row("endpointslices", "EndpointSlice"),),
    ("admissionregistration.k8s.io", "v1"): (
        _Row("mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False),
        _Row("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", namespaced=False),
        _Row("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False),
        _Row("validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False),
        _Row(
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            namespaced=False,
        ),
        _Row("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False),
    ),
    ("apiextensions.k8s.io", "v1"): (
        _Row("customresourcedefinitions", "CustomResourceDefinition", "crd crds", "status", False),
    ),
}

POSTED_ONLY = frozenset(
    {
        "bindings",
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
    }
)
"""Kinds that are only posted, never stored."""

KEPT_APART = frozenset({"/namespaces"})
"""Kinds whose objects are deleted one at a time only."""

NOT_SIMULATED = frozenset({"attach", "exec", "portforward"})
"""Subresources of pods that need a container."""

UNTENDED = frozenset(
    {
        "apps/daemonsets",
        "apps/deployments",
        "apps/replicasets",
        "apps/statefulsets",
        "batch/cronjobs",
        "batch/jobs",
    }
)
"""Kinds that are stored, but for which no controller runs."""


def _resource(group: str, version: str, row: _Row) -> ResourceKind:
    is_event_view = group == "events.k8s.io"
    return ResourceKind(
        group=group,
        version=version,
        plural=row.plural,
        kind=row.kind,
        namespaced=row.namespaced,
        singular=row.kind.lower(),
        short_names=tuple(row.short_names.split()),
        categories=tuple(row.categories.split()),
        subresources=frozenset(row.subresources.split()),
        columns=POD_COLUMNS if row.plural == "pods" else STOCK_COLUMNS.get(row.plural, ()),
        storage=storage_key("", "events") if is_event_view else "",
        to_storage=event_views.to_core if is_event_view else unchanged,
        from_storage=event_views.from_core if is_event_view else unchanged,
    )


def builtin_kinds() -> list[ResourceKind]:
    """The rows of the core group first, then those of the other groups."""
    core = [_resource("", "v1", row) for row in _CORE]
    rest = [
        _resource(group, version, row) for (group, version), rows in _GROUPS.items() for row in rows
    ]
    return core + rest
