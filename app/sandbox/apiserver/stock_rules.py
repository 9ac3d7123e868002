"""Which rules the stock kinds follow, by storage key, and what a fresh cluster holds."""

from __future__ import annotations

from base64 import b64encode

from app.sandbox.apiserver import crds
from app.sandbox.apiserver.budget_rules import budget_errors
from app.sandbox.apiserver.device_rules import DEVICE_RULES
from app.sandbox.apiserver.errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    too_long,
)
from app.sandbox.apiserver.pod_updates import pod_update_errors
from app.sandbox.apiserver.pods import (
    complete_pod,
    keep_tolerations,
    pod_defaults,
    pod_errors,
    template_defaults,
)
from app.sandbox.apiserver.quotas import QUOTAS, quota_errors
from app.sandbox.apiserver.rules import PLAIN, Rules, Surroundings
from app.wire.documents import Document, ObjectName, section

CRDS = "apiextensions.k8s.io/customresourcedefinitions"
STORAGE_CLASSES = "storage.k8s.io/storageclasses"
_CONFIG_MAP_BYTES = 1 << 20
_NO_GENERATION = Rules(counts_generations=False)


def _complete_namespace(namespace: Document, _: Surroundings) -> None:
    name = namespace["metadata"]["name"]
    labels = dict(namespace["metadata"].get("labels") or {})
    namespace["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": name}
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _complete_node(node: Document, _: Surroundings) -> None:
    status = node.setdefault("status", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _node_defaults(node: Document) -> None:
    node.setdefault("spec", {})


def _service_defaults(service: Document) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _complete_service(service: Document, around: Surroundings) -> None:
    spec = service["spec"]
    if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
        serial = around.store.revision
        spec["clusterIP"] = f"10.96.{serial // 250 % 250}.{serial % 250 + 1}"
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])


def _secret_defaults(secret: Document) -> None:
    secret.setdefault("type", "Opaque")
    plain = secret.pop("stringData", None)
    if plain:
        encoded = {key: _base64(value) for key, value in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _priority_class_defaults(chosen: Document) -> None:
    chosen.setdefault("preemptionPolicy", "PreemptLowerPriority")
    chosen.setdefault("value", 0)


def _priority_class_errors(new: Document, old: Document) -> list[FieldError]:
    return [
        forbidden_field(field, "may not be changed in an update.")
        for field in ("value", "preemptionPolicy")
        if new.get(field) != old.get(field)
    ]


def _workload_defaults(workload: Document) -> None:
    template = section(workload, "spec", "template")
    if isinstance(template.get("spec"), dict):
        template_defaults(template["spec"])


def _complete_crd(crd: Document, around: Surroundings) -> None:
    problems = crds.crd_errors(crd)
    if not problems:
        crd.update(crds.established(crd, now=around.now))


def _complete_claim(claim: Document, around: Surroundings) -> None:
    """A claim whose class is stored is bound at once, unless the class waits for its first pod."""
    claim["status"] = {"phase": "Pending"}
    spec, metadata = claim.setdefault("spec", {}), claim["metadata"]
    chosen = ObjectName("", spec.get("storageClassName") or "")
    of_class = around.store.get(STORAGE_CLASSES, chosen)
    if of_class is None or of_class.get("volumeBindingMode") == "WaitForFirstConsumer":
        return
    spec.setdefault("volumeName", f"pvc-{metadata['uid']}")
    completed = {"pv.kubernetes.io/bind-completed": "yes"}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **completed}
    claim["status"] = {
        "phase": "Bound",
        "accessModes": list(spec.get("accessModes") or ()),
        "capacity": dict(section(spec, "resources").get("requests") or {}),
    }


def _immutable_errors(new: Document, old: Document) -> list[FieldError]:
    """A ConfigMap or a Secret that was made immutable stays so, with all that is in it."""
    if not old.get("immutable"):
        return []
    changed = [
        name for name in ("data", "binaryData") if (new.get(name) or {}) != (old.get(name) or {})
    ]
    freed = [] if new.get("immutable") else ["immutable"]
    text = "field is immutable when `immutable` is set"
    return [forbidden_field(name, text) for name in (*freed, *changed)]


