"""JobFlows and CronJobs with everybody who takes part: jobs run, pods end, statuses follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.embedded import Embedded
from tests.clusters.place import Place
from tests.clusters.resources import CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, JOBS, Resource

pytestmark = pytest.mark.sandbox


@pytest.fixture
def place(embedded: Embedded) -> Iterator[Place]:
    """A namespace with two nodes on the sandbox."""
    with Place(embedded) as made:
        made.add_nodes(2)
        yield made


def job_spec(command: str) -> Object:
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", command]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    task = {"name": "main", "replicas": 1, "template": {"spec": pod}}
    return {"schedulerName": "volcano", "minAvailable": 1, "tasks": [task]}


def create(place: Place, resource: Resource, name: str, spec: Any) -> None:
    place.api.create(workloads.item(resource, name, spec=spec), namespace=place.name)


def test_a_flow_runs_to_its_end_and_leaves_nothing_when_it_is_told_so(place: Place) -> None:
    create(place, JOB_TEMPLATES, "first", job_spec("sleep 0.5"))
    create(place, JOB_TEMPLATES, "second", job_spec("sleep 0.2"))
    patch = {"jobSpec": {"minAvailable": 3, "tasks": [{"name": "main", "replicas": 3}]}}
    flows = [
        {"name": "first"},
        {"name": "second", "dependsOn": {"targets": ["first"]}, "patch": patch},
    ]
    create(place, JOB_FLOWS, "flow", {"flows": flows, "jobRetainPolicy": "delete"})

    flow = place.api.until_one(
        JOB_FLOWS,
        "flow",
        lambda found: found.get("status", {}).get("state", {}).get("phase") == "Succeed",
        namespace=place.name,
    )
    place.api.until(JOBS, lambda jobs: not jobs, namespace=place.name)
    progress = flow["status"]["conditions"]
    assert progress["flow-first"]["taskStatusCount"] == {"main": {"phase": {"Succeeded": 1}}}
    assert progress["flow-second"]["taskStatusCount"] == {"main": {"phase": {"Succeeded": 3}}}
    first, second = flow["status"]["jobStatusList"]
    assert first["endTimestamp"] <= second["startTimestamp"]


def test_a_step_that_fails_fails_the_flow(place: Place) -> None:
    failing = job_spec("exit 3")
    failing["maxRetry"] = 1
    failing["policies"] = [{"event": "PodFailed", "action": "TerminateJob"}]
    create(place, JOB_TEMPLATES, "first", failing)
    create(place, JOB_TEMPLATES, "second", job_spec("sleep 0.2"))
    flows = [{"name": "first"}, {"name": "second", "dependsOn": {"targets": ["first"]}}]
    create(place, JOB_FLOWS, "flow", {"flows": flows})

    flow = place.api.until_one(
        JOB_FLOWS,
        "flow",
        lambda found: found.get("status", {}).get("state", {}).get("phase") == "Failed",
        namespace=place.name,
    )
    assert flow["status"]["terminatedJobs"] == ["flow-first"]
    assert [job["metadata"]["name"] for job in place.api.list(JOBS, namespace=place.name)] == [
        "flow-first"
    ]


def test_a_cron_job_runs_jobs_to_their_end(place: Place) -> None:
    template = {"spec": job_spec("sleep 0.2")}
    create(place, CRON_JOBS, "cron", {"schedule": "@every 1s", "jobTemplate": template})

    place.api.until_one(
        CRON_JOBS,
        "cron",
        lambda found: "lastSuccessfulTime" in found.get("status", {}),
        namespace=place.name,
    )
    place.api.delete(CRON_JOBS, "cron", namespace=place.name)
    place.api.until(JOBS, lambda jobs: not jobs, namespace=place.name)
