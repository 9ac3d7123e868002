"""Jobs from submission to their end, in the words that clients watch for."""

from app.wire.kinds import POD_GROUPS
from tests.controllers.job.rig import Rig, play, policy, task


def test_a_job_runs_and_completes() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({"minAvailable": 2, "tasks": [task()]})
        assert rig.phase() == "Running"
        await rig.later(3661)
        rig.succeed()
        await rig.settle()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Completed"]
    assert rig.status()["succeeded"] == 2
    assert rig.status()["runningDuration"] == "1h1m1s"
    assert rig.status()["taskStatusCount"] == {"main": {"phase": {"Succeeded": 2}}}
    assert rig.pods() == ["job-main-0", "job-main-1"]
    assert not rig.api.all(POD_GROUPS)


def test_a_failed_pod_restarts_the_job() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(
            {"minAvailable": 2, "tasks": [task()], "policies": [policy("PodFailed", "RestartJob")]}
        )
        rig.fail("job-main-0")
        await rig.settle()
        await rig.drain()
        rig.run()
        await rig.settle()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert rig.status()["version"] == 1
    assert rig.status()["retryCount"] == 1
    assert rig.events.messages("ExecuteAction") == ["Start to execute action RestartJob "]
