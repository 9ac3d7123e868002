"""The pods of a job, as far as the job's life depends on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.controllers.job.view import moment
from app.controllers.job.vocabulary import (
    EVICTED_AT,
    JOB_VERSION,
    OUT_OF_SYNC,
    SETTLED,
    TASK_INDEX,
)
from app.model.pod import GATE, TASK_SPEC
from app.model.reason import LOST_PLACE
from app.wire import evicted, unstructured
from app.wire.unstructured import Object

_EVICTION: Final = ("DisruptionTarget", "EvictionByEvictionAPI")
"""Type and reason of the condition by which the API server tells of an eviction."""


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of the job. Times are seconds since the epoch, 0: not yet."""

    item: Object
    name: str
    uid: str
    task: str
    index: int
    phase: str
    version: int
    deleting: bool
    marked: bool

    @property
    def ended(self) -> bool:
        """Whether the pod has run to its end, either way."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def spec(self) -> Mapping[str, Any]:
        """The pod's ``spec``."""
        return unstructured.spec(self.item)

    @property
    def bound(self) -> bool:
        """Whether the pod has a node."""
        return bool(self.spec.get("nodeName"))

    @property
    def created(self) -> float:
        """When the pod was made."""
        return moment(unstructured.metadata(self.item).get("creationTimestamp"))

    @property
    def deleted(self) -> float:
        """When the pod's end was asked for."""
        meta = unstructured.metadata(self.item)
        at = moment(meta.get("deletionTimestamp"))
        return at - float(meta.get("deletionGracePeriodSeconds") or 0) if at else 0.0

    @property
    def evicted(self) -> float:
        """When the pod's predecessor was evicted, if it was."""
        return moment(unstructured.annotations(self.item).get(EVICTED_AT))

    @property
    def is_victim(self) -> bool:
        """Whether Pumice has evicted the pod for others: that the pod fails then is not its fault.

        Our mark alone does not tell: the eviction may not have followed.
        """
        if not evicted.read(unstructured.annotations(self.item), uid=self.uid):
            return False
        conditions = unstructured.status(self.item).get("conditions") or ()
        return any(map(_is_eviction, conditions))

    @property
    def settled(self) -> bool:
        """Whether the pod's success is no news for its task."""
        return SETTLED in unstructured.annotations(self.item)

    @property
    def finished(self) -> float:
        """When the last of the pod's containers ended."""
        ends = (
            moment(_terminated(entry).get("finishedAt")) for entry in self._statuses("container")
        )
        return max(ends, default=0.0)

    @property
    def exit_code(self) -> int | None:
        """The exit code of the pod's first container."""
        first: Mapping[str, Any] = next(iter(self._statuses("container")), {})
        code = _terminated(first).get("exitCode")
        return None if code is None else int(code)

    @property
    def restarts(self) -> int:
        """How often the pod's containers were started again."""
        both = [*self._statuses("initContainer"), *self._statuses("container")]
        return sum(int(entry.get("restartCount") or 0) for entry in both)

    @property
    def is_up(self) -> bool:
        """Whether others may start that need it: it has succeeded, or all of it is ready."""
        if self.phase != "Running":
            return self.phase == "Succeeded"
        return all(entry.get("ready") for entry in self._statuses("container"))

    @property
    def refused_node(self) -> str:
        """The one node it may run on and was refused, or whose room was taken; else empty."""
        if self.bound or self.deleting or self.phase not in {"", "Pending"}:
            return ""
        if any(gate.get("name") == GATE for gate in self.spec.get("schedulingGates") or ()):
            return ""
        conditions = unstructured.status(self.item).get("conditions") or ()
        return pinned_node(self.spec) if any(map(_is_refusal, conditions)) else ""

    def _statuses(self, kind: str) -> list[Mapping[str, Any]]:
        return list(unstructured.status(self.item).get(f"{kind}Statuses") or ())


def members(pods: Iterable[Object], known: Mapping[str, Member] | None = None) -> list[Member]:
    """Pods that say which task and replica they are, by task and index.

    ``known``: what was read before by UID; an object that is still the same is not read again.
    """
    found = [member for pod in pods if (member := _read(pod, known or {})) is not None]
    return sorted(found, key=lambda member: (member.task, member.index, member.name))


def by_task(members: Iterable[Member]) -> Mapping[str, Sequence[Member]]:
    """The pods of each task that has any."""
    found: dict[str, list[Member]] = {}
    for member in members:
        found.setdefault(member.task, []).append(member)
    return found


def with_taken(there: Sequence[Member], created: Sequence[Object]) -> Sequence[Member]:
    """``there``; pods just ``created`` that others took away already count as they were made.

    From a status that never counted them nothing would tell that they were evicted.
    """
    if not created:
        return there
    staying = {member.uid for member in there if not member.deleting}
    taken = members(pod for pod in created if unstructured.uid(pod) not in staying)
    gone = {member.uid for member in taken}
    return [*(member for member in there if member.uid not in gone), *taken]


def _read(pod: Object, known: Mapping[str, Member]) -> Member | None:
    before = known.get(unstructured.uid(pod))
    return before if before is not None and before.item is pod else _member(pod)


def _member(pod: Object) -> Member | None:
    annotations = unstructured.annotations(pod)
    task = annotations.get(TASK_SPEC, "")
    index = annotations.get(TASK_INDEX) or unstructured.name(pod).rpartition("-")[2]
    if not task or not index.isdecimal():
        return None
    version = annotations.get(JOB_VERSION, "")
    return Member(
        item=pod,
        name=unstructured.name(pod),
        uid=unstructured.uid(pod),
        task=task,
        index=int(index),
        phase=str(unstructured.status(pod).get("phase") or "Pending"),
        version=int(version) if version.isdecimal() else 0,
        deleting=unstructured.is_deleting(pod),
        marked=OUT_OF_SYNC in annotations,
    )


def _terminated(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return (entry.get("state") or {}).get("terminated") or {}


def _is_refusal(condition: Mapping[str, Any]) -> bool:
    if condition.get("type") != "PodScheduled" or condition.get("status") != "False":
        return False
    # kube-scheduler tries a pod whose Bind failed again after a pause that grows, and only then
    # finds that there is no room, or no such node.
    return condition.get("reason") == "Unschedulable" or condition.get("message") in LOST_PLACE


def _is_eviction(condition: Mapping[str, Any]) -> bool:
    return (condition.get("type"), condition.get("reason")) == _EVICTION


def pinned_node(spec: Mapping[str, Any]) -> str:
    """The one node that a pod spec allows; empty when it is not pinned."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    nodes = {_only_node(term) for term in required.get("nodeSelectorTerms") or ()}
    return next(iter(nodes)) if len(nodes) == 1 else ""


def _only_node(term: Mapping[str, Any]) -> str:
    for field in term.get("matchFields") or ():
        values = list(field.get("values") or ())
        if field.get("key") == "metadata.name" and field.get("operator") == "In":
            return str(values[0]) if len(values) == 1 else ""
    return ""
