"""Warnings about new jobs."""

from __future__ import annotations

from typing import Any

import pytest

from app.wire.unstructured import Object
from tests.webhooks.objects import ask, asking, facts, job, node, pod_spec, queue, task

CLUSTER = facts(
    queue("small", capability={"cpu": 4}),
    nodes=(node("a", cpu=8, memory="32Gi"), node("b", cpu=8, memory="32Gi")),
    classes=("high",),
)


HALVES = {"totalPartitions": 2, "partitionSize": 1}


def sized(replicas: int, **requests: object) -> Object:
    return task("a", replicas, minAvailable=replicas, template={"spec": asking(**requests)})


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        (
            job(sized(1, cpu=9)),
            "spec.tasks[0].template.spec: no node is large enough for a pod that asks for cpu 9 "
            "(largest node: 8)",
        ),
        (
            job(sized(3, cpu="1500m"), queue="small"),
            "spec.queue: the minimum asks for cpu 4500m, more than queue small may ever use (4)",
        ),
        (
            job(priorityClassName="low"),
            "spec.priorityClassName: there is no PriorityClass low",
        ),
        (job(task("a", 2), minSuccess=3), "spec.minSuccess: 3 of 2 pods can never succeed"),
        (
            job(plugins={"tensorflow": []}),
            "spec.plugins.tensorflow: there is no task chief, evaluator, ps, worker: TF_CONFIG "
            "lists no hosts; write --ps=TASK or --worker=TASK or --chief=TASK or --evaluator=TASK",
        ),
        (
            job(networkTopology={"mode": "hard", "highestTierAllowed": 1}),
            "spec.networkTopology: has no effect here: pods are placed without regard to it",
        ),
        (
            job(task("a", 2, partitionPolicy={**HALVES, "networkTopology": {"mode": "soft"}})),
            "spec.tasks[0].partitionPolicy.networkTopology: has no effect here: pods are placed "
            "without regard to it",
        ),
        (
            job({**sized(1, cpu=1), "topologyPolicy": "single-numa-node"}),
            "spec.tasks[0].topologyPolicy: has no effect here: pods are placed without regard to "
            "it",
        ),
        (
            job(task("a", template={"restartPolicy": "Never", "spec": pod_spec()})),
            "spec.tasks[0].template.restartPolicy: unknown field",
        ),
        (
            job(volumes=[{"mountPath": "/a", "volumeClaim": {"storageClass": "fast"}}]),
            "spec.volumes[0].volumeClaim.storageClass: unknown field "
            "(did you mean storageClassName?)",
        ),
    ],
    ids=[
        "size",
        "limit",
        "class",
        "success",
        "plugin",
        "network",
        "partitions",
        "numa",
        "field",
        "claim",
    ],
)
def test_a_warning_is_given(given: Object, warning: str) -> None:
    verdict = ask("/jobs/validate", given, cluster=CLUSTER)
    assert verdict.message == ""
    assert verdict.warnings == (warning,)


def after(*names: str, replicas: int = 1, **fields: Any) -> Object:
    depends = {"name": list(names), "iteration": "any"}
    return task("late", replicas, dependsOn=depends, **{"minAvailable": replicas, **fields})


@pytest.mark.parametrize(
    "given",
    [
        job(task("a", minAvailable=1), after("a"), minAvailable=2),
        job(task("a", 5, minAvailable=1), after("a"), minAvailable=2),
        job(task("a", minAvailable=1), task("b", minAvailable=1), after("a", "b"), minAvailable=3),
        job(task("a"), task("late", dependsOn={"name": ["a"]})),
    ],
    ids=["in all", "of the role", "any", "not completed"],
)
def test_a_minimum_that_takes_tasks_that_wait_for_others_is_warned_of(given: Object) -> None:
    (warning,) = ask("/jobs/validate", given, cluster=CLUSTER).warnings
    assert "takes pods of late, which wait for other tasks" in warning


@pytest.mark.parametrize(
    "given",
    [
        job(task("a", minAvailable=1), after("a"), minAvailable=1),
        job(task("a", 2, minAvailable=2), after("a", minAvailable=0), minAvailable=2),
        job(task("a", minAvailable=0), after("a"), minAvailable=1),
        job(task("a", minAvailable=1), task("b", minAvailable=0), after("a", "b"), minAvailable=2),
        job(task("a", minAvailable=1), task("b", dependsOn={}), minAvailable=2),
    ],
    ids=["the first is enough", "it is extra", "nothing to wait for", "any is up", "nobody named"],
)
def test_a_minimum_that_the_first_tasks_reach_is_not(given: Object) -> None:
    assert ask("/jobs/validate", given, cluster=CLUSTER).warnings == ()


def test_a_job_that_fits_gets_none() -> None:
    given = job(sized(2, cpu=2, memory="1Gi"), queue="small", priorityClassName="high")
    assert ask("/jobs/validate", given, cluster=CLUSTER).warnings == ()
