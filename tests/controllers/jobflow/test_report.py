"""What the status of a JobFlow says of its jobs."""

import pytest

from app.wire import times
from tests.controllers.jobflow.flows import (
    FakeProber,
    move,
    run,
    status,
    step,
    submit,
    template,
)
from tests.controllers.play import Play


def test_the_status_tells_the_history_of_each_job() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a")
        submit(stage, step("a"))
        await stage.settle()
        start = times.seconds(stage.clock())
        await stage.later(10)
        await move(stage, "a", "Running", retryCount=2)
        middle = times.seconds(stage.clock())
        await stage.later(10)
        counts = {"server": {"phase": {"Succeeded": 2}}}
        await move(stage, "a", "Completed", taskStatusCount=counts, runningDuration="10s")
        end = times.seconds(stage.clock())
        assert status(stage)["jobStatusList"] == [
            {
                "name": "flow-a",
                "state": "Completed",
                "startTimestamp": start,
                "endTimestamp": end,
                "restartCount": 2,
                "runningHistories": [
                    {"state": "Pending", "startTimestamp": start, "endTimestamp": middle},
                    {"state": "Running", "startTimestamp": middle, "endTimestamp": end},
                    {"state": "Completed", "startTimestamp": end},
                ],
            }
        ]
        assert status(stage)["conditions"] == {
            "flow-a": {
                "phase": "Completed",
                "createTime": start,
                "runningDuration": "10s",
                "taskStatusCount": counts,
            }
        }

    run(scenario)


@pytest.mark.parametrize(
    ("job", "listed", "ended", "flow"),
    [
        ("", "pendingJobs", False, "Pending"),
        ("Pending", "pendingJobs", False, "Pending"),
        ("Running", "runningJobs", False, "Running"),
        ("Restarting", "unKnowJobs", False, "Pending"),
        ("Completing", "", False, "Pending"),
        ("Completed", "completedJobs", True, "Running"),
        ("Aborting", "unKnowJobs", False, "Pending"),
        ("Aborted", "unKnowJobs", True, "Pending"),
        ("Terminating", "", False, "Pending"),
        ("Terminated", "terminatedJobs", True, "Failed"),
        ("Failed", "failedJobs", True, "Failed"),
    ],
)
def test_a_phase_of_a_job_that_lasts_has_its_list(
    job: str, listed: str, ended: bool, flow: str
) -> None:
    lists = ("pendingJobs", "runningJobs", "completedJobs", "failedJobs", "terminatedJobs")

    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b", "c")
        submit(stage, step("a"), step("b"), step("c", "a", "b"))
        await stage.settle()
        await move(stage, "b", "Pending")
        await move(stage, "a", job)
        said = status(stage)
        found = {each: said[each] for each in (*lists, "unKnowJobs") if said[each]}
        expected = {"pendingJobs": ["flow-b"]}
        if listed:
            expected[listed] = ["flow-a", *expected.get(listed, [])]
        assert found == expected
        (entry, _other) = said["jobStatusList"]
        assert ("endTimestamp" in entry) == ended
        assert said["state"]["phase"] == flow

    run(scenario)
