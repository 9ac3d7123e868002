"""Kubernetes protobuf bodies, as far as stock ``kubectl`` insists on them.

``kubectl create namespace`` and its sisters, ``kubectl drain`` and ``kubectl auth`` post protobuf
and know no other way. The envelope names the kind; ``_MESSAGES`` names the fields of the few kinds
concerned. Fields that are not listed are left out, other kinds are refused with 415. Answers are
always JSON.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from app.sandbox.apiserver import errors
from app.wire.documents import Document

MAGIC = b"k8s\x00"

_BINDING = {1: "metadata:ObjectMeta", 2: "subjects:[]Subject", 3: "roleRef:RoleRef"}

# message -> field number -> "name:type"; "[]" repeats, "{}" is a map from strings, and
# zeros of a "nonzero" are left out, as text without letters always is.
_MESSAGES: dict[str, dict[int, str]] = {
    "ObjectMeta": {
        1: "name:string",
        2: "generateName:string",
        3: "namespace:string",
        5: "uid:string",
        6: "resourceVersion:string",
        11: "labels:{}string",
        12: "annotations:{}string",
        13: "ownerReferences:[]OwnerReference",
        14: "finalizers:[]string",
    },
    "OwnerReference": {
        1: "kind:string",
        3: "name:string",
        4: "uid:string",
        5: "apiVersion:string",
        6: "controller:bool",
        7: "blockOwnerDeletion:bool",
    },
    "Namespace": {1: "metadata:ObjectMeta"},
    "ServiceAccount": {1: "metadata:ObjectMeta"},
    "ConfigMap": {
        1: "metadata:ObjectMeta",
        2: "data:{}string",
        3: "binaryData:{}bytes",
        4: "immutable:bool",
    },
    "Secret": {1: "metadata:ObjectMeta", 2: "data:{}bytes", 3: "type:string", 5: "immutable:bool"},
    "PriorityClass": {
        1: "metadata:ObjectMeta",
        2: "value:int",
        3: "globalDefault:bool",
        4: "description:string",
        5: "preemptionPolicy:string",
    },
    "ResourceQuota": {1: "metadata:ObjectMeta", 2: "spec:ResourceQuotaSpec"},
    "ResourceQuotaSpec": {1: "hard:{}Quantity", 2: "scopes:[]string"},
    "Quantity": {1: "string:string"},
    "PodDisruptionBudget": {1: "metadata:ObjectMeta", 2: "spec:PodDisruptionBudgetSpec"},
    "PodDisruptionBudgetSpec": {
        1: "minAvailable:IntOrString",
        2: "selector:LabelSelector",
        3: "maxUnavailable:IntOrString",
    },
    "IntOrString": {1: "type:int", 2: "int:int", 3: "string:string"},
    "LabelSelector": {1: "matchLabels:{}string", 2: "matchExpressions:[]Requirement"},
    "Requirement": {1: "key:string", 2: "operator:string", 3: "values:[]string"},
    "Eviction": {1: "metadata:ObjectMeta", 2: "deleteOptions:DeleteOptions"},
    "DeleteOptions": {
        1: "gracePeriodSeconds:int",
        2: "preconditions:Preconditions",
        3: "orphanDependents:bool",
        4: "propagationPolicy:string",
        5: "dryRun:[]string",
    },
    "Preconditions": {1: "uid:string", 2: "resourceVersion:string"},
    "Deployment": {1: "metadata:ObjectMeta", 2: "spec:DeploymentSpec"},
    "DeploymentSpec": {1: "replicas:int", 2: "selector:LabelSelector", 3: "template:PodTemplate"},
    "Job": {1: "metadata:ObjectMeta", 2: "spec:JobSpec"},
    "JobSpec": {
        1: "parallelism:int",
        2: "completions:int",
        6: "template:PodTemplate",
        7: "backoffLimit:int",
    },
    "CronJob": {1: "metadata:ObjectMeta", 2: "spec:CronJobSpec"},
    "CronJobSpec": {
        1: "schedule:string",
        3: "concurrencyPolicy:string",
        4: "suspend:bool",
        5: "jobTemplate:Job",
        8: "timeZone:string",
    },
    "Service": {1: "metadata:ObjectMeta", 2: "spec:ServiceSpec"},
    "ServiceSpec": {
        1: "ports:[]ServicePort",
        2: "selector:{}string",
        3: "clusterIP:string",
        4: "type:string",
        10: "externalName:string",
    },
    "ServicePort": {
        1: "name:string",
        2: "protocol:string",
        3: "port:int",
        4: "targetPort:IntOrString",
        5: "nodePort:nonzero",
    },
    "Role": {1: "metadata:ObjectMeta", 2: "rules:[]PolicyRule"},
    "ClusterRole": {
        1: "metadata:ObjectMeta",
        2: "rules:[]PolicyRule",
        3: "aggregationRule:AggregationRule",
    },
    "PolicyRule": {
        1: "verbs:[]string",
        2: "apiGroups:[]string",
        3: "resources:[]string",
        4: "resourceNames:[]string",
        5: "nonResourceURLs:[]string",
    },
    "AggregationRule": {1: "clusterRoleSelectors:[]LabelSelector"},
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Subject": {1: "kind:string", 2: "apiGroup:string", 3: "name:string", 4: "namespace:string"},
    "RoleRef": {1: "apiGroup:string", 2: "kind:string", 3: "name:string"},
    "PodTemplate": {1: "metadata:ObjectMeta", 2: "spec:PodSpec"},
    "PodSpec": {2: "containers:[]Container", 3: "restartPolicy:string"},
    "Container": {
        1: "name:string",
        2: "image:string",
        3: "command:[]string",
        4: "args:[]string",
        6: "ports:[]ContainerPort",
    },
    "ContainerPort": {1: "name:string", 3: "containerPort:int", 4: "protocol:string"},
    "SelfSubjectReview": {},
    "SelfSubjectRulesReview": {2: "spec:SelfSubjectRulesReviewSpec"},
    "SelfSubjectRulesReviewSpec": {1: "namespace:string"},
    "SelfSubjectAccessReview": {2: "spec:SelfSubjectAccessReviewSpec"},
    "SelfSubjectAccessReviewSpec": {1: "resourceAttributes:ResourceAttributes"},
    "ResourceAttributes": {
        1: "namespace:string",
        2: "verb:string",
        3: "group:string",
        5: "resource:string",
        7: "name:string",
    },
    "Unknown": {1: "typeMeta:TypeMeta", 2: "raw:raw"},
    "TypeMeta": {1: "apiVersion:string", 2: "kind:string"},
}


def decode(body: bytes) -> Document:
    """The document in an envelope; 415 where its kind is not one of those above."""
    if not body.startswith(MAGIC):
        raise errors.bad_request("provided data does not appear to be a protobuf message")
    try:
        envelope = _message("Unknown", body[len(MAGIC) :])
        named = envelope.get("typeMeta") or {}
        kind = named.get("kind", "")
        if kind not in _MESSAGES:
            raise errors.unsupported_media_type(["application/json", "application/yaml"])
        return {**named, **_message(kind, envelope.get("raw", b""))}
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        raise errors.bad_request(f"unable to decode the protobuf body: {error}") from error


def _message(name: str, data: bytes) -> Document:
    fields, found = _MESSAGES[name], dict[str, Any]()
    for number, raw in _fields(data):
        if number not in fields:
            continue
        field, _, kind = fields[number].partition(":")
        if kind.startswith("[]"):
            found.setdefault(field, []).append(_value(kind[2:], raw))
        elif kind.startswith("{}"):
            entry = dict(_fields(raw if isinstance(raw, bytes) else b""))
            key = _value("string", entry.get(1, b""))
            found.setdefault(field, {})[key] = _value(kind[2:], entry.get(2, b""))
        else:
            found[field] = _value(kind, raw)
    return {field: value for field, value in found.items() if value != ""}


def _value(kind: str, raw: int | bytes) -> Any:
    if isinstance(raw, int):
        signed = raw - (1 << 64) if raw >> 63 else raw
        if kind == "nonzero" and not raw:
            return ""
        return bool(raw) if kind == "bool" else signed
    match kind:
        case "string":
            return raw.decode()
        case "bytes":
            return b64encode(raw).decode()
        case "raw":
            return raw
        case "Quantity":
            return _message(kind, raw).get("string", "0")
        case "IntOrString":
            either = _message(kind, raw)
            return either.get("string") if either.get("type") else either.get("int", 0)
        case _:
            return _message(kind, raw)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                number, at = _varint(data, at)
                yield tag >> 3, number
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise ValueError("unexpected end")
                yield tag >> 3, data[at : at + size]
                at += size
            case 1:
                at += 8
            case 5:
                at += 4
            case other:
                raise ValueError(f"illegal wire type {other}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
