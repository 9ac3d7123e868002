"""A vcjob as the controller reads it; what admission would have filled in is filled in here too."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from app.controllers.job.vocabulary import JOB_FORWARDING, Action, Event, Phase
from app.core.gangs import stranded
from app.core.gangs.stranded import StrandedAction
from app.kit.durations import parse_duration
from app.wire import times, unstructured
from app.wire.errors import DecodeError
from app.wire.kinds import JOBS
from app.wire.objects.claims import claim
from app.wire.unstructured import Key, Object

DEFAULT_RETRIES: Final = 3
UNLIMITED_RETRIES: Final = -1


_STRANDED: Final[Mapping[StrandedAction, Action]] = {
    StrandedAction.RESTART: Action.RESTART_JOB,
    StrandedAction.RELEASE: Action.ABORT_JOB,
}


@dataclass(frozen=True, slots=True)
class Policy:
    """A lifecycle policy; ``timeout_s`` None: at once."""

    action: str
    events: frozenset[str]
    exit_code: int | None
    timeout_s: float | None


@dataclass(frozen=True, slots=True)
class Partition:
    """How a task's replicas are split; ``size`` pods with neighbouring indexes each."""

    size: int
    minimum: int
    topology: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Dependency:
    """Tasks that must be up before this one's pods are made."""

    names: tuple[str, ...]
    any_of: bool


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the job; ``minimum``: its part of the gang."""

    name: str
    replicas: int
    minimum: int
    max_retry: int
    template: Mapping[str, Any]
    policies: tuple[Policy, ...]
    depends_on: Dependency | None
    partition: Partition | None
    topology_policy: str

    def partition_of(self, index: int) -> str:
        """The partition of a replica; empty when there are none."""
        return str(index // self.partition.size) if self.partition else ""


@dataclass(frozen=True)
class Job:
    """A vcjob. Two views are never compared; ``item`` is the stored object."""

    item: Object
    default_scheduler: str

    def as_now(self, item: Object) -> "Job":
        """The job as it is stored now; a spec that has not changed is not read again."""
        now = Job(item, self.default_scheduler)
        if now.uid == self.uid and now.generation == self.generation > 0:
            read = {name: value for name, value in vars(self).items() if name in _OF_SPEC}
            vars(now).update(read)
        return now

    @cached_property
    def key(self) -> Key:
        """The job's namespace and name."""
        return unstructured.key_of(self.item)

    @property
    def uid(self) -> str:
        """The job's UID."""
        return unstructured.uid(self.item)

    def is_left_over(self, pod: Object) -> bool:
        """Whether the pod is one of an earlier job of this name, which is gone or going."""
        owner = unstructured.owner_of(pod)
        if owner is None or owner.uid == self.uid:
            return False
        of = owner.api_version, owner.kind, owner.name
        return of == (JOBS.api_version, JOBS.kind, self.key.name)

    @property
    def generation(self) -> int:
        """How often the job's spec has changed."""
        return int(unstructured.metadata(self.item).get("generation") or 0)

    @property
    def created(self) -> float:
        """When the job was submitted."""
        return moment(unstructured.metadata(self.item).get("creationTimestamp"))

    @property
    def spec(self) -> Mapping[str, Any]:
        """The job's ``spec``."""
        return unstructured.spec(self.item)

    @property
    def status(self) -> Mapping[str, Any]:
        """The job's ``status`` as stored."""
        return unstructured.status(self.item)

    def counted(self, task: str) -> Mapping[str, int]:
        """Pods of the task by phase, as the status counts them."""
        of_task = (self.status.get("taskStatusCount") or {}).get(task) or {}
        return {phase: int(number) for phase, number in (of_task.get("phase") or {}).items()}

    @property
    def state(self) -> Mapping[str, Any]:
        """``status.state``."""
        return self.status.get("state") or {}

    @cached_property
    def phase(self) -> Phase:
        """Where in its life the job is; an unknown word starts it anew."""
        try:
            return Phase(self.state.get("phase") or "")
        except ValueError:
            return Phase.NEW

    @cached_property
    def version(self) -> int:
        """How often the job has been killed."""
        return int(self.status.get("version") or 0)

    @cached_property
    def retries(self) -> int:
        """How often the job has been restarted or resumed."""
        return int(self.status.get("retryCount") or 0)

    @property
    def failures(self) -> int:
        """How many of the job's restarts a failure has caused."""
        return self.retries - int(self.status.get("restartsWithoutFailure") or 0)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The job's tasks in order."""
        return tuple(_task(entry, at) for at, entry in enumerate(self.spec.get("tasks") or ()))

    @cached_property
    def _by_name(self) -> Mapping[str, Task]:
        """The first task of each name."""
        return {task.name: task for task in reversed(self.tasks)}

    def task(self, name: str) -> Task | None:
        """The task of that name."""
        return self._by_name.get(name)

    @cached_property
    def claims(self) -> tuple[Mapping[str, int], ...]:
        """What one pod of each task asks for, and its limits."""
        return tuple(_claim(task) for task in self.tasks)

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """The policies of the job as a whole."""
        return _policies(self.spec)

    @cached_property
    def stranded(self) -> Policy | None:
        """The answer to a gang that runs below its minimum for too long; None: there is none."""
        rule = stranded.rule_of(unstructured.annotations(self.item))
        if rule is None:
            return None
        action = _STRANDED[rule.action].value
        return Policy(action, frozenset({Event.STRANDED.value}), None, rule.after_s)

    @property
    def stranded_problem(self) -> str:
        """Why the annotations about that ask for nothing, as people are told; else empty."""
        problem = stranded.unreadable(unstructured.annotations(self.item))
        return str(problem) if problem is not None else ""

    @cached_property
    def has_policies(self) -> bool:
        """Whether the job or a task of it has any policy."""
        return bool(self.policies) or any(task.policies for task in self.tasks)

    @cached_property
    def replicas(self) -> int:
        """Pods of all tasks."""
        return sum(task.replicas for task in self.tasks)

    @cached_property
    def min_available(self) -> int:
        """Pods without which it cannot run; of a job that says none, those its tasks cannot."""
        said = self.spec.get("minAvailable")
        return sum(task.minimum for task in self.tasks) if said is None else int(said)

    @cached_property
    def size(self) -> str:
        """Another word for all its replicas and minima together."""
        tasks = [(task.name, task.replicas, task.minimum) for task in self.tasks]
        return hashlib.sha256(repr((self.min_available, tasks)).encode()).hexdigest()[:16]

    @property
    def min_success(self) -> int | None:
        """Pods whose success is enough."""
        said = self.spec.get("minSuccess")
        return None if said is None else int(said)

    @property
    def max_retry(self) -> int:
        """After how many restarts the job has failed."""
        return int(self.spec.get("maxRetry") or DEFAULT_RETRIES)

    @property
    def queue(self) -> str:
        """The queue it runs in."""
        return str(self.spec.get("queue") or "default")

    @property
    def is_forwarded(self) -> bool:
        """Whether the job is meant for another cluster."""
        return unstructured.annotations(self.item).get(JOB_FORWARDING) == "true"

    @property
    def scheduler(self) -> str:
        """The scheduler of its pods unless their template names another."""
        return str(self.spec.get("schedulerName") or self.default_scheduler)

    @property
    def plugins(self) -> Mapping[str, Sequence[str]]:
        """Plugin name to arguments."""
        return self.spec.get("plugins") or {}

    @property
    def volumes(self) -> Sequence[Mapping[str, Any]]:
        """``spec.volumes``."""
        return self.spec.get("volumes") or ()


