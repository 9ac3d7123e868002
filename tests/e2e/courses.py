"""What users do to jobs and nodes, and others beside them, in an order by chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from tests.clusters import nodes, workloads
from tests.clusters.client import ApiError, Object
from tests.clusters.resources import JOBS, NODES, POD_GROUPS, PODS
from tests.controllers.job.stand import Stand
from tests.e2e.errands import Errands
from tests.scenarios.jobs.shapes import make_job, policy, task

_COMMANDS = (
    ["sleep", "infinity"],
    ["sh", "-c", "sleep 0.3"],
    ["sh", "-c", "sleep 3"],
    ["sh", "-c", "exit 3"],
)
_EVENTS = ("PodFailed", "PodEvicted", "TaskCompleted")
_ACTIONS = ("RestartJob", "RestartTask", "RestartPod", "CompleteJob", "TerminateJob", "AbortJob")
_ORDERS = ("AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob")
_GONE = {404, 409}
"""What a step is about has gone, or is another one by now."""


class Course:
    """One step after the other; `clear` when it is over."""

    def __init__(self, place: Stand, die: random.Random) -> None:
        self._place = place
        self._die = die
        self._made = 0
        self._nodes = nodes.names(2, prefix=place.name)
        self._errands = Errands(place, die, self._spec)
        self._steps: Mapping[Callable[[], None], int] = {
            self._submit: 10,
            self._order: 3,
            self._suspend_and_resume: 2,
            self._evict: 5,
            self._scale: 3,
            self._delete_job: 2,
            self._delete_group: 1,
            self._cordon: 1,
            self._lose_node: 1,
            **self._errands.steps,
        }

    def step(self) -> None:
        """Do something."""
        (act,) = self._die.choices([*self._steps], [*self._steps.values()])
        try:
            act()
        except ApiError as error:
            if error.code not in _GONE:
                raise

    def end(self) -> None:
        """All nodes take pods again, and nothing is done by the clock any more."""
        self._errands.end()
        for node in self._nodes:
            self._set_unschedulable(node, None)

    def clear(self) -> None:
        """Take all that was made away."""
        self._errands.clear()

    def _submit(self) -> None:
        spec = {**self._spec(), "queue": self._errands.queue()}
        self._place.submit(f"job-{self._made}", spec)
        self._made += 1

    def _spec(self) -> dict[str, Any]:
        tasks = [self._task(name) for name in "abc"[: self._die.randint(1, 3)]]
        total = sum(each["replicas"] for each in tasks)
        needs = self._die.choice([total, self._die.randint(1, total)])
        events = self._die.sample(_EVENTS, self._die.randint(0, 2))
        rules = [policy(event, self._die.choice(_ACTIONS)) for event in events]
        return make_job(*tasks, needs=needs, maxRetry=self._die.randint(1, 3), policies=rules)

    def _task(self, name: str) -> Object:
        replicas = self._die.choice([1, 2, 4])
        made = task(name, replicas, command=self._die.choice(_COMMANDS))
        if self._die.random() < 0.3:
            made["minAvailable"] = self._die.randint(0, replicas)
        if self._die.random() < 0.2:
            workloads.behind_queue_gate(made["template"])
        container = made["template"]["spec"]["containers"][0]
        container["resources"]["requests"]["cpu"] = self._die.choice(["100m", "250m", "500m"])
        return made

    def _order(self) -> None:
        self._place.command(self._any_job(), self._die.choice(_ORDERS))

    def _suspend_and_resume(self) -> None:
        name = self._any_job()
        self._place.command(name, "AbortJob")
        self._place.command(name, "ResumeJob")

    def _evict(self) -> None:
        pods = self._place.all(PODS)
        if pods:
            name = self._die.choice(pods)["metadata"]["name"]
            grace_s = self._die.choice([0, 1])
            self._place.api.delete(PODS, name, namespace=self._place.name, grace_s=grace_s)

    def _scale(self) -> None:
        name = self._any_job()
        tasks = self._place.job(name)["spec"]["tasks"]
        chosen = self._die.choice(tasks)
        chosen["replicas"] = self._die.choice([1, 2, 3, 5])
        chosen["minAvailable"] = self._die.randint(0, chosen["replicas"])
        change = {"tasks": tasks, "minAvailable": 1}
        self._place.api.patch(JOBS, name, {"spec": change}, namespace=self._place.name)

    def _delete_job(self) -> None:
        self._place.delete_whole(self._any_job())

    def _delete_group(self) -> None:
        groups = self._place.all(POD_GROUPS)
        if groups:
            name = self._die.choice(groups)["metadata"]["name"]
            self._place.api.delete(POD_GROUPS, name, namespace=self._place.name)

    def _cordon(self) -> None:
        self._set_unschedulable(self._die.choice(self._nodes), self._die.choice([True, None]))

    def _lose_node(self) -> None:
        name = self._die.choice(self._nodes)
        self._place.api.delete(NODES, name)
        self._place.api.create(nodes.node(name), resource=NODES)

    def _set_unschedulable(self, node: str, value: bool | None) -> None:
        self._place.api.patch(NODES, node, {"spec": {"unschedulable": value}})

    def _any_job(self) -> str:
        """One that was made; it may have gone."""
        return f"job-{self._die.randrange(max(self._made, 1))}"
