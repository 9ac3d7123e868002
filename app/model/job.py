"""What the scheduler needs to know of a vcjob: what its pods will look like."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.model.pod import TASK_SPEC
from app.model.shape import PodShape
from app.model.topology import NetworkTopology

JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
QUEUE_NAME: Final = "volcano.sh/queue-name"


def pod_labels(*, job: str, namespace: str, queue: str, task: str) -> dict[str, str]:
    """The labels by which the pods of a job's task are found; all of them have these."""
    return {JOB_NAME: job, TASK_SPEC: task, JOB_NAMESPACE: namespace, QUEUE_NAME: queue}


@dataclass(frozen=True, slots=True)
class Template:
    """What the pods of one task will ask for, their labels, and how many there will be.

    ``replicas`` None: nothing tells.
    """

    shape: PodShape
    labels: Mapping[str, str]
    queue_first: bool = False
    """What the template's pods say (:attr:`~app.model.pod.Pod.queue_first`)."""
    replicas: int | None = None
    priority_class: str = ""
    """The PriorityClass that the template names; empty: none."""
    preempts: bool = True
    """As of its pods (:attr:`~app.model.pod.Pod.preempts`), whatever their PriorityClass says."""
    topology: NetworkTopology | None = None
    """The domain that the pods ask for (:attr:`~app.model.pod.Pod.topology`)."""
    deadline: float = 0.0
    """As of its pods (:attr:`~app.model.pod.Pod.deadline`)."""


@dataclass(frozen=True, slots=True, eq=False)
class JobTemplate:
    """``roles``: task name -> its template, in the order of the tasks (volcano.md §2.3)."""

    uid: str
    namespace: str
    name: str
    roles: Mapping[str, Template]