def _config_map_errors(config_map: Document) -> list[FieldError]:
    texts = [*section(config_map, "data").values(), *section(config_map, "binaryData").values()]
    size = sum(len(text.encode()) for text in texts)
    return [too_long("[]", _CONFIG_MAP_BYTES)] if size > _CONFIG_MAP_BYTES else []


def _secret_errors(new: Document, old: Document) -> list[FieldError]:
    kind = new.get("type")
    moved = [] if kind == old.get("type") else [invalid_value("type", kind, "field is immutable")]
    return [*moved, *_immutable_errors(new, old)]


def _event_defaults(event: Document) -> None:
    """What every event shows, said or not: kubectl sorts by fields that are there."""
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        event.setdefault(name, "")
    event.setdefault("source", {})


def _event_errors(event: Document) -> list[FieldError]:
    return [] if event.get("involvedObject") else [required("involvedObject")]


RULES: dict[str, Rules] = {
    "/pods": Rules(
        defaults=pod_defaults,
        complete=complete_pod,
        prepare_update=keep_tolerations,
        create_errors=pod_errors,
        update_errors=pod_update_errors,
    ),
    "/namespaces": Rules(complete=_complete_namespace, counts_generations=False),
    "/nodes": Rules(
        defaults=_node_defaults,
        complete=_complete_node,
        counts_generations=False,
        keeps_status_on_create=True,
    ),
    "/services": Rules(
        defaults=_service_defaults, complete=_complete_service, counts_generations=False
    ),
    "/secrets": Rules(
        defaults=_secret_defaults, update_errors=_secret_errors, counts_generations=False
    ),
    "/configmaps": Rules(
        create_errors=_config_map_errors,
        update_errors=lambda new, old: [*_immutable_errors(new, old), *_config_map_errors(new)],
        counts_generations=False,
    ),
    "/events": Rules(
        defaults=_event_defaults, create_errors=_event_errors, counts_generations=False
    ),
    "/serviceaccounts": _NO_GENERATION,
    "/endpoints": _NO_GENERATION,
    "/persistentvolumeclaims": Rules(complete=_complete_claim, counts_generations=False),
    "coordination.k8s.io/leases": _NO_GENERATION,
    **{
        f"rbac.authorization.k8s.io/{plural}": _NO_GENERATION
        for plural in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    },
    "scheduling.k8s.io/priorityclasses": Rules(
        defaults=_priority_class_defaults, update_errors=_priority_class_errors
    ),
    "policy/poddisruptionbudgets": Rules(
        create_errors=budget_errors, update_errors=lambda new, _: budget_errors(new)
    ),
    QUOTAS: Rules(
        create_errors=quota_errors,
        update_errors=lambda new, _: quota_errors(new),
        counts_generations=False,
    ),
    **DEVICE_RULES,
    CRDS: Rules(complete=_complete_crd, create_errors=crds.crd_errors),
    **{
        f"{group}/{plural}": Rules(defaults=_workload_defaults)
        for group, plural in (
            ("apps", "deployments"),
            ("apps", "statefulsets"),
            ("apps", "daemonsets"),
            ("apps", "replicasets"),
            ("batch", "jobs"),
        )
    },
}


def rules_of(storage: str) -> Rules:
    """The rules of a storage key; custom kinds have the plain ones."""
    return RULES.get(storage, PLAIN)


def _seed(kind: str, group: str, name: str, **fields: object) -> Document:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, **fields}


SEEDS: tuple[Document, ...] = (
    *(
        _seed("Namespace", "v1", name)
        for name in ("default", "kube-system", "kube-public", "kube-node-lease")
    ),
    *(
        _seed(
            "PriorityClass",
            "scheduling.k8s.io/v1",
            name,
            value=value,
            description="Used for system critical pods.",
        )
        for name, value in (
            ("system-cluster-critical", 2_000_000_000),
            ("system-node-critical", 2_000_001_000),
        )
    ),
)
"""What the real server creates by itself when it starts on an empty store."""
