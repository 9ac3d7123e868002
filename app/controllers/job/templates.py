"""Templates of tasks as they may be stored: the schema takes any object for one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.controllers.job.view import Job
from app.webhooks.findings import Findings, at
from app.webhooks.pod_types import check_types
from app.wire import unstructured

_CONTAINERS: Final = ("containers", "initContainers")
_OF_POD: Final = (*_CONTAINERS, "schedulingGates", "volumes")
_OF_CONTAINER: Final = ("env", "ports", "volumeMounts")


def problems(job: Job) -> str:
    """What no pod can be made of, in the words of admission; empty: nothing."""
    findings = Findings()
    for number, task in enumerate(job.tasks):
        path = f"spec.task[{number}].template"
        check_types(task.template, path, findings)
        if not findings.errors:
            for gap in _gaps(unstructured.spec(task.template), at(path, "spec")):
                findings.refuse(gap, "Required value")
    return findings.message()


def _gaps(pod: Mapping[str, Any], path: str) -> Iterator[str]:
    """Where nothing stands in lists of what has a name."""
    yield from _missing(pod, _OF_POD, path)
    for key in _CONTAINERS:
        for number, container in enumerate(pod.get(key) or ()):
            yield from _missing(container or {}, _OF_CONTAINER, at(path, key, number))


def _missing(holder: Mapping[str, Any], keys: Sequence[str], path: str) -> Iterator[str]:
    for key in keys:
        for number, each in enumerate(holder.get(key) or ()):
            if each is None:
                yield at(path, key, number)
