"""Jobs as the API server stores them, and their pods before the plugins have seen them."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from app.jobplugins import catalogue
from app.jobplugins.keys import KeyPair
from app.jobplugins.plugin import PodOfJob
from app.jobplugins.wanted import Wanted
from app.wire.unstructured import Object

OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "job",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": True,
}
MADE_AS = {"namespace": "ns", "ownerReferences": [OWNER]}
LABELS = {"volcano.sh/job-name": "job", "volcano.sh/job-namespace": "ns"}

Plugins = Mapping[str, list[str]]


def container(name: str = "main", **parts: Any) -> Object:
    """A container."""
    return {"name": name, "image": "image", **parts}


def task(name: str, replicas: int = 1, *, least: int | None = None, **spec: Any) -> Object:
    """A task whose pods have one container, or what ``spec`` says."""
    made: Object = {
        "name": name,
        "replicas": replicas,
        "template": {"spec": {"containers": [container()], **spec}},
    }
    return made if least is None else {**made, "minAvailable": least}


def job(plugins: Plugins, *tasks: Object, name: str = "job", uid: str = "u1") -> Object:
    """A job."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ns", "uid": uid},
        "spec": {"tasks": list(tasks), "plugins": dict(plugins)},
    }


def bare_pod(of: Object, task_name: str, index: int) -> Object:
    """A pod as it is without plugins."""
    (made,) = (task for task in of["spec"]["tasks"] if task["name"] == task_name)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{of['metadata']['name']}-{task_name}-{index}",
            "namespace": of["metadata"]["namespace"],
            "annotations": {"volcano.sh/task-spec": task_name},
        },
        "spec": deepcopy(made["template"]["spec"]),
    }


def one_key(key_type: str) -> KeyPair:
    """The same keys every time."""
    return KeyPair(f"private {key_type}\n", f"public {key_type}\n")


def pod(of: Object, task_name: str, index: int = 0) -> Object:
    """A pod as it is created."""
    plugins = catalogue.parse(of, make_keys=one_key)
    return plugins.pod(bare_pod(of, task_name, index), PodOfJob(task_name, index))


def variables(of: Object) -> dict[str, Any]:
    """The variables of a container that are plain texts, those from elsewhere by their key."""
    return {
        entry["name"]: entry["value"] if "value" in entry else entry["valueFrom"]
        for entry in of.get("env") or ()
    }


def pod_variables(of: Object, task_name: str, index: int = 0) -> dict[str, Any]:
    """The plain variables of a pod's first container, those of the lists of hosts left out."""
    found = variables(pod(of, task_name, index)["spec"]["containers"][0])
    return {name: value for name, value in found.items() if isinstance(value, str)}


def wanted(of: Object) -> dict[str, Wanted]:
    """What a job wants, by kind and name."""
    plugins = catalogue.parse(of, make_keys=one_key)
    return {f"{one.resource.kind}/{one.key.name}": one for one in plugins.objects()}
