"""What may change in a vcjob: its size and its priority (volcano.md §6.2)."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from app.webhooks.job_defaults import task_in_full
from app.webhooks.own_annotations import check_annotations
from app.webhooks.sameness import is_same
from app.webhooks.topology import check_partitions, check_topology
from app.webhooks.world import Request, World
from app.wire import kinds
from app.wire.findings import Findings, at
from app.wire.reading import integer, mapping, mappings, number_or_none, sequence, text
from app.wire.unstructured import Object, is_deleting
from app.wire.unstructured import name as name_of

_RESIZABLE = frozenset({"minAvailable", "priorityClassName"})
_RESIZABLE_IN_TASKS = frozenset({"replicas", "minAvailable"})
_OTHER = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` "
    "and `PriorityClassName`"
)


def check_job_update(request: Request, _world: World) -> Findings:
    """What is wrong with the change.

    Of the spec nothing where it stays, so that an end never hangs.
    """
    findings = Findings()
    if is_deleting(request.item):
        return findings
    check_annotations(request, kinds.JOBS, findings)
    new, old = mapping(request.item.get("spec")), mapping(request.old.get("spec"))
    if new == old:
        return findings
    _check_sizes(request.item, findings)
    check_topology(new, "spec", findings)
    if len(sequence(new.get("tasks"))) != len(sequence(old.get("tasks"))):
        findings.refuse("spec.tasks", "job updates may not add or remove tasks")
    else:
        changed = _changed(_fixed(new, old), _fixed(old, new))
        for path in changed:
            findings.refuse(at("spec", path), _OTHER)
    return findings


def _check_sizes(job: Object, findings: Findings) -> None:
    spec = mapping(job.get("spec"))
    total = 0
    for index, task in enumerate(mappings(spec.get("tasks"))):
        path, name = at("spec.tasks", index), text(task.get("name"))
        replicas, least = integer(task.get("replicas")), number_or_none(task.get("minAvailable"))
        total += replicas
        if replicas < 0:
            findings.refuse(at(path, "replicas"), f"'replicas' must be >= 0 in task: {name}")
        if least is not None and least < 0:
            findings.refuse(
                at(path, "minAvailable"), f"'minAvailable' must be >= 0 in task: {name}"
            )
        if least is not None and least > replicas:
            findings.refuse(
                at(path, "minAvailable"), f"'minAvailable' must be <= 'replicas' in task: {name}"
            )
        check_partitions(task, path, findings, job_name=name_of(job))
    least = integer(spec.get("minAvailable"))
    if least > total:
        findings.refuse(
            "spec.minAvailable", "job 'minAvailable' must not be greater than total replicas"
        )
    if least < 0:
        findings.refuse("spec.minAvailable", "job 'minAvailable' must be >= 0")


def _fixed(spec: Mapping[str, Any], other: Mapping[str, Any]) -> Object:
    """``spec`` without what may change, against ``other``.

    What admission filled into a task is not in the manifest that is applied again: kubectl replaces
    lists as a whole.
    """
    kept = {key: value for key, value in spec.items() if key not in _RESIZABLE}
    kept["tasks"] = [
        {key: value for key, value in task.items() if key not in _RESIZABLE_IN_TASKS}
        for task in map(task_in_full, count(), mappings(spec.get("tasks")))
    ]
    there = mappings(other.get("volumes"))
    kept["volumes"] = [
        _without_made_claim(volume, there[index] if index < len(there) else {})
        for index, volume in enumerate(mappings(spec.get("volumes")))
    ]
    return kept


def _without_made_claim(volume: Mapping[str, Any], other: Mapping[str, Any]) -> Object:
    """The controller names the claims that it makes, which no manifest does that is applied again.

    Named on both sides they are to be the same.
    """
    is_made = volume.get("volumeClaim") is not None
    if not is_made or (volume.get("volumeClaimName") and other.get("volumeClaimName")):
        return dict(volume)
    return {key: value for key, value in volume.items() if key != "volumeClaimName"}


def _changed(new: Object, old: Object) -> list[str]:
    """Which fields differ; of tasks which one."""
    paths = _differing({**new, "tasks": ()}, {**old, "tasks": ()})
    for index, (one, other) in enumerate(zip(new["tasks"], old["tasks"], strict=True)):
        paths += [at("tasks", index, key) for key in _differing(one, other)]
    return paths


def _differing(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    fields = {**old, **new}
    return [key for key in fields if not is_same({key: new.get(key)}, {key: old.get(key)})]
