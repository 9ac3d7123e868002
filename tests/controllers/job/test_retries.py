"""What counts towards `maxRetry`: what the job itself does wrong, and nothing else."""

import pytest

from tests.controllers.job.rig import Rig, play, policy, task

_SPEC = {"minAvailable": 2, "maxRetry": 3, "tasks": [task(replicas=2)]}


async def _runs(rig: Rig) -> None:
    await rig.drain()
    rig.run()
    await rig.settle()
    assert rig.phase() == "Running"


def test_a_job_is_healthy_however_often_it_is_suspended_and_resumed() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC)
        for number in range(5):
            rig.command("AbortJob", name=f"suspend-{number}")
            await rig.drain()
            rig.command("ResumeJob", name=f"resume-{number}")
            await _runs(rig)

    assert play(scenario).status()["retryCount"] == 5


def test_a_job_is_healthy_however_often_a_command_restarts_it() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC)
        for number in range(5):
            rig.command("RestartJob", name=f"again-{number}")
            await _runs(rig)

    assert play(scenario).status()["retryCount"] == 5


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod"])
def test_a_job_is_healthy_however_often_its_pods_are_evicted(action: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "policies": [policy("PodEvicted", action)]})
        for _ in range(5):
            rig.evict("job-main-0")
            await _runs(rig)

    assert play(scenario).status()["retryCount"] == 5


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod"])
def test_failures_count_between_suspensions(action: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "policies": [policy("PodFailed", action)]})
        for number in range(2):
            rig.fail("job-main-0")
            await _runs(rig)
            rig.command("AbortJob", name=f"suspend-{number}")
            await rig.drain()
            rig.command("ResumeJob", name=f"resume-{number}")
            await _runs(rig)
        rig.fail("job-main-0")
        await rig.drain()

    rig = play(scenario)
    assert rig.phase() == "Failed"
    message = rig.status()["state"]["message"]
    assert message == "failures that asked for a restart: 3, maxRetry is 3"
    assert rig.status()["retryCount"] == 5
