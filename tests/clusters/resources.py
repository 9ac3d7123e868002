"""Where the API server serves each kind: group, version, plural, and whether it is namespaced."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """One served resource, addressed by paths relative to the API server."""

    api_version: str
    plural: str
    kind: str
    namespaced: bool = True

    def path(self, name: str = "", *, namespace: str | None = None, subresource: str = "") -> str:
        """Return the path of the collection, of one object, or of a subresource of it."""
        root = "/apis/" if "/" in self.api_version else "/api/"
        place = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{self.api_version}{place}/{self.plural}{tail}"


PODS = Resource("v1", "pods", "Pod")
NODES = Resource("v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("v1", "events", "Event")
CONFIG_MAPS = Resource("v1", "configmaps", "ConfigMap")
SECRETS = Resource("v1", "secrets", "Secret")
SERVICES = Resource("v1", "services", "Service")
SERVICE_ACCOUNTS = Resource("v1", "serviceaccounts", "ServiceAccount")
RESOURCE_QUOTAS = Resource("v1", "resourcequotas", "ResourceQuota")
CLAIMS = Resource("v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("v1", "persistentvolumes", "PersistentVolume", namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io/v1", "storageclasses", "StorageClass", namespaced=False)
ATTACHMENTS = Resource(
    "storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", namespaced=False
)
CSI_NODES = Resource("storage.k8s.io/v1", "csinodes", "CSINode", namespaced=False)
LEASES = Resource("coordination.k8s.io/v1", "leases", "Lease")
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False
)
DISRUPTION_BUDGETS = Resource("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io/v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
DEVICE_CLASSES = Resource("resource.k8s.io/v1", "deviceclasses", "DeviceClass", namespaced=False)
DEVICE_SLICES = Resource("resource.k8s.io/v1", "resourceslices", "ResourceSlice", namespaced=False)
DEVICE_CLAIMS = Resource("resource.k8s.io/v1", "resourceclaims", "ResourceClaim")
DEVICE_CLAIM_TEMPLATES = Resource(
    "resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate"
)
QUEUES = Resource("scheduling.volcano.sh/v1beta1", "queues", "Queue", namespaced=False)
NUMA_TOPOLOGIES = Resource(
    "nodeinfo.volcano.sh/v1alpha1", "numatopologies", "Numatopology", namespaced=False
)
HYPER_NODES = Resource("topology.volcano.sh/v1alpha1", "hypernodes", "HyperNode", namespaced=False)
COLOCATION_CONFIGURATIONS = Resource(
    "config.volcano.sh/v1alpha1", "colocationconfigurations", "ColocationConfiguration"
)
POD_GROUPS = Resource("scheduling.volcano.sh/v1beta1", "podgroups", "PodGroup")
JOBS = Resource("batch.volcano.sh/v1alpha1", "jobs", "Job")
COMMANDS = Resource("bus.volcano.sh/v1alpha1", "commands", "Command")
CRON_JOBS = Resource("batch.volcano.sh/v1alpha1", "cronjobs", "CronJob")
JOB_FLOWS = Resource("flow.volcano.sh/v1alpha1", "jobflows", "JobFlow")
JOB_TEMPLATES = Resource("flow.volcano.sh/v1alpha1", "jobtemplates", "JobTemplate")
