"""tensorflow: ``TF_CONFIG``, the cluster as every member sees it.

A job of a single pod is no cluster and gets none.
"""

import json

from app.jobplugins import pods
from app.jobplugins.plugin import JobFacts, PodOfJob
from app.jobplugins.rules.arguments import Tensorflow
from app.jobplugins.rules.job_tasks import JobTasks
from app.jobplugins.wanted import Wanted
from app.wire.unstructured import Object

VARIABLE = "TF_CONFIG"


class TensorflowPlugin:
    """Adds the variable."""

    def __init__(self, arguments: Tensorflow, job: JobFacts) -> None:
        """``arguments`` say which task plays which role."""
        self._roles = {
            arguments.evaluator: "evaluator",
            arguments.chief: "chief",
            arguments.worker: "worker",
            arguments.ps: "ps",
        }
        tasks = job.job_tasks.tasks
        self._alone = len(tasks) == 1 and tasks[0].replicas == 1
        self._cluster = _text(_cluster(job.job_tasks, arguments))

    def pod(self, pod: Object, place: PodOfJob) -> None:
        """``TF_CONFIG`` in the containers proper."""
        if self._alone:
            return
        task = {"type": self._roles.get(place.task, place.task), "index": place.index}
        # The cluster is the same for all pods and can be long: its text is made once.
        value = f'{{"cluster":{self._cluster},"task":{_text(task)}}}'
        pods.add_variables(pods.containers(pod), [pods.variable(VARIABLE, value)])

    def objects(self) -> tuple[Wanted, ...]:
        """None."""
        return ()


def _cluster(job_tasks: JobTasks, arguments: Tensorflow) -> dict[str, list[str]]:
    roles = {
        "ps": arguments.ps,
        "worker": arguments.worker,
        "chief": arguments.chief,
        "evaluator": arguments.evaluator,
    }
    cluster: dict[str, list[str]] = {}
    for role, name in roles.items():
        task = job_tasks.task(name)
        if task is not None and task.replicas:
            cluster[role] = [f"{host}:{arguments.port}" for host in job_tasks.hosts(task)]
    return cluster


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
