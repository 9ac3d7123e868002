"""The types of a pod template's fields, as core/v1 declares them.

A task's template has no schema of its own: `command: sleep 1` or `value: 5` in place of a list or a
text would be stored and then fail at every pod. Fields that are not named here (of volumes that
have left Kubernetes, of Windows, of later versions) may hold anything.

Read ``"Container": {"[text]": "args command"}`` as: ``args`` and ``command`` of a container are
lists of texts. ``{…}`` is a map from names to what is inside, ``Open`` an object that may hold
anything; null is allowed everywhere, as it is in a pod.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.webhooks.findings import Findings, at
from app.webhooks.reading import amount

_ROOT: Final = "PodTemplateSpec"
_MOST_QUOTED: Final = 60

Shapes = Mapping[str, Mapping[str, str]]
"""The type of each field of each kind of object."""


def shapes_of(declared: Shapes) -> Shapes:
    """The table the other way round: from fields to types."""
    return {
        name: {field: kind for kind, fields in by_kind.items() for field in fields.split()}
        for name, by_kind in declared.items()
    }


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
        "number": "activeDeadlineSeconds priority terminationGracePeriodSeconds",
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
        "[Open]": "ephemeralContainers",
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
        "number": "maxSkew minDomains",
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
        "number": "failureThreshold initialDelaySeconds periodSeconds successThreshold "
        "terminationGracePeriodSeconds timeoutSeconds",
        "ExecAction": "exec",
        "GRPCAction": "grpc",
        "HTTPGetAction": "httpGet",
        "TCPSocketAction": "tcpSocket",
    },
    "ContainerPort": {"number": "containerPort hostPort", "text": "hostIP name protocol"},
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
        "number": "defaultMode",
        "text": "name",
        "[KeyToPath]": "items",
    },
    "CSIVolumeSource": {
        "flag": "readOnly",
        "text": "driver fsType",
        "{text}": "volumeAttributes",
        "LocalObjectReference": "nodePublishSecretRef",
    },
    "DownwardAPIVolumeSource": {"number": "defaultMode", "[DownwardAPIVolumeFile]": "items"},
    "EmptyDirVolumeSource": {"quantity": "sizeLimit", "text": "medium"},
    "EphemeralVolumeSource": {"PersistentVolumeClaimTemplate": "volumeClaimTemplate"},
    "HostPathVolumeSource": {"text": "path type"},
    "ImageVolumeSource": {"text": "pullPolicy reference"},
    "NFSVolumeSource": {"flag": "readOnly", "text": "path server"},
    "PersistentVolumeClaimVolumeSource": {"flag": "readOnly", "text": "claimName"},
    "ProjectedVolumeSource": {"number": "defaultMode", "[VolumeProjection]": "sources"},
    "SecretVolumeSource": {
        "flag": "optional",
        "number": "defaultMode",
        "text": "secretName",
        "[KeyToPath]": "items",
    },
    "PreferredSchedulingTerm": {"number": "weight", "NodeSelectorTerm": "preference"},
    "NodeSelector": {"[NodeSelectorTerm]": "nodeSelectorTerms"},
    "WeightedPodAffinityTerm": {"number": "weight", "PodAffinityTerm": "podAffinityTerm"},
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
    "GRPCAction": {"number": "port", "text": "service"},
    "HTTPGetAction": {
        "int-or-string": "port",
        "text": "host path scheme",
        "[HTTPHeader]": "httpHeaders",
    },
    "TCPSocketAction": {"int-or-string": "port", "text": "host"},
    "Capabilities": {"[text]": "add drop"},
    "LabelSelectorRequirement": {"[text]": "values", "text": "key operator"},
    "KeyToPath": {"number": "mode", "text": "key path"},
    "DownwardAPIVolumeFile": {
        "number": "mode",
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
    "ServiceAccountTokenProjection": {"number": "expirationSeconds", "text": "audience path"},
    "NodeSelectorRequirement": {"[text]": "values", "text": "key operator"},
    "TypedLocalObjectReference": {"text": "apiGroup kind name"},
    "TypedObjectReference": {"text": "apiGroup kind name namespace"},
    "VolumeResourceRequirements": {"{quantity}": "limits requests"},
}

SHAPES: Final = shapes_of(_DECLARED)


def _is_quantity(value: object) -> bool:
    return amount("", value) is not None


_PLAIN: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "text": (lambda value: isinstance(value, str), "must be a string"),
    "flag": (lambda value: isinstance(value, bool), "must be true or false"),
    "number": (lambda value: type(value) is int, "must be an integer"),
    "int-or-string": (lambda value: type(value) in {int, str}, "must be an integer or a string"),
    "quantity": (
        _is_quantity,
        "quantities must match the regular expression "
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
}


def check_types(template: object, path: str, findings: Findings) -> None:
    """Every field of the pod template at ``path`` that holds something of another type."""
    _Checking(SHAPES, findings).check(template, _ROOT, path)


def is_of(value: object, kind: str, shapes: Shapes) -> bool:
    """Whether nothing in ``value`` is of another type than ``kind`` among ``shapes`` says."""
    findings = Findings()
    _Checking(shapes, findings).check(value, kind, "")
    return not findings.errors


@dataclass(frozen=True, slots=True)
class _Checking:
    shapes: Shapes
    findings: Findings

    def check(self, value: object, kind: str, path: str) -> None:
        """What is in ``value``, at ``path``, and not of the types that ``kind`` says."""
        if value is None:
            return
        if kind in _PLAIN:
            fits, problem = _PLAIN[kind]
            if not fits(value):
                self._refuse(value, problem, path)
        elif kind.startswith("["):
            self._check_list(value, kind[1:-1], path)
        elif kind.startswith("{"):
            self._check_map(value, kind[1:-1], path)
        elif not isinstance(value, dict):
            self._refuse(value, "must be an object", path)
        else:
            for key, inside in self.shapes.get(kind, {}).items():
                self.check(value.get(key), inside, at(path, key))

    def _check_list(self, value: object, inside: str, path: str) -> None:
        if not isinstance(value, list):
            self._refuse(value, "must be a list", path)
            return
        for index, each in enumerate(value):
            self.check(each, inside, at(path, index))

    def _check_map(self, value: object, inside: str, path: str) -> None:
        if not isinstance(value, dict):
            self._refuse(value, "must be an object", path)
            return
        for key, each in value.items():
            self.check(each, inside, f"{path}[{key}]")

    def _refuse(self, value: object, problem: str, path: str) -> None:
        quoted: Any = value if isinstance(value, str) else json.dumps(value)
        self.findings.refuse(path, f'Invalid value: "{quoted[:_MOST_QUOTED]}": {problem}')
