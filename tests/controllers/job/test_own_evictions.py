"""Pods that Pumice evicts for others: what policies answer, and that it is no fault of the job."""

from typing import Any

import pytest

from app.controllers.job import group, policies
from app.wire import evicted
from tests.controllers.job.jobs import make_job, make_pod, of
from tests.controllers.job.rig import Rig, play, policy, task

_EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
_SPEC = {"minAvailable": 2, "maxRetry": 2, "tasks": [task(replicas=2)]}
_OF_JOB = ["RestartJob", "AbortJob", "TerminateJob", "CompleteJob"]
_TARGETED = ["RestartTask", "RestartPod", "RestartPartition"]


def _preempt(rig: Rig, pod: str) -> None:
    """The pod is marked, evicted, and stopped by its kubelet, which it takes badly."""
    uid = rig.pod(pod)["metadata"]["uid"]
    rig.change(pod, evicted.annotation("preempt for ns/other", uid=uid))
    rig.change(pod, {"status": {"conditions": [_EVICTED]}})
    rig.evict(pod)
    rig.fail(pod, code=143)


async def _again(rig: Rig) -> None:
    await rig.drain()
    rig.run()
    await rig.settle()


def test_a_pod_that_pumice_evicts_is_made_anew_and_has_not_failed() -> None:
    """Its kubelet says that it failed, before it is gone."""

    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "policies": [policy("PodFailed", "AbortJob")]})
        for _ in range(4):
            _preempt(rig, "job-main-0")
            await _again(rig)

    rig = play(scenario)
    assert set(rig.phases) == {"Pending", "Running"}
    assert rig.pods() == ["job-main-0", "job-main-1"]
    assert "retryCount" not in rig.status()


def test_its_exit_code_is_not_answered_either() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "policies": [{"exitCode": 143, "action": "AbortJob"}]})
        _preempt(rig, "job-main-0")
        await _again(rig)

    assert play(scenario).phase() == "Running"


@pytest.mark.parametrize("named", ["PodEvicted", "*"])
@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod"])
def test_policies_answer_the_eviction_and_no_retry_is_used_up(named: str, action: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "policies": [policy(named, action)]})
        for _ in range(4):
            _preempt(rig, "job-main-0")
            await _again(rig)

    rig = play(scenario)
    assert rig.phases[-1] == "Running"
    assert rig.phases.count("Restarting") == 4
    assert rig.status()["retryCount"] == rig.status()["restartsWithoutFailure"] == 4


def test_the_failure_of_a_pod_that_is_gone_before_it_is_looked_at_was_none_either() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "policies": [policy("PodFailed", "AbortJob")]})
        _preempt(rig, "job-main-0")
        rig.vanish("job-main-0")
        await _again(rig)

    assert play(scenario).phase() == "Running"


def test_a_pod_that_is_marked_and_never_evicted_fails_as_any_other() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "policies": [policy("PodFailed", "AbortJob")]})
        uid = rig.pod("job-main-0")["metadata"]["uid"]
        rig.change("job-main-0", evicted.annotation("preempt for ns/other", uid=uid))
        rig.fail("job-main-0")
        await rig.drain()

    assert play(scenario).phase() == "Aborted"


@pytest.mark.parametrize(
    ("uid", "conditions", "is_victim"),
    [
        ("u-job-main-0", [_EVICTED], True),
        ("u-job-main-0", [{**_EVICTED, "reason": "DeletionByTaintManager"}], False),
        ("u-job-main-0", [], False),
        ("another", [_EVICTED], False),
        ("", [_EVICTED], False),
    ],
    ids=["ours", "of a taint", "only marked", "a mark that was copied", "of others"],
)
def test_a_victim_has_our_mark_and_the_condition_of_an_eviction(
    uid: str, conditions: list[Any], is_victim: bool
) -> None:
    mark = evicted.annotation("preempt", uid=uid)["metadata"]["annotations"] if uid else {}
    [member] = of(make_pod("job-main-0", "Failed", annotations=mark, conditions=conditions))
    assert member.is_victim is is_victim


@pytest.mark.parametrize("named", ["PodEvicted", "*"])
@pytest.mark.parametrize("action", [*_OF_JOB, *_TARGETED, "SyncJob"])
@pytest.mark.parametrize("timeout", [None, "5m"])
def test_the_group_says_whether_the_eviction_of_one_pod_ends_the_job(
    named: str, action: str, timeout: str | None
) -> None:
    more = {"timeout": timeout} if timeout else {}
    partitions = {"totalPartitions": 2, "partitionSize": 1}
    of_main = task(partitionPolicy=partitions)
    spec = {"tasks": [of_main], "policies": [policy(named, action, **more)]}
    made = group.pod_group(make_job(spec), name="g", priorities={})
    said = made["metadata"]["annotations"].get("pumice.sh/eviction-ends")
    assert said == ("job" if action in _OF_JOB else None)


@pytest.mark.parametrize(
    ("of_tasks", "of_job", "ends"),
    [
        ([[], []], [], False),
        ([[], []], [policy("PodFailed", "RestartJob")], False),
        ([[policy("PodEvicted", "RestartJob")], []], [], True),
        ([[policy("PodEvicted", "RestartPod")], []], [policy("*", "RestartJob")], True),
        ([[policy("PodEvicted", "RestartPod")]] * 2, [policy("*", "RestartJob")], False),
    ],
)
def test_a_task_whose_pods_end_the_job_is_enough(
    of_tasks: list[list[Any]], of_job: list[Any], ends: bool
) -> None:
    tasks = [task(f"t{number}", policies=given) for number, given in enumerate(of_tasks)]
    job = make_job({"tasks": tasks, "policies": of_job})
    assert policies.ends_with_a_pod(job) is ends


def test_what_the_group_says_is_kept_true() -> None:
    job = make_job({"tasks": [task()], "policies": [policy("*", "RestartJob")]})
    other = make_job({"tasks": [task()]}, annotations={"pumice.sh/eviction-ends": "job"})
    ends, goes_on = (group.pod_group(each, name="g", priorities={}) for each in (job, other))
    key = "pumice.sh/eviction-ends"
    assert key not in goes_on["metadata"]["annotations"]
    taken = group.change(ends, goes_on)
    assert taken is not None
    assert taken["metadata"]["annotations"][key] is None
    given = group.change(goes_on, ends)
    assert given is not None
    assert given["metadata"]["annotations"][key] == "job"
    assert group.change(ends, ends) is None
