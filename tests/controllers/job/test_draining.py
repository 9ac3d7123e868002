"""Pods that fail while they are deleted, as the kubelet has it: killed, Failed, then gone."""

from typing import Any

import pytest

from app.wire.kinds import PODS
from tests.controllers.job.rig import Rig, play, policy, task

_KILLED = 137
_ABORTED = ["Aborting", "Aborted"]
_RESTARTED = ["Restarting", "Pending", "Running"]


def _spec(*policies: Any) -> dict[str, Any]:
    return {"minAvailable": 2, "tasks": [task()], "policies": list(policies)}


def _die(rig: Rig, pod: str = "job-main-0", code: int = _KILLED) -> None:
    rig.fail(pod, code=code)


async def _in_steps(rig: Rig) -> None:
    rig.evict("job-main-0")
    await rig.settle()
    _die(rig)
    await rig.settle()
    rig.vanish("job-main-0")


async def _at_once(rig: Rig) -> None:
    """The watch shows all of it before anybody looks."""
    rig.evict("job-main-0")
    _die(rig)
    rig.vanish("job-main-0")


async def _while_nobody_looks(rig: Rig) -> None:
    """The controller finds the pod as the kubelet left it."""
    await rig.kill()
    rig.evict("job-main-0")
    _die(rig)
    rig.start()
    await rig.settle()
    rig.vanish("job-main-0")


@pytest.mark.parametrize("drain", [_in_steps, _at_once, _while_nobody_looks])
@pytest.mark.parametrize(
    ("rules", "phases"),
    [
        ([policy("PodFailed", "AbortJob")], _ABORTED),
        ([policy(["PodFailed"], "RestartJob")], _RESTARTED),
        ([policy("PodFailed", "RestartPod")], _RESTARTED),
        ([policy("PodFailed", "RestartTask")], _RESTARTED),
        ([{"exitCode": _KILLED, "action": "AbortJob"}], _ABORTED),
        ([{"exitCode": 1, "action": "AbortJob"}], ["Pending", "Running"]),
        ([policy("*", "RestartPod")], _RESTARTED),
        ([policy("PodFailed", "AbortJob"), policy("PodEvicted", "RestartJob")], _RESTARTED),
        ([], ["Pending", "Running"]),
    ],
)
def test_a_pod_that_is_drained_has_failed(rules: Any, phases: list[str], drain: Any) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(*rules))
        rig.phases.clear()
        await drain(rig)
        await rig.drain()
        if phases[-1] == "Running":
            rig.run()
            await rig.settle()

    rig = play(scenario)
    done = rig.events.messages("ExecuteAction")
    # That it waits for the pod's place is there to be seen or not, as fast as it is filled.
    assert [phase for phase in rig.phases if phase != "Running"][-2:] == [
        phase for phase in phases if phase != "Running"
    ]
    assert len(done) == (0 if phases[0] == "Pending" else 1)
    assert rig.status().get("retryCount", 0) == (phases == _RESTARTED)


@pytest.mark.parametrize(
    "action", ["RestartJob", "AbortJob", "TerminateJob", "CompleteJob", "RestartTask"]
)
def test_pods_that_die_of_a_kill_of_ours_have_not_failed(action: str) -> None:
    rules = [policy("PodEvicted", action), policy("PodFailed", "TerminateJob")]

    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(*rules))
        rig.evict("job-main-0")
        await rig.settle()
        for pod in rig.pods():
            _die(rig, pod)
            await rig.settle()
            rig.vanish(pod)
        await rig.settle()

    rig = play(scenario)
    assert rig.events.messages("ExecuteAction") == [f"Start to execute action {action} "]


def test_a_pod_that_dies_because_the_task_shrinks_has_not_failed() -> None:
    rules = [policy("PodFailed", "AbortJob")]

    async def scenario(rig: Rig) -> None:
        await rig.started({"minAvailable": 1, "tasks": [task(minAvailable=1)], "policies": rules})
        rig.edit_job({"spec": {"tasks": [task(replicas=1, minAvailable=1)]}})
        await rig.settle()
        _die(rig, "job-main-1")
        rig.vanish("job-main-1")
        rig.edit_job({"spec": {"tasks": [task(replicas=2, minAvailable=1)]}})
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running"]
    assert rig.pods() == ["job-main-0", "job-main-1"]


@pytest.mark.parametrize("drain", [_in_steps, _at_once])
@pytest.mark.parametrize("forgiven", [False, True])
def test_a_failure_of_a_drained_pod_may_be_answered_later(drain: Any, *, forgiven: bool) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodFailed", "AbortJob", timeout="1m")))
        await drain(rig)
        await rig.settle()
        await rig.later(58)
        assert rig.phase() in {"Pending", "Running"}
        if forgiven:
            rig.run("job-main-0")
            await rig.settle()
        await rig.later(3)
        await rig.drain()

    assert (play(scenario).phase() == "Aborted") is not forgiven


@pytest.mark.parametrize("crash", [False, True], ids=["", "over a crash"])
@pytest.mark.parametrize("drain", [_in_steps, _at_once])
def test_a_drained_pod_has_the_time_of_an_evicted_one(drain: Any, *, crash: bool) -> None:
    rules = [policy("PodEvicted", "TerminateJob", timeout="1m")]
    rules += [policy("PodFailed", "AbortJob", timeout="5m")]

    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(*rules))
        await drain(rig)
        await rig.drain()
        if crash:
            await rig.kill()
            rig.start()
        await rig.later(57)
        assert rig.phase() in {"Pending", "Running"}
        await rig.later(5)
        await rig.drain()

    assert play(scenario).phase() == "Terminated"


def test_what_became_of_pods_of_a_job_that_is_gone_is_nobodys_concern() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodFailed", "AbortJob")))
        rig.api.lagging.add(PODS)
        _die(rig)
        rig.vanish("job-main-0")
        rig.edit_job({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        await rig.settle()
        rig.api.lagging.clear()
        await rig.settle()

    assert play(scenario).phases == ["Pending", "Running"]
