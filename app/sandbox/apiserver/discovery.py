"""What ``kubectl`` asks first: which groups, versions and kinds are there.

Both forms are served: the aggregated one (one document per root) and the old one (a document per
group version).
"""

from __future__ import annotations

from app.sandbox.apiserver.builtin import KEPT_APART, POSTED_ONLY
from app.sandbox.apiserver.registry import VERBS, Registry, ResourceKind
from app.wire.documents import Document

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
}
_SUBRESOURCE_VERBS = {
    "binding": ["create"],
    "eviction": ["create"],
    "log": ["get"],
    "attach": ["create", "get"],
    "exec": ["create", "get"],
    "portforward": ["create", "get"],
}


def _verbs(kind: ResourceKind) -> list[str]:
    if kind.plural in POSTED_ONLY:
        return ["create"]
    return [verb for verb in VERBS if verb != "deletecollection" or kind.key not in KEPT_APART]


def _subresource_verbs(name: str) -> list[str]:
    return _SUBRESOURCE_VERBS.get(name, ["get", "patch", "update"])


def aggregated(registry: Registry, *, core: bool) -> Document:
    """``APIGroupDiscoveryList`` for ``/api`` (core) or ``/apis``."""
    groups = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "freshness": "Current",
                    "resources": [_entry(kind) for kind in registry.of_group(group, version)],
                }
                for version in versions
            ],
        }
        for group, versions in registry.groups().items()
        if (group == "") is core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups,
    }


def _entry(kind: ResourceKind) -> Document:
    entry: Document = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [_subentry(kind, name) for name in sorted(kind.subresources)]
    return entry


def _subentry(kind: ResourceKind, name: str) -> Document:
    group, version, shown = _SUBRESOURCE_KINDS.get(name, (kind.group, kind.version, kind.kind))
    return {
        "subresource": name,
        "responseKind": {"group": group, "version": version, "kind": shown},
        "verbs": _subresource_verbs(name),
    }


def core_versions(host: str) -> Document:
    """The APIVersions document of ``/api``; clients of any address are sent to ``host``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    }


def _group(name: str, versions: list[str]) -> Document:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def group_list(registry: Registry) -> Document:
    """The APIGroupList document of ``/apis``: all groups but the core group."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in registry.groups().items() if name],
    }


def one_group(registry: Registry, name: str) -> Document | None:
    """The APIGroup document of ``/apis/<name>``; None where the group is not served."""
    versions = registry.groups().get(name)
    if not versions:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resource_list(registry: Registry, group: str, version: str) -> Document | None:
    """The APIResourceList document of a group version; None where nothing of it is served."""
    kinds = registry.of_group(group, version)
    if not kinds:
        return None
    resources: list[Document] = []
    for kind in kinds:
        resources.append(_old_entry(kind))
        resources += [_old_subentry(kind, name) for name in sorted(kind.subresources)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version,
        "resources": resources,
    }


def _old_entry(kind: ResourceKind) -> Document:
    entry: Document = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    return entry


def _old_subentry(kind: ResourceKind, name: str) -> Document:
    group, version, shown = _SUBRESOURCE_KINDS.get(name, (kind.group, kind.version, kind.kind))
    return {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "group": group,
        "version": version,
        "kind": shown,
        "verbs": _subresource_verbs(name),
    }


def version_info() -> Document:
    """The document of ``/version``: the Kubernetes release that the sandbox imitates."""
    return {
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.3-pumice-sandbox",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "python",
    }
