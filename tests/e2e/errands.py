"""What is done beside the users of jobs: flows, CronJobs, queues, gangs of an operator."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.resources import (
    COMMANDS,
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    POD_GROUPS,
    PODS,
    QUEUES,
    Resource,
)
from tests.controllers.job.stand import Stand

_TEMPLATES = ("first", "second", "third")
_LIMITS: tuple[dict[str, str] | None, ...] = (None, {"cpu": "1"}, {"cpu": "4"})


class Errands:
    """Steps of a course and what they need; ``job_spec`` makes up a job."""

    def __init__(
        self, place: Stand, die: random.Random, job_spec: Callable[[], dict[str, Any]]
    ) -> None:
        self._place = place
        self._die = die
        self._job_spec = job_spec
        self._made = 0
        self._queues = [f"{place.name}-a", f"{place.name}-b"]
        for name in self._queues:
            place.api.create(workloads.queue(name), resource=QUEUES)
        for name in _TEMPLATES:
            self._place.create(JOB_TEMPLATES, name, self._job())
        self.steps: Mapping[Callable[[], None], int] = {
            self._create_flow: 2,
            self._delete_flow: 1,
            self._create_gang: 3,
            self._delete_gang: 1,
            self._create_cron_job: 1,
            self._limit_queue: 1,
            self._open_or_close_queue: 1,
        }

    def queue(self) -> str:
        """Any queue."""
        return self._die.choice(["default", *self._queues])

    def end(self) -> None:
        """Suspend what makes jobs by the clock."""
        for cron_job in self._place.all(CRON_JOBS):
            name = cron_job["metadata"]["name"]
            change = {"spec": {"suspend": True}}
            self._place.api.patch(CRON_JOBS, name, change, namespace=self._place.name)

    def clear(self) -> None:
        """Take everything away; the queues last, as they must be empty."""
        for resource in (CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, JOBS, POD_GROUPS, PODS):
            self._place.api.delete_all(resource, namespace=self._place.name)
        self._place.wait_none(JOBS, POD_GROUPS, PODS)
        for name in self._queues:
            self._place.api.delete(QUEUES, name)

    def _create_flow(self) -> None:
        names = self._die.sample(_TEMPLATES, self._die.randint(1, len(_TEMPLATES)))
        steps: list[dict[str, Any]] = [{"name": names[0]}]
        for number, name in enumerate(names[1:], start=1):
            targets = self._die.sample(names[:number], self._die.randint(1, number))
            steps.append({"name": name, "dependsOn": {"targets": targets}})
        policy = self._die.choice(["retain", "delete"])
        spec = {"flows": steps, "jobRetainPolicy": policy}
        self._place.create(JOB_FLOWS, self._name("flow"), spec)

    def _delete_flow(self) -> None:
        if flows := self._place.all(JOB_FLOWS):
            self._delete(JOB_FLOWS, self._die.choice(flows))

    def _create_cron_job(self) -> None:
        spec = {
            "schedule": "* * * * *",
            "concurrencyPolicy": self._die.choice(["Allow", "Forbid", "Replace"]),
            "jobTemplate": {"spec": self._job()},
        }
        self._place.create(CRON_JOBS, self._name("cron"), spec)

    def _create_gang(self) -> None:
        """A group and its pods; either may be there first."""
        name, size = self._name("gang"), self._die.choice([1, 2, 4])
        least = self._die.randint(1, size)
        group = workloads.pod_group(name, min_member=least, queue=self.queue())
        cpu = self._die.choice(["100m", "250m", "1"])
        pods = workloads.members(name, size, cpu=cpu, gated=self._die.random() < 0.5)
        if self._die.random() < 0.3:
            pods = [workloads.behind_queue_gate(pod) for pod in pods]
        made = [(POD_GROUPS, [group]), (PODS, pods)]
        self._die.shuffle(made)
        for resource, items in made:
            for item in items:
                self._place.api.create(item, resource=resource, namespace=self._place.name)

    def _delete_gang(self) -> None:
        """Its group, and its pods after it."""
        gangs = [each for each in self._place.all(POD_GROUPS) if not _is_owned(each)]
        if not gangs:
            return
        gang = self._die.choice(gangs)
        self._delete(POD_GROUPS, gang)
        for pod in self._place.all(PODS):
            if pod["metadata"]["labels"].get("group") == gang["metadata"]["name"]:
                self._delete(PODS, pod)

    def _limit_queue(self) -> None:
        change = {"spec": {"capability": self._die.choice(_LIMITS)}}
        self._place.api.patch(QUEUES, self._die.choice(self._queues), change)

    def _open_or_close_queue(self) -> None:
        queue = self._place.api.get(QUEUES, self._die.choice(self._queues))
        action = self._die.choice(["OpenQueue", "OpenQueue", "CloseQueue"])
        command = workloads.command(queue, action)
        self._place.api.create(command, resource=COMMANDS, namespace=self._place.name)

    def _job(self) -> dict[str, Any]:
        return {**self._job_spec(), "schedulerName": workloads.SCHEDULER, "queue": self.queue()}

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made}"

    def _delete(self, resource: Resource, item: Object) -> None:
        name = item["metadata"]["name"]
        self._place.api.delete(resource, name, namespace=self._place.name)


def _is_owned(item: Object) -> bool:
    return bool(item["metadata"].get("ownerReferences"))
