"""The PodGroup of a job."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from app.controllers.job import policies
from app.controllers.job.sync import is_ready
from app.controllers.job.view import Job, Task, moment
from app.controllers.job.vocabulary import (
    ACCEPTED_COMMAND,
    JOB_SIZE,
    PARTITION_ID,
)
from app.core.gangs.job_minimum import Part, pods_needed
from app.core.gangs.stranded import STRANDED_ACTION, STRANDED_AFTER, STRANDED_SINCE
from app.model.ids import FILLED_IN
from app.model.pod import TASK_SPEC
from app.model.reached import REACHED
from app.model.topology import asked_by_pod
from app.model.workload import EVICTION_ENDS, JOB_ENDS
from app.wire import quantity, times, unstructured
from app.wire.kinds import POD_GROUPS
from app.wire.reading import mapping, mappings, texts
from app.wire.unstructured import Key, Object

_SET_ONCE: Final = "queue"
"""A job's never changes, and for `default` admission may have put the namespace's there."""
_OURS: Final = (EVICTION_ENDS, STRANDED_SINCE)
"""Annotations that go when they are not true any more."""
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        ACCEPTED_COMMAND,
        FILLED_IN,
        REACHED,
        STRANDED_AFTER,
        STRANDED_ACTION,
        *_OURS,
    }
)


def keys(job: Job) -> tuple[Key, Key]:
    """``<job>-<uid>``, and the name that older versions gave it."""
    namespace = job.key.namespace
    return Key(namespace, f"{job.key.name}-{job.uid}"), job.key


def is_admitted(group: Object) -> bool:
    """Whether pods may be made for it."""
    return unstructured.status(group).get("phase") not in {None, "", "Pending"}


def waiting_message(job: Job, group: Object) -> str:
    """Why the group waits, in the words of its newest condition.

    Empty when that condition says that it does not wait. The text names the job, as in Volcano.
    True conditions tell, and `Reserved` while it is false (of a group that its queue refuses it is
    the only one).
    """
    conditions = unstructured.status(group).get("conditions") or ()
    telling = [entry for entry in conditions if (entry.get("status") == "True") != _is_room(entry)]
    if not telling:
        return ""
    newest = max(telling, key=_age)
    if _is_scheduled(newest):
        return ""
    where = f"{job.key.namespace}:{job.key.name}"
    return f"PodGroup {where} unschedulable, reason: {newest.get('message') or ''}"


def _age(condition: Mapping[str, Any]) -> tuple[str, bool]:
    """Of two of one second it is the one that it waits that tells."""
    return str(condition.get("lastTransitionTime") or ""), not _is_scheduled(condition)


def _is_scheduled(condition: Mapping[str, Any]) -> bool:
    """Whether the condition tells that the minimum is on nodes."""
    return condition.get("type") == "Scheduled"


def _is_room(condition: Mapping[str, Any]) -> bool:
    """Whether the condition tells whether there is room."""
    return condition.get("type") == "Reserved"


def pod_group(job: Job, *, name: str, priorities: Mapping[str, int]) -> Object:
    """The PodGroup as it should be; ``priorities``: the value of each PriorityClass."""
    own = unstructured.annotations(job.item)
    annotations = {key: value for key, value in own.items() if key not in _NOT_COPIED}
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {
            "name": name,
            "namespace": job.key.namespace,
            "labels": dict(unstructured.labels(job.item)),
            "annotations": {**annotations, JOB_SIZE: job.size, **_ends(job)},
            "ownerReferences": [unstructured.controlled_by(job.item)],
        },
        "spec": _spec(job, priorities),
    }


def change(stored: Object, wanted: Object) -> Object | None:
    """The merge patch that brings a PodGroup up to date; None when it is."""
    spec = {
        key: value
        for key, value in wanted["spec"].items()
        if key != _SET_ONCE and not _covers(unstructured.spec(stored).get(key), value)
    }
    for key in ("minTaskMember", "minResources"):
        if key in spec:
            before = unstructured.spec(stored).get(key) or {}
            spec[key] = {**dict.fromkeys(before), **spec[key]}
    for key in ("subGroupPolicy", "networkTopology", "topologyAffinity", "priorityClassName"):
        if key in unstructured.spec(stored) and key not in wanted["spec"]:
            spec[key] = None
    metadata = {
        kind: values
        for kind, values in (
            ("labels", _missing(wanted, stored, "labels")),
            ("annotations", _missing(wanted, stored, "annotations")),
        )
        if values
    }
    made = {key: value for key, value in (("metadata", metadata), ("spec", spec)) if value}
    return made or None


def _ends(job: Job) -> dict[str, str]:
    return {EVICTION_ENDS: JOB_ENDS} if policies.ends_with_a_pod(job) else {}


def stranded_since(job: Job, stored: Object | None, *, now: float) -> dict[str, str]:
    """The annotation of a group that runs below its minimum, where the job is to be told of it."""
    if stored is None or job.stranded is None:
        return {}
    if unstructured.status(stored).get("phase") != "Unknown":
        return {}
    before = unstructured.annotations(stored).get(STRANDED_SINCE, "")
    return {STRANDED_SINCE: before if moment(before) else times.seconds(now)}


def _spec(job: Job, priorities: Mapping[str, int]) -> Object:
    spec = job.spec
    made: Object = {
        "minMember": job.min_available,
        "minTaskMember": {task.name: task.minimum for task in job.tasks},
        "queue": job.queue,
        "minResources": min_resources(job, priorities),
    }
    for key in ("priorityClassName", "networkTopology", "topologyAffinity"):
        if spec.get(key):
            made[key] = spec[key]
    apart = len(job.tasks) > 1 and not spec.get("networkTopology")
    named = _named_tasks(mapping(spec.get("topologyAffinity")))
    parts = [
        _without_minimum(part) if _comes_later(job, task) else part
        for task in job.tasks
        if (part := _part(task) if task.partition else _pod_set(task, apart, named))
    ]
    if parts:
        made["subGroupPolicy"] = parts
    return made


def _comes_later(job: Job, task: Task) -> bool:
    """Whether the job runs before the task's pods are made, as its minimum does without them.

    A gang that asked for sub-groups of the task would wait for pods which wait for it.
    """
    counted = job.min_available >= sum(each.minimum for each in job.tasks)
    return not counted and not is_ready(job, task, {})


def _without_minimum(part: Object) -> Object:
    return {**part, "minSubGroups": 0}


def _part(task: Task) -> Object:
    assert task.partition is not None
    made: Object = {
        "name": task.name,
        "labelSelector": {"matchLabels": {TASK_SPEC: task.name}},
        "matchLabelKeys": [PARTITION_ID],
        "subGroupSize": task.partition.size,
        "minSubGroups": task.partition.minimum,
    }
    if task.partition.topology:
        made["networkTopology"] = dict(task.partition.topology)
    return made


def _named_tasks(affinity: Mapping[str, Any]) -> set[str]:
    """The tasks that terms about sub-groups name: each is a sub-group, or its partitions are."""
    found: set[str] = set()
    for key in ("subGroupAffinity", "subGroupAntiAffinity"):
        block = mapping(affinity.get(key))
        for term in (*mappings(block.get("required")), *mappings(block.get("preferred"))):
            found.update(texts(term.get("subGroups")))
    return found


def _pod_set(task: Task, apart: bool, named: Collection[str]) -> Object | None:
    """A task with Kueue's annotation is a pod set: it has a domain of its own, if ``apart``.

    So is one that is ``named``, without a domain; None: it is neither.
    """
    asked = asked_by_pod(unstructured.annotations(task.template)) if apart else None
    if asked is None and task.name not in named:
        return None
    made: Object = {
        "name": task.name,
        "labelSelector": {"matchLabels": {TASK_SPEC: task.name}},
        "matchLabelKeys": [TASK_SPEC],
        "subGroupSize": max(task.minimum, 1),
        "minSubGroups": min(task.minimum, 1),
    }
    if asked is not None:
        made["networkTopology"] = {"mode": asked.mode, "highestTierName": asked.highest_tier_name}
    return made


def min_resources(job: Job, priorities: Mapping[str, int]) -> dict[str, str]:
    """What the pods without which the job cannot run ask for, and their limits."""
    total: dict[str, int] = {}
    pods = needed(job, priorities)
    for task, claim in zip(job.tasks, job.claims, strict=True):
        for name, amount in claim.items():
            total[name] = total.get(name, 0) + amount * pods[task.name]
    return {name: quantity.text(name, amount) for name, amount in sorted(total.items())}


def needed(job: Job, priorities: Mapping[str, int]) -> dict[str, int]:
    """How many pods of each task the job cannot run without."""
    parts = [
        Part(_priority(job, task, priorities), task.minimum, task.replicas) for task in job.tasks
    ]
    pods = pods_needed(parts, job.min_available)
    return {task.name: number for task, number in zip(job.tasks, pods, strict=True)}


def _priority(job: Job, task: Task, priorities: Mapping[str, int]) -> int:
    spec = task.template.get("spec") or {}
    name = spec.get("priorityClassName") or job.spec.get("priorityClassName")
    return priorities.get(str(name), 0)


def _covers(stored: Any, wanted: Any) -> bool:
    """Whether what is stored says what is wanted, defaults of the API server left aside."""
    if isinstance(wanted, Mapping) and isinstance(stored, Mapping):
        return all(_covers(stored.get(key), value) for key, value in wanted.items()) and (
            set(stored) <= set(wanted) or "mode" in stored
        )
    if isinstance(wanted, list) and isinstance(stored, list):
        return len(wanted) == len(stored) and all(map(_covers, stored, wanted))
    return bool(stored == wanted)


def _missing(wanted: Object, stored: Object, kind: str) -> dict[str, str | None]:
    there, now = unstructured.metadata(stored).get(kind) or {}, wanted["metadata"][kind]
    gone: dict[str, str | None] = {key: None for key in _OURS if key in there and key not in now}
    return {**gone, **{key: value for key, value in now.items() if there.get(key) != value}}
