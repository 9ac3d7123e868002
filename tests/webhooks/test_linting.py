"""Warnings about new jobs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from app.wire.unstructured import Object
from tests.webhooks.objects import (
    ask,
    asking,
    facts,
    group,
    job,
    node,
    patched,
    pod,
    pod_spec,
    queue,
    task,
)

CLUSTER = facts(
    queue("small", capability={"cpu": 4}),
    nodes=(node("a", cpu=8, memory="32Gi"), node("b", cpu=8, memory="32Gi")),
    classes=("high",),
)


HALVES = {"totalPartitions": 2, "partitionSize": 1}


def sized(replicas: int, **requests: object) -> Object:
    return task("a", replicas, minAvailable=replicas, template={"spec": asking(**requests)})


def test_pods_with_cpus_of_their_own_may_ask_for_a_topology_policy() -> None:
    limits = {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}
    template = {"spec": {"containers": [{"name": "c", "image": "i", **limits}]}}
    given = job(task("a", topologyPolicy="single-numa-node", template=template))
    assert ask("/jobs/validate", given, cluster=CLUSTER).warnings == ()


@pytest.mark.parametrize(
    "asked",
    [
        {"highestTierAllowed": 1},
        {"mode": "hard", "highestTierName": "rack"},
        {"mode": "soft"},
        {"mode": "soft", "highestTierAllowed": 2},
    ],
    ids=str,
)
def test_a_topology_of_a_job_its_partitions_a_group_and_its_parts_is_heeded(asked: Object) -> None:
    parts = {"totalPartitions": 2, "partitionSize": 1, "networkTopology": asked}
    tasks = task("a", 2, minAvailable=2, partitionPolicy=parts), task("b", minAvailable=1)
    given = job(*tasks, networkTopology=asked)
    given["metadata"]["annotations"] = {
        "volcano.sh/task-topology-affinity": "a,b",
        "volcano.sh/task-topology-task-order": "b,a",
    }
    policy = {"name": "a", "networkTopology": asked, "matchLabelKeys": ["part"]}
    of_group = {"spec": {"minMember": 2, "networkTopology": asked, "subGroupPolicy": [policy]}}
    group = {"metadata": {"name": "g", "namespace": "default"}, **of_group}
    for path, each in (("/jobs/validate", given), ("/podgroups/validate", group)):
        verdict = ask(path, each, cluster=CLUSTER)
        assert (verdict.message, verdict.warnings) == ("", ())


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
            job({**sized(1, cpu=1), "topologyPolicy": "single-numa-node"}),
            "spec.tasks[0].topologyPolicy: has no effect: only pods of the class Guaranteed have "
            "cpus of their own; give each container limits of cpu and memory, and requests that "
            "equal them or none",
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
        "numa",
        "field",
        "claim",
    ],
)
def test_a_warning_is_given(given: Object, warning: str) -> None:
    verdict = ask("/jobs/validate", given, cluster=CLUSTER)
    assert verdict.message == ""
    assert verdict.warnings == (warning,)


@pytest.mark.parametrize(
    ("policy", "warning"),
    [
        (
            {"event": "PodPending", "action": "AbortJob"},
            "event: PodPending without a timeout has no effect",
        ),
        (
            {"events": ["PodFailed", "PodPending"], "action": "AbortJob"},
            "event: PodPending without a timeout has no effect",
        ),
        (
            {"event": "PodFailed", "action": "ResumeJob"},
            "action: ResumeJob has no effect as a policy",
        ),
        (
            {"event": "PodFailed", "action": "RestartPartition"},
            "action: RestartPartition has no effect without a partitionPolicy",
        ),
        (
            {"event": "PodFailed", "action": "AbortJob", "timeout": "-5m"},
            "timeout: a negative timeout puts nothing off",
        ),
        (
            {"event": "PodPending", "action": "AbortJob", "timeout": "-5m"},
            "timeout: the action follows at once, as every pod is pending at first",
        ),
        (
            {"event": "PodPending", "action": "AbortJob", "timeout": "0s"},
            "timeout: the action follows at once, as every pod is pending at first",
        ),
        (
            {"events": ["PodFailed", "JobUpdated"], "action": "RestartPod"},
            "action: RestartPod on JobUpdated has no effect",
        ),
    ],
)
def test_a_policy_that_comes_to_nothing_is_warned_of(policy: Object, warning: str) -> None:
    of_job = ask("/jobs/validate", job(policies=[policy]), cluster=CLUSTER)
    of_task = ask("/jobs/validate", job(task(policies=[policy])), cluster=CLUSTER)
    for verdict, path in ((of_job, "spec"), (of_task, "spec.tasks[0]")):
        assert verdict.allowed
        (told,) = verdict.warnings
        assert told.startswith(f"{path}.policies[0].{warning}")


@pytest.mark.parametrize(
    "policy",
    [
        {"event": "PodPending", "action": "AbortJob", "timeout": "10m"},
        {"event": "*", "action": "AbortJob"},
        {"event": "PodFailed", "action": "AbortJob", "timeout": "0s"},
        {"event": "Unknown", "action": "RestartJob"},
        {"event": "PodFailed", "action": "RestartTask"},
    ],
)
def test_a_policy_that_can_act_is_not_warned_of(policy: Object) -> None:
    given = job(task(replicas=2, policies=[policy]), policies=[policy])
    assert ask("/jobs/validate", given, cluster=CLUSTER).warnings == ()


def unsaid(name: str, replicas: int, *, of: str = "", cpu: int = 1) -> Object:
    """A task that says no minimum, of pods of that priority class."""
    pod = {**asking(cpu=cpu), **({"priorityClassName": of} if of else {})}
    return task(name, replicas, template={"spec": pod})


def as_stored(given: Object) -> Any:
    """As admission completes it."""
    return patched(copy.deepcopy(given), ask("/jobs/mutate", given))


def warnings_of(given: Object) -> tuple[str, ...]:
    return ask("/jobs/validate", as_stored(given), cluster=CLUSTER).warnings


@pytest.mark.parametrize(
    "given",
    [
        job(unsaid("a", 8), minAvailable=1, queue="small"),
        job(unsaid("a", 3), unsaid("b", 9), minAvailable=4, queue="small"),
        job(unsaid("a", 9), unsaid("b", 2, of="high"), minAvailable=2, queue="small"),
        job(unsaid("a", 2, cpu=4), unsaid("b", 2, of="high"), minAvailable=2, queue="small"),
        job({**unsaid("a", 4), "minAvailable": 0}, minAvailable=4, queue="small"),
    ],
    ids=["the job says less", "over two tasks", "two classes", "the class goes first", "no task"],
)
def test_a_minimum_within_the_limit_is_not_warned_of(given: Object) -> None:
    assert warnings_of(given) == ()


@pytest.mark.parametrize(
    ("given", "cpus"),
    [
        (job(unsaid("a", 8), minAvailable=5, queue="small"), 5),
        (job(unsaid("a", 2), unsaid("b", 2, of="high", cpu=3), minAvailable=2, queue="small"), 6),
        (job(unsaid("a", 8, cpu=1) | {"minAvailable": 1}, minAvailable=6, queue="small"), 6),
        (job(sized(5, cpu=1), queue="small"), 5),
    ],
    ids=["of the job", "the class goes first", "beyond those of its tasks", "of its tasks"],
)
def test_a_minimum_that_the_job_says_is_not_called_filled_in(given: Object, cpus: int) -> None:
    assert warnings_of(given) == (
        f"spec.queue: the minimum asks for cpu {cpus}, more than queue small may ever use (4)",
    )


def test_a_minimum_that_was_filled_in_is_said_to_be() -> None:
    some = [unsaid("a", 3), {**unsaid("b", 2), "minAvailable": 1}, unsaid("c", 2)]
    told = (
        "spec.queue: the minimum asks for cpu 6, more than queue small may ever use (4); the job "
        "says no minimum, so admission filled in: spec.minAvailable 6, "
        "spec.tasks[0].minAvailable 3, spec.tasks[2].minAvailable 2"
    )
    assert warnings_of(job(*some, queue="small")) == (told,)
    assert ask("/jobs/validate", job(*some, queue="small"), cluster=CLUSTER).warnings == (told,)


def test_of_many_minima_that_were_filled_in_the_first_are_named() -> None:
    (told,) = warnings_of(job(*(unsaid(f"t{n}", 1) for n in range(9)), queue="small"))
    assert told.endswith(
        "spec.minAvailable 9, "
        + ", ".join(f"spec.tasks[{n}].minAvailable 1" for n in range(3))
        + " and 6 more"
    )


def test_a_gang_that_waits_for_itself_by_what_was_filled_in_is_told_so() -> None:
    (told,) = warnings_of(job(task("a"), task("late", dependsOn={"name": ["a"]})))
    assert told.startswith("spec.minAvailable: 2 takes pods of late")
    assert "the job says no minimum, so admission filled in: spec.minAvailable 2" in told


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


def test_what_is_asked_of_the_network_is_not_warned_of() -> None:
    halves = {**HALVES, "networkTopology": {"mode": "soft"}}
    given = job(task("a", 2, partitionPolicy=halves), networkTopology={"mode": "hard"})
    assert warnings_of(given) == ()


@pytest.mark.parametrize(
    ("key", "value", "warning"),
    [
        ("preemptable", "yes", '"yes" counts as "false": write "true" or "false"'),
        (
            "cooldown-time",
            "5 min",
            '"5 min" has no effect: write how long a pod is not evicted, such as 90s or 1h30m',
        ),
        ("revocable-zone", "rz1", '"rz1" has no effect: write "*"'),
        ("preemptable", "true", ""),
        ("cooldown-time", "5m", ""),
        ("revocable-zone", "*", ""),
    ],
)
def test_what_cannot_be_read_about_eviction_is_warned_of(
    key: str, value: str, warning: str
) -> None:
    said = {f"volcano.sh/{key}": value}
    for path, given in (
        ("jobs", job()),
        ("jobs", job(task(template={"metadata": {"annotations": said}, "spec": pod_spec()}))),
        ("podgroups", group(minMember=1)),
        ("pods", pod()),
    ):
        inside = path == "jobs" and "metadata" in given["spec"]["tasks"][0]["template"]
        if not inside:
            given["metadata"]["annotations"] = said
        where = "spec.tasks[0].template.metadata" if inside else "metadata"
        told = ask(f"/{path}/validate", given, cluster=CLUSTER)
        assert told.allowed
        assert told.warnings == (
            (f"{where}.annotations[volcano.sh/{key}]: {warning}",) if warning else ()
        )


def test_a_budget_for_which_the_pods_of_a_job_are_refused_is_warned_of() -> None:
    def warnings(of_job: Object, of_template: Object) -> tuple[str, ...]:
        template = {"metadata": {"annotations": of_template}, "spec": pod_spec()}
        given = job(task(template=template))
        given["metadata"]["annotations"] = of_job
        return ask("/jobs/validate", given, cluster=CLUSTER).warnings

    least, most = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
    where = "spec.tasks[0].template.metadata.annotations"
    refused = f'pods with it are refused: invalid value <"0%"> for {least}'
    [told] = warnings({least: "0%"}, {})
    assert told.startswith(f"metadata.annotations[{least}]: {refused}")
    [told] = warnings({}, {least: "0%"})
    assert told.startswith(f"{where}[{least}]: {refused}")
    [told] = warnings({least: "1"}, {most: "1"})
    assert told == (
        f"{where}[{most}]: the pods of the task are refused, as they have {least} of the job too: "
        "a pod may have only one of them"
    )
    assert warnings({least: "1", most: "1"}, {}) == ()
    assert warnings({least: "1"}, {least: "2"}) == ()
