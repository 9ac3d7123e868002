"""The types of a pod template's fields, as core/v1 declares them.

A task's template has no schema of its own: `command: sleep 1` or `value: 5` in place of a list or a
text would be stored and then fail at every pod. What is ``Open`` (volumes that have left
Kubernetes, Windows) may hold anything. Fields that are not named here are warned of: the API server
stores them with the job and leaves them out of its pods, unless it is of a later version.
"""

from typing import Final

from app.wire.findings import Findings
from app.wire.shapes import Shapes, check_shape, shapes_of

_ROOT: Final = "PodTemplateSpec"
_CLAIM: Final = "PersistentVolumeClaimSpec"

_DECLARED: Final[Shapes] = {
    "PodTemplateSpec": {"ObjectMeta": "metadata", "PodSpec": "spec"},
    "ObjectMeta": {
        "[text]": "finalizers",
        "number": "deletionGracePeriodSeconds generation",
        "text": "creationTimestamp deletionTimestamp generateName name namespace resourceVersion "
        "selfLink uid",
        "{text}": "annotations labels",
        "[Open]": "managedFields ownerReferences",
    },
    "PodSpec": {
        "flag": "automountServiceAccountToken enableServiceLinks hostIPC hostNetwork hostPID "
        "hostUsers setHostnameAsFQDN shareProcessNamespace",
        "number": "activeDeadlineSeconds terminationGracePeriodSeconds",
        "small": "priority",
        "text": "dnsPolicy hostname hostnameOverride nodeName preemptionPolicy priorityClassName "
        "restartPolicy runtimeClassName schedulerName serviceAccount serviceAccountName "
        "subdomain",
        "{quantity}": "overhead",
        "{text}": "nodeSelector",
        "Affinity": "affinity",
        "Open": "schedulingGroup",
        "PodDNSConfig": "dnsConfig",
        "PodOS": "os",
        "PodSecurityContext": "securityContext",
        "ResourceRequirements": "resources",
        "[Container]": "containers initContainers",
        "[HostAlias]": "hostAliases",
        "[LocalObjectReference]": "imagePullSecrets",
        "[Open]": "ephemeralContainers evictionResponders",
        "[PodReadinessGate]": "readinessGates",
        "[PodResourceClaim]": "resourceClaims",
        "[PodSchedulingGate]": "schedulingGates",
        "[Toleration]": "tolerations",
        "[TopologySpreadConstraint]": "topologySpreadConstraints",
        "[Volume]": "volumes",
    },
    "Affinity": {
        "NodeAffinity": "nodeAffinity",
        "PodAffinity": "podAffinity",
        "PodAntiAffinity": "podAntiAffinity",
    },
    "Container": {
        "[text]": "args command",
        "flag": "stdin stdinOnce tty",
        "text": "image imagePullPolicy name restartPolicy terminationMessagePath "
        "terminationMessagePolicy workingDir",
        "Lifecycle": "lifecycle",
        "Probe": "livenessProbe readinessProbe startupProbe",
        "ResourceRequirements": "resources",
        "SecurityContext": "securityContext",
        "[ContainerPort]": "ports",
        "[ContainerResizePolicy]": "resizePolicy",
        "[EnvFromSource]": "envFrom",
        "[EnvVar]": "env",
        "[Open]": "restartPolicyRules",
        "[VolumeDevice]": "volumeDevices",
        "[VolumeMount]": "volumeMounts",
    },
    "PodDNSConfig": {"[text]": "nameservers searches", "[PodDNSConfigOption]": "options"},
    "HostAlias": {"[text]": "hostnames", "text": "ip"},
    "LocalObjectReference": {"text": "name"},
    "PodOS": {"text": "name"},
    "PodReadinessGate": {"text": "conditionType"},
    "PodResourceClaim": {"text": "name resourceClaimName resourceClaimTemplateName"},
    "ResourceRequirements": {"{quantity}": "limits requests", "[ResourceClaim]": "claims"},
    "PodSchedulingGate": {"text": "name"},
    "PodSecurityContext": {
        "[number]": "supplementalGroups",
        "flag": "runAsNonRoot",
        "number": "fsGroup runAsGroup runAsUser",
        "text": "fsGroupChangePolicy seLinuxChangePolicy supplementalGroupsPolicy",
        "AppArmorProfile": "appArmorProfile",
        "Open": "windowsOptions",
        "SELinuxOptions": "seLinuxOptions",
        "SeccompProfile": "seccompProfile",
        "[Sysctl]": "sysctls",
    },
    "Toleration": {"number": "tolerationSeconds", "text": "effect key operator value"},
    "TopologySpreadConstraint": {
        "[text]": "matchLabelKeys",
        "small": "maxSkew minDomains",
        "text": "nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable",
        "LabelSelector": "labelSelector",
    },
    "Volume": {
        "text": "name",
        "CSIVolumeSource": "csi",
        "ConfigMapVolumeSource": "configMap",
        "DownwardAPIVolumeSource": "downwardAPI",
        "EmptyDirVolumeSource": "emptyDir",
        "EphemeralVolumeSource": "ephemeral",
        "HostPathVolumeSource": "hostPath",
        "ImageVolumeSource": "image",
        "NFSVolumeSource": "nfs",
        "Open": "awsElasticBlockStore azureDisk azureFile cephfs cinder fc flexVolume flocker "
        "gcePersistentDisk gitRepo glusterfs iscsi photonPersistentDisk portworxVolume "
        "quobyte rbd scaleIO storageos vsphereVolume",
        "PersistentVolumeClaimVolumeSource": "persistentVolumeClaim",
        "ProjectedVolumeSource": "projected",
        "SecretVolumeSource": "secret",
    },
    "NodeAffinity": {
        "NodeSelector": "requiredDuringSchedulingIgnoredDuringExecution",
        "[PreferredSchedulingTerm]": "preferredDuringSchedulingIgnoredDuringExecution",
    },
    "PodAffinity": {
        "[PodAffinityTerm]": "requiredDuringSchedulingIgnoredDuringExecution",
        "[WeightedPodAffinityTerm]": "preferredDuringSchedulingIgnoredDuringExecution",
    },
    "PodAntiAffinity": {
        "[PodAffinityTerm]": "requiredDuringSchedulingIgnoredDuringExecution",
        "[WeightedPodAffinityTerm]": "preferredDuringSchedulingIgnoredDuringExecution",
    },
    "EnvVar": {"text": "name value", "EnvVarSource": "valueFrom"},
    "EnvFromSource": {
        "text": "prefix",
        "ConfigMapEnvSource": "configMapRef",
        "SecretEnvSource": "secretRef",
    },
    "Lifecycle": {"text": "stopSignal", "LifecycleHandler": "postStart preStop"},
    "Probe": {
        "number": "terminationGracePeriodSeconds",
        "small": "failureThreshold initialDelaySeconds periodSeconds successThreshold "
        "timeoutSeconds",
        "ExecAction": "exec",
        "GRPCAction": "grpc",
        "HTTPGetAction": "httpGet",
        "TCPSocketAction": "tcpSocket",
    },
    "ContainerPort": {"small": "containerPort hostPort", "text": "hostIP name protocol"},
    "ContainerResizePolicy": {"text": "resourceName restartPolicy"},
    "SecurityContext": {
        "flag": "allowPrivilegeEscalation privileged readOnlyRootFilesystem runAsNonRoot",
        "number": "runAsGroup runAsUser",
        "text": "procMount",
        "AppArmorProfile": "appArmorProfile",
        "Capabilities": "capabilities",
        "Open": "windowsOptions",
        "SELinuxOptions": "seLinuxOptions",
        "SeccompProfile": "seccompProfile",
    },
    "VolumeDevice": {"text": "devicePath name"},
    "VolumeMount": {
        "[text]": "bindMountOptions",
        "flag": "readOnly",
        "text": "mountPath mountPropagation name recursiveReadOnly subPath subPathExpr",
    },
    "PodDNSConfigOption": {"text": "name value"},
    "ResourceClaim": {"text": "name request"},
    "AppArmorProfile": {"text": "localhostProfile type"},
    "SELinuxOptions": {"text": "level role type user"},
    "SeccompProfile": {"text": "localhostProfile type"},
    "Sysctl": {"text": "name value"},
    "LabelSelector": {"{text}": "matchLabels", "[LabelSelectorRequirement]": "matchExpressions"},
    "ConfigMapVolumeSource": {
        "flag": "optional",
        "number": "defaultUser",
        "small": "defaultMode",
        "text": "name",
        "[KeyToPath]": "items",
    },
    "CSIVolumeSource": {
        "flag": "readOnly",
        "text": "driver fsType",
        "{text}": "volumeAttributes",
        "LocalObjectReference": "nodePublishSecretRef",
    },
    "DownwardAPIVolumeSource": {
        "number": "defaultUser",
        "small": "defaultMode",
        "[DownwardAPIVolumeFile]": "items",
    },
    "EmptyDirVolumeSource": {"small": "mode", "quantity": "sizeLimit", "text": "medium"},
    "EphemeralVolumeSource": {"PersistentVolumeClaimTemplate": "volumeClaimTemplate"},
    "HostPathVolumeSource": {"text": "path type"},
    "ImageVolumeSource": {"text": "pullPolicy reference"},
    "NFSVolumeSource": {"flag": "readOnly", "text": "path server"},
    "PersistentVolumeClaimVolumeSource": {"flag": "readOnly", "text": "claimName"},
    "ProjectedVolumeSource": {
        "number": "defaultUser",
        "small": "defaultMode",
        "[VolumeProjection]": "sources",
    },
    "SecretVolumeSource": {
        "flag": "optional",
        "number": "defaultUser",
        "small": "defaultMode",
        "text": "secretName",
        "[KeyToPath]": "items",
    },
    "PreferredSchedulingTerm": {"small": "weight", "NodeSelectorTerm": "preference"},
    "NodeSelector": {"[NodeSelectorTerm]": "nodeSelectorTerms"},
    "WeightedPodAffinityTerm": {"small": "weight", "PodAffinityTerm": "podAffinityTerm"},
    "PodAffinityTerm": {
        "[text]": "matchLabelKeys mismatchLabelKeys namespaces",
        "text": "topologyKey",
        "LabelSelector": "labelSelector namespaceSelector",
    },
    "EnvVarSource": {
        "ConfigMapKeySelector": "configMapKeyRef",
        "FileKeySelector": "fileKeyRef",
        "ObjectFieldSelector": "fieldRef",
        "ResourceFieldSelector": "resourceFieldRef",
        "SecretKeySelector": "secretKeyRef",
    },
    "ConfigMapEnvSource": {"flag": "optional", "text": "name"},
    "SecretEnvSource": {"flag": "optional", "text": "name"},
    "LifecycleHandler": {
        "ExecAction": "exec",
        "HTTPGetAction": "httpGet",
        "SleepAction": "sleep",
        "TCPSocketAction": "tcpSocket",
    },
    "ExecAction": {"[text]": "command"},
    "GRPCAction": {"small": "port", "text": "mode service"},
    "HTTPGetAction": {
        "int-or-string": "port",
        "text": "host path protocol scheme",
        "[HTTPHeader]": "httpHeaders",
    },
    "TCPSocketAction": {"int-or-string": "port", "text": "host"},
    "Capabilities": {"[text]": "add drop"},
    "LabelSelectorRequirement": {"[text]": "values", "text": "key operator"},
    "KeyToPath": {"number": "user", "small": "mode", "text": "key path"},
    "DownwardAPIVolumeFile": {
        "number": "user",
        "small": "mode",
        "text": "path",
        "ObjectFieldSelector": "fieldRef",
        "ResourceFieldSelector": "resourceFieldRef",
    },
    "PersistentVolumeClaimTemplate": {
        "ObjectMeta": "metadata",
        "PersistentVolumeClaimSpec": "spec",
    },
    "VolumeProjection": {
        "ConfigMapProjection": "configMap",
        "DownwardAPIProjection": "downwardAPI",
        "Open": "clusterTrustBundle podCertificate",
        "SecretProjection": "secret",
        "ServiceAccountTokenProjection": "serviceAccountToken",
    },
    "NodeSelectorTerm": {"[NodeSelectorRequirement]": "matchExpressions matchFields"},
    "ConfigMapKeySelector": {"flag": "optional", "text": "key name"},
    "ObjectFieldSelector": {"text": "apiVersion fieldPath"},
    "FileKeySelector": {"flag": "optional", "text": "key path volumeName"},
    "ResourceFieldSelector": {"quantity": "divisor", "text": "containerName resource"},
    "SecretKeySelector": {"flag": "optional", "text": "key name"},
    "SleepAction": {"number": "seconds"},
    "HTTPHeader": {"text": "name value"},
    "PersistentVolumeClaimSpec": {
        "[text]": "accessModes",
        "text": "storageClassName volumeAttributesClassName volumeMode volumeName",
        "LabelSelector": "selector",
        "TypedLocalObjectReference": "dataSource",
        "TypedObjectReference": "dataSourceRef",
        "VolumeResourceRequirements": "resources",
    },
    "ConfigMapProjection": {"flag": "optional", "text": "name", "[KeyToPath]": "items"},
    "DownwardAPIProjection": {"[DownwardAPIVolumeFile]": "items"},
    "SecretProjection": {"flag": "optional", "text": "name", "[KeyToPath]": "items"},
    "ServiceAccountTokenProjection": {"number": "expirationSeconds user", "text": "audience path"},
    "NodeSelectorRequirement": {"[text]": "values", "text": "key operator"},
    "TypedLocalObjectReference": {"text": "apiGroup kind name"},
    "TypedObjectReference": {"text": "apiGroup kind name namespace"},
    "VolumeResourceRequirements": {"{quantity}": "limits requests"},
}

SHAPES: Final = shapes_of(_DECLARED)

_WHOLE: Final = frozenset(
    {"Container", "ContainerPort", "EnvVar", "PodSchedulingGate", "Volume", "VolumeMount"}
)
"""Types in lists of which null is an item without a name to the API server.

It refuses such an item in each pod; and code that adds to a pod (a gate, a variable, a volume)
looks at the names that are there.
"""


def check_types(template: object, path: str, findings: Findings) -> None:
    """What in the pod template at ``path`` is of another type, missing, or of no field."""
    check_shape(template, _ROOT, SHAPES, path=path, findings=findings, whole=_WHOLE)


def check_claim_types(claim: object, path: str, findings: Findings) -> None:
    """Check the types of a claim's spec, which has no schema of its own either."""
    check_shape(claim, _CLAIM, SHAPES, path=path, findings=findings)
