"""The kinds there are, and where the API server serves them."""

from dataclasses import dataclass
from urllib.parse import quote

from app.wire.unstructured import Key


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind and where the API server serves it; ``api_version`` is ``group/version`` or ``v1``."""

    kind: str
    api_version: str
    plural: str
    namespaced: bool = True

    @property
    def root(self) -> str:
        """The path of its group and version."""
        prefix = "api" if self.api_version == "v1" else "apis"
        return f"/{prefix}/{self.api_version}"

    def path(self, key: Key | None = None, *, namespace: str = "", subresource: str = "") -> str:
        """The path of an object, or of all objects (of a ``namespace``)."""
        inside = key.namespace if key is not None else namespace
        parts = [self.root]
        if self.namespaced and inside:
            parts += ["namespaces", _segment(inside)]
        parts.append(self.plural)
        if key is not None:
            parts.append(_segment(key.name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def __str__(self) -> str:
        group = self.api_version.rpartition("/")[0]
        return f"{self.plural}.{group}" if group else self.plural


_BATCH = "batch.volcano.sh/v1alpha1"
_SCHEDULING = "scheduling.volcano.sh/v1beta1"
_FLOW = "flow.volcano.sh/v1alpha1"

JOBS = Resource("Job", _BATCH, "jobs")
CRON_JOBS = Resource("CronJob", _BATCH, "cronjobs")
POD_GROUPS = Resource("PodGroup", _SCHEDULING, "podgroups")
QUEUES = Resource("Queue", _SCHEDULING, "queues", namespaced=False)
COMMANDS = Resource("Command", "bus.volcano.sh/v1alpha1", "commands")
JOB_FLOWS = Resource("JobFlow", _FLOW, "jobflows")
JOB_TEMPLATES = Resource("JobTemplate", _FLOW, "jobtemplates")
HYPER_NODES = Resource("HyperNode", "topology.volcano.sh/v1alpha1", "hypernodes", namespaced=False)
COLOCATION_CONFIGURATIONS = Resource(
    "ColocationConfiguration", "config.volcano.sh/v1alpha1", "colocationconfigurations"
)
NUMA_TOPOLOGIES = Resource(
    "Numatopology", "nodeinfo.volcano.sh/v1alpha1", "numatopologies", namespaced=False
)

PODS = Resource("Pod", "v1", "pods")
NODES = Resource("Node", "v1", "nodes", namespaced=False)
SERVICES = Resource("Service", "v1", "services")
CONFIG_MAPS = Resource("ConfigMap", "v1", "configmaps")
SECRETS = Resource("Secret", "v1", "secrets")
CLAIMS = Resource("PersistentVolumeClaim", "v1", "persistentvolumeclaims")
NETWORK_POLICIES = Resource("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies")
PRIORITY_CLASSES = Resource(
    "PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", namespaced=False
)
REPLICA_SETS = Resource("ReplicaSet", "apps/v1", "replicasets")
STATEFUL_SETS = Resource("StatefulSet", "apps/v1", "statefulsets")
DAEMON_SETS = Resource("DaemonSet", "apps/v1", "daemonsets")
KUBERNETES_JOBS = Resource("Job", "batch/v1", "jobs")
GATHERING = {
    (each.api_version, each.kind): each
    for each in (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, KUBERNETES_JOBS)
}
"""Owners of pods that may say how many of those belong together (volcano.md §5.3)."""


def _segment(name: str) -> str:
    """``name`` as one segment of a path, whatever is in it."""
    return name.replace(".", "%2E") if name in {".", ".."} else quote(name, safe="")