_OF_SPEC: Final = frozenset(
    {
        "tasks",
        "_by_name",
        "claims",
        "policies",
        "has_policies",
        "replicas",
        "min_available",
        "size",
    }
)
"""What is read of a spec alone."""


def moment(text: object) -> float:
    """Seconds since the epoch; 0 for what is not a time."""
    try:
        return times.parse(str(text)) if text else 0.0
    except DecodeError:
        return 0.0


def _task(entry: Mapping[str, Any], at: int) -> Task:
    partition = _partition(entry.get("partitionPolicy"))
    replicas = int(entry.get("replicas") or 0)
    return Task(
        name=str(entry.get("name") or f"default{at}"),
        replicas=replicas,
        minimum=_minimum(entry.get("minAvailable"), replicas, partition),
        max_retry=int(entry.get("maxRetry") or DEFAULT_RETRIES),
        template=entry.get("template") or {},
        policies=_policies(entry),
        depends_on=_dependency(entry.get("dependsOn")),
        partition=partition,
        topology_policy=str(entry.get("topologyPolicy") or ""),
    )


def _claim(task: Task) -> Mapping[str, int]:
    """Nothing when its template cannot be read: no pod will come of it."""
    try:
        return claim(task.template.get("spec") or {})
    except DecodeError:
        return {}


def _minimum(said: Any, replicas: int, partition: Partition | None) -> int:
    if said is not None:
        return int(said)
    if partition is not None and partition.minimum:
        return partition.minimum * partition.size
    return replicas


def _partition(entry: Mapping[str, Any] | None) -> Partition | None:
    if not entry:
        return None
    return Partition(
        size=max(int(entry.get("partitionSize") or 0), 1),
        minimum=int(entry.get("minPartitions") or 0),
        topology=entry.get("networkTopology"),
    )


def _dependency(entry: Mapping[str, Any] | None) -> Dependency | None:
    names = tuple(str(name) for name in (entry or {}).get("name") or ())
    if not entry or not names:
        return None
    return Dependency(names, any_of=entry.get("iteration") == "any")


def _policies(holder: Mapping[str, Any]) -> tuple[Policy, ...]:
    return tuple(_policy(entry) for entry in holder.get("policies") or ())


def _policy(entry: Mapping[str, Any]) -> Policy:
    events = {str(event) for event in entry.get("events") or ()}
    if entry.get("event"):
        events.add(str(entry["event"]))
    code = entry.get("exitCode")
    return Policy(
        action=str(entry.get("action") or ""),
        events=frozenset(events),
        exit_code=None if code is None else int(code),
        timeout_s=_seconds(str(entry.get("timeout") or "")),
    )


def _seconds(timeout: str) -> float | None:
    try:
        return parse_duration(timeout) if timeout else None
    except ValueError:
        return None
