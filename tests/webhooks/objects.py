"""Objects as clients send them, with just enough in them, and a cluster to judge them in."""

from __future__ import annotations

from typing import Any

from app.webhooks.admission import Verdict, chosen, decide
from app.webhooks.cluster_facts import NAMESPACES, ClusterFacts
from app.webhooks.pod_templates import check_template
from app.webhooks.world import Operation, Options, Request, World
from app.wire import kinds
from app.wire.findings import Findings
from app.wire.kinds import Resource
from app.wire.unstructured import Object, name, namespace

GPU = "nvidia.com/gpu"
IS_A = {"key": "a", "operator": "In", "values": ["b"]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def pod_spec(**fields: Any) -> Object:
    return {"containers": [{"name": "main", "image": "busybox"}], **fields}


def asking(**requests: Any) -> Object:
    """The spec of a pod that asks for that much."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": requests}}
    return {"containers": [container]}


def task(name: str = "work", replicas: int = 1, **fields: Any) -> Object:
    return {"name": name, "replicas": replicas, "template": {"spec": pod_spec()}, **fields}


def job(*tasks: Object, called: str = "j", **spec: Any) -> Object:
    """A job of ``tasks``, of one task if none is given."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": called, "namespace": "default"},
        "spec": {"queue": "default", "tasks": list(tasks or (task(),)), **spec},
    }


def queue(called: str, *, state: str = "Open", status: Any = None, **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": called},
        "spec": spec,
        "status": {"state": state, **(status or {})},
    }


def new_queue(called: str = "new", **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": called},
        "spec": spec,
    }


def group(called: str = "g", **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": called, "namespace": "default"},
        "spec": spec,
    }


def pod(*, annotations: Any = None, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "annotations": annotations or {}},
        "spec": {**pod_spec(), "schedulerName": "volcano", **spec},
    }


def node(called: str, **allocatable: Any) -> Object:
    return {"metadata": {"name": called}, "status": {"allocatable": {"pods": 110, **allocatable}}}


def priority_class(called: str, value: int = 1000) -> Object:
    return {"metadata": {"name": called}, "value": value}


def facts(
    *queues: Object,
    nodes: tuple[Object, ...] = (),
    classes: tuple[str, ...] = (),
    groups: tuple[Object, ...] = (),
    namespaces: dict[str, dict[str, str]] | None = None,
) -> ClusterFacts:
    """A cluster with the two queues there always are, and those given."""
    known = ClusterFacts()
    items: list[tuple[Resource, Object]] = [
        (kinds.QUEUES, queue("root")),
        (kinds.QUEUES, queue("default")),
        *((kinds.QUEUES, each) for each in queues),
        *((kinds.NODES, each) for each in nodes),
        *((kinds.POD_GROUPS, each) for each in groups),
        *((kinds.PRIORITY_CLASSES, priority_class(each)) for each in classes),
    ]
    for called, given in (namespaces or {}).items():
        items.append((NAMESPACES, {"metadata": {"name": called, "annotations": given}}))
    for resource, item in items:
        known.put(resource, item)
    return known


def ask(
    path: str,
    item: Object,
    *,
    old: Object | None = None,
    operation: Operation | None = None,
    cluster: ClusterFacts | None = None,
    options: Options | None = None,
) -> Verdict:
    """The answer of the webhook at ``path``; with ``old`` it is an update."""
    (webhook,) = chosen([path])
    request = Request(
        operation=operation or ("CREATE" if old is None else "UPDATE"),
        item=item,
        old=old or {},
        namespace=namespace(item or old or {}),
        name=name(item or old or {}),
    )
    return decide(webhook, request, World(cluster or facts(), options or Options()))


def patched(item: Any, verdict: Verdict) -> Any:
    """``item`` after the patch; only what patches of ours contain."""
    whole = [item]
    for step in verdict.patch:
        keys = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")]
        holder: Any = whole
        for key in ["0", *keys[1:-1]] if len(keys) > 1 else []:
            holder = holder[int(key)] if isinstance(holder, list) else holder[key]
        last = keys[-1] if len(keys) > 1 else "0"
        place: Any = int(last) if isinstance(holder, list) else last
        copied = holder
        if step["op"] == "remove":
            del copied[place]
        else:
            copied[place] = step["value"]
    return whole[0]


def template_problems(spec: Any, **metadata: Any) -> list[str]:
    """What a template with that spec and metadata is refused for."""
    findings = Findings()
    check_template({"metadata": metadata, "spec": spec}, "template", findings)
    return [str(error) for error in findings.errors]
