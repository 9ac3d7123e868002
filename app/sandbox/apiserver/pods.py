"""How a pod becomes complete when it is created: defaults, priority, quality of service, gates."""

from __future__ import annotations

from app.sandbox.apiserver.errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid_value,
    required,
)
from app.sandbox.apiserver.label_keys import merge_label_keys
from app.sandbox.apiserver.pod_placement import amount_errors, placement_errors
from app.sandbox.apiserver.rules import Surroundings
from app.sandbox.pod_resources import contained_requests, says_for_the_whole
from app.sandbox.quantities import parse_milli
from app.sandbox.quantities import text as quantity
from app.wire.documents import Document, ObjectName, items, section

PRIORITY_CLASSES = "scheduling.k8s.io/priorityclasses"
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_OWN_PREFIX = "kubernetes.io/"
_DEFAULTS: Document = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}


def template_defaults(spec: Document) -> None:
    """Defaults of a pod spec, in a pod or in a template."""
    for name, value in _DEFAULTS.items():
        if spec.get(name) is None:
            spec[name] = value
    spec.setdefault("securityContext", {})
    for container in _containers(spec):
        _container_defaults(container)


def pod_defaults(pod: Document) -> None:
    """Fill in, in place, the fields of ``spec`` that the stock API server sets by default."""
    if isinstance(pod.get("spec"), dict):
        spec = pod["spec"]
        template_defaults(spec)
        spec.setdefault("enableServiceLinks", True)
        if not spec.get("schedulingGates"):
            spec.pop("schedulingGates", None)
        _default_whole(spec)
        if spec.get("hostNetwork"):
            _default_host_ports(spec)


def _default_whole(spec: Document) -> None:
    """A pod with limits for the whole of it asks for what its containers do, or for the limits."""
    whole = section(spec, "resources")
    limits = section(whole, "limits")
    if not limits:
        return
    try:
        contained = contained_requests(spec)
    except ValueError:  # of a container, which is refused for it
        return
    asked = {
        name: quantity(contained[name], binary=name == "memory")
        for name in ("cpu", "memory")
        if name in contained
    }
    spec["resources"] = {**whole, "requests": {**limits, **asked, **section(whole, "requests")}}


def _default_host_ports(spec: Document) -> None:
    """On the network of its node, a container takes its ports there."""
    for container in _containers(spec):
        for port in items(container, "ports"):
            port["hostPort"] = port.get("hostPort") or port.get("containerPort")


def _containers(spec: Document) -> list[Document]:
    return [*items(spec, "containers"), *items(spec, "initContainers")]


def _container_defaults(container: Document) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = str(container.get("image") or "")
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    moving = tag in {"", "latest"} and "@" not in image
    container.setdefault("imagePullPolicy", "Always" if moving else "IfNotPresent")
    resources = container.setdefault("resources", {})
    limits = resources.get("limits") or {}
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")


def complete_pod(pod: Document, around: Surroundings) -> None:
    """Priority, standard tolerations, what its rules select, and the first status."""
    spec = pod["spec"]
    _resolve_priority(pod, around)
    add_tolerations(spec)
    merge_label_keys(pod)
    status: Document = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "reason": "SchedulingGated",
                "message": GATED_MESSAGE,
            }
        ]
    pod["status"] = status


def _resolve_priority(pod: Document, around: Surroundings) -> None:
    spec, name = pod["spec"], pod["spec"].get("priorityClassName")
    if name:
        chosen = around.store.get(PRIORITY_CLASSES, ObjectName("", name))
        if chosen is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("pods", "", pod["metadata"]["name"], why=why)
    else:
        chosen = _global_default(around)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    value = int(chosen["value"]) if chosen else 0
    if spec.get("priority") not in {None, value}:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod"
            f" spec; priority admission controller computed {value} from the given PriorityClass"
            " name"
        )
        raise forbidden("pods", "", pod["metadata"]["name"], why=why)
    spec["priority"] = value
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    spec.setdefault("preemptionPolicy", policy)


def _global_default(around: Surroundings) -> Document | None:
    defaults = [one for one in around.store.values(PRIORITY_CLASSES) if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one["value"])) if defaults else None


def keep_tolerations(new: Document, _: Document) -> None:
    """An update cannot take the standard tolerations away."""
    add_tolerations(new["spec"])


def add_tolerations(spec: Document) -> None:
    """The standard ones, unless the pod says something about the same taints."""
    tolerations = list(spec.get("tolerations") or [])
    for key in _NOT_READY:
        if not any(
            one.get("key") in {None, "", key} and one.get("effect") in {None, "", "NoExecute"}
            for one in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
            )
    spec["tolerations"] = tolerations


def quality_of_service(spec: Document) -> str:
    """BestEffort, Guaranteed or Burstable, from CPU and memory only.

    What the pod says for the whole of it stands for what its containers say.
    """
    found: list[tuple[str, str]] = []
    for container in [spec] if says_for_the_whole(spec) else _containers(spec):
        resources = section(container, "resources")
        for name in ("cpu", "memory"):
            request = str(section(resources, "requests").get(name) or "0")
            limit = str(section(resources, "limits").get(name) or "0")
            found.append((request, limit))
    sizes = [(parse_milli(request), parse_milli(limit)) for request, limit in found]
    if not any(request or limit for request, limit in sizes):
        return "BestEffort"
    if all(request and request == limit for request, limit in sizes):
        return "Guaranteed"
    return "Burstable"


def pod_errors(pod: Document) -> list[FieldError]:
    """The rules of the real server that manifests break most often."""
    containers = items(pod, "spec", "containers")
    if not containers:
        return [required("spec.containers")]
    found: list[FieldError] = []
    for field in ("containers", "initContainers"):
        for index, container in enumerate(items(pod, "spec", field)):
            found += _container_errors(container, f"spec.{field}[{index}]")
    found += _resource_errors(section(pod, "spec", "resources"), "spec.resources")
    names = [one.get("name") for one in containers]
    found += [
        duplicate(f"spec.containers[{index}].name", name)
        for index, name in enumerate(names)
        if name in names[:index]
    ]
    found += placement_errors(pod["spec"])
    if pod["spec"].get("nodeName") and pod["spec"].get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        found.append(FieldError("spec.nodeName", "FieldValueForbidden", f"Forbidden: {text}"))
    return found


def _container_errors(container: Document, path: str) -> list[FieldError]:
    found = [required(f"{path}.{name}") for name in ("name", "image") if not container.get(name)]
    return found + _resource_errors(section(container, "resources"), f"{path}.resources")


def _resource_errors(resources: Document, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for side in ("requests", "limits"):
        for name, value in section(resources, side).items():
            found += amount_errors(value, f"{path}.{side}.{name}")
    limits = section(resources, "limits")
    for name, request in section(resources, "requests").items():
        found += _request_errors(name, request, limits.get(name), path)
    return found


def _request_errors(name: str, request: object, limit: object, path: str) -> list[FieldError]:
    """Of what can be counted only, a pod gets what it asks for: both sides must say the same."""
    countable = "/" in name and _OWN_PREFIX not in name
    if limit is None:
        text = "Limit must be set for non overcommitable resources"
        return [required(f"{path}.limits", text)] if countable else []
    asked, most = parse_milli(request), parse_milli(limit)
    if countable and asked != most:
        text = f"must be equal to {name} limit of {limit}"
    elif asked > most:
        text = f"must be less than or equal to {name} limit of {limit}"
    else:
        return []
    return [invalid_value(f"{path}.requests", str(request), text)]
