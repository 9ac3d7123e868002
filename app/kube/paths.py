"""Paths of the objects that are written by name.

Names are escaped: some arrive in requests of others and must not be able to leave their segment.
"""

from urllib.parse import quote

SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"
QUEUES = f"{SCHEDULING}/queues"


def node(name: str) -> str:
    """One node."""
    return f"/api/v1/nodes/{_segment(name)}"


def pod(namespace: str, name: str) -> str:
    """One pod."""
    return f"/api/v1/namespaces/{_segment(namespace)}/pods/{_segment(name)}"


def events(namespace: str) -> str:
    """The core/v1 events of a namespace."""
    return f"/api/v1/namespaces/{_segment(namespace)}/events"


def event(namespace: str, name: str) -> str:
    """One core/v1 event."""
    return f"{events(namespace)}/{_segment(name)}"


def config_maps(namespace: str) -> str:
    """The ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{_segment(namespace)}/configmaps"


def config_map(namespace: str, name: str) -> str:
    """One ConfigMap."""
    return f"{config_maps(namespace)}/{_segment(name)}"


def pod_group(namespace: str, name: str) -> str:
    """One PodGroup."""
    return f"{SCHEDULING}/namespaces/{_segment(namespace)}/podgroups/{_segment(name)}"


def queue(name: str) -> str:
    """One Queue."""
    return f"{QUEUES}/{_segment(name)}"


def leases(namespace: str) -> str:
    """The Leases of a namespace."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{_segment(namespace)}/leases"


def lease(namespace: str, name: str) -> str:
    """One Lease."""
    return f"{leases(namespace)}/{_segment(name)}"


def _segment(name: str) -> str:
    if name in {".", ".."}:
        return name.replace(".", "%2E")
    return quote(name, safe="")
