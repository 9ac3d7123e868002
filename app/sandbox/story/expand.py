"""From a vcjob to its PodGroup and pods, as far as scheduling sees them (volcano.md §5.1).

Names, annotations, minimums and ``minResources`` are those that the job controller gives; policies,
plugins and volumes are its own business.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from app.sandbox.documents import Document
from app.wire import quantity

PODGROUP = "scheduling.volcano.sh/v1beta1"


def story(text: str) -> dict[str, Document]:
    """The documents of the story by ``kind/name``."""
    return {f"{d['kind']}/{d['metadata']['name']}": d for d in yaml.safe_load_all(text)}


def pod_group(job: Document) -> Document:
    """The PodGroup of ``job``."""
    spec = job["spec"]
    tasks = spec["tasks"]
    minimum = {t["name"]: t.get("minAvailable", t["replicas"]) for t in tasks}
    whole = spec["minAvailable"] >= sum(minimum.values())
    return {
        "apiVersion": PODGROUP,
        "kind": "PodGroup",
        "metadata": {"name": job["metadata"]["name"]},
        "spec": {
            "minMember": spec["minAvailable"],
            "minTaskMember": minimum if whole else {},
            "queue": spec.get("queue", "default"),
            "minResources": _min_resources(tasks, spec["minAvailable"]),
        },
    }


def pods(job: Document) -> list[Document]:
    """The pods of ``job``, task by task."""
    return [
        _pod(job, task, index) for task in job["spec"]["tasks"] for index in range(task["replicas"])
    ]


def _pod(job: Document, task: Document, index: int) -> Document:
    name = job["metadata"]["name"]
    marks = {
        "volcano.sh/job-name": name,
        "volcano.sh/task-spec": task["name"],
        "volcano.sh/task-index": str(index),
        "volcano.sh/queue-name": job["spec"].get("queue", "default"),
    }
    spec = {"schedulerName": job["spec"]["schedulerName"], **task["template"]["spec"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{task['name']}-{index}",
            "labels": marks,
            "annotations": {**marks, "scheduling.k8s.io/group-name": name},
        },
        "spec": spec,
    }


def _min_resources(tasks: list[Document], minimum: int) -> dict[str, str]:
    """The requests of the first ``minimum`` pods."""
    total: dict[str, int] = {}
    left = minimum
    for task in tasks:
        count = min(left, task["replicas"])
        left -= count
        for container in task["template"]["spec"]["containers"]:
            _add(total, container["resources"]["requests"], count)
    return quantity.texts(tuple(sorted(total.items())))


def _add(total: dict[str, int], requests: Mapping[str, Any], count: int) -> None:
    for name, text in requests.items():
        total[name] = total.get(name, 0) + quantity.amount(name, str(text)) * count
