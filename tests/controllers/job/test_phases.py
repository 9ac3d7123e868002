"""The sequences of phases that clients of Volcano watch for (volcano.md section 9.3)."""

from typing import Any

import pytest

from app.wire.kinds import POD_GROUPS
from tests.controllers.job.rig import Rig, play, policy, task


def _gang(*policies: Any, **more: Any) -> dict[str, Any]:
    return {"minAvailable": 2, "tasks": [task()], "policies": list(policies), **more}


def _of_task(*policies: Any, **more: Any) -> dict[str, Any]:
    return {"minAvailable": 2, "tasks": [task(policies=list(policies))], **more}


def _fail(rig: Rig) -> None:
    rig.fail("job-main-0", code=3)


def _evict(rig: Rig) -> None:
    rig.evict("job-main-0")


def _vanish(rig: Rig) -> None:
    rig.vanish("job-main-0")


def _succeed(rig: Rig) -> None:
    rig.succeed("job-main-0", "job-main-1")


def _unknown(rig: Rig) -> None:
    rig.admit("Unknown")


def _crash_loop(rig: Rig) -> None:
    rig.run("job-main-0", restarts=2)
    rig.run("job-main-1", restarts=1)


_RESTARTED = ["Restarting", "Pending", "Running"]
_ABORTED = ["Aborting", "Aborted"]
_TERMINATED = ["Terminating", "Terminated"]
_COMPLETED = ["Completing", "Completed"]


@pytest.mark.parametrize("where", [_gang, _of_task], ids=["of job", "of task"])
@pytest.mark.parametrize(
    ("rule", "happens", "phases"),
    [
        (policy("PodFailed", "RestartJob"), _fail, _RESTARTED),
        (policy("PodFailed", "AbortJob"), _fail, _ABORTED),
        (policy("PodFailed", "TerminateJob"), _fail, _TERMINATED),
        (policy("PodFailed", "CompleteJob"), _fail, _COMPLETED),
        (policy("PodFailed", "RestartTask"), _fail, _RESTARTED),
        (policy("PodFailed", "RestartPod"), _fail, _RESTARTED),
        (policy("PodFailed", "RestartPartition"), _fail, []),
        (policy("PodEvicted", "RestartPartition"), _evict, []),
        (policy("*", "RestartPartition"), _vanish, []),
        (policy("PodFailed", "ResumeJob"), _fail, []),
        (policy("PodFailed", "SyncJob"), _fail, []),
        (policy("PodFailed", "Nonsense"), _fail, []),
        ({"exitCode": 3, "action": "RestartJob"}, _fail, _RESTARTED),
        ({"exitCode": 4, "action": "RestartJob"}, _fail, []),
        (policy("PodEvicted", "RestartJob"), _evict, _RESTARTED),
        (policy("PodEvicted", "TerminateJob"), _evict, _TERMINATED),
        (policy("PodEvicted", "AbortJob"), _evict, _ABORTED),
        (policy("PodEvicted", "RestartTask"), _evict, _RESTARTED),
        (policy("PodEvicted", "RestartPod"), _evict, _RESTARTED),
        (policy("PodEvicted", "RestartJob"), _vanish, _RESTARTED),
        (policy("PodEvicted", "TerminateJob"), _vanish, _TERMINATED),
        (policy("PodEvicted", "RestartTask"), _vanish, _RESTARTED),
        (policy("PodEvicted", "RestartPod"), _vanish, _RESTARTED),
        (policy(["PodEvicted", "PodFailed"], "TerminateJob"), _evict, _TERMINATED),
        (policy(["PodEvicted", "PodFailed"], "TerminateJob"), _fail, _TERMINATED),
        (policy("*", "RestartJob"), _evict, _RESTARTED),
        (policy("*", "RestartJob"), _fail, _RESTARTED),
        (policy("*", "AbortJob"), _crash_loop, _ABORTED),
        (policy("TaskCompleted", "CompleteJob"), _succeed, _COMPLETED),
        (policy("TaskCompleted", "RestartTask"), _succeed, _RESTARTED),
        (policy("TaskFailed", "TerminateJob"), _crash_loop, _TERMINATED),
        (policy("TaskFailed", "RestartTask"), _crash_loop, _RESTARTED),
        (policy("PodFailed", "TerminateJob"), _evict, []),
        (policy("PodRunning", "TerminateJob"), _crash_loop, []),
    ],
)
def test_what_happens_leads_where_the_policy_says(
    where: Any, rule: Any, happens: Any, phases: list[str]
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(where(rule))
        rig.phases.clear()
        happens(rig)
        await rig.drain()
        if phases[:1] == ["Restarting"]:
            rig.run()
            await rig.settle()

    rig = play(scenario)
    actions = rig.events.messages("ExecuteAction")
    if phases:
        assert rig.phases == phases
        assert actions == [f"Start to execute action {rule['action']} "]
    else:
        assert not {*rig.phases} - {"Pending", "Running"}
        assert not actions


@pytest.mark.parametrize(
    ("action", "phases"),
    [
        ("RestartJob", ["Restarting", "Pending", "Running"]),
        ("AbortJob", ["Aborting", "Aborted"]),
        ("TerminateJob", ["Terminating", "Terminated"]),
    ],
)
def test_a_gang_that_has_become_unschedulable_is_answered_once(
    action: str, phases: list[str]
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_gang(policy("Unknown", action)))
        rig.phases.clear()
        _unknown(rig)
        await rig.drain()
        if action == "RestartJob":
            rig.run()
            await rig.settle()

    rig = play(scenario)
    assert rig.phases == phases
    assert len(rig.events.messages("ExecuteAction")) == 1


def test_a_pod_of_no_partition_restarts_none() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_gang(policy(["PodFailed", "PodEvicted"], "RestartPartition")))
        before = [rig.pod(pod)["metadata"]["uid"] for pod in rig.pods()]
        rig.fail("job-main-0")
        await rig.drain()
        assert [rig.pod(pod)["metadata"]["uid"] for pod in rig.pods()] == before

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running"]
    assert "retryCount" not in rig.status()


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod", "RestartPartition"])
def test_what_happens_to_the_group_restarts_no_single_pods(action: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_gang(policy("Unknown", action)))
        _unknown(rig)
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running"]


def test_the_policy_of_the_task_goes_before_that_of_the_job() -> None:
    async def scenario(rig: Rig) -> None:
        spec = {
            "minAvailable": 2,
            "policies": [policy("PodFailed", "AbortJob")],
            "tasks": [task(policies=[policy("PodFailed", "RestartJob")])],
        }
        await rig.started(spec)
        rig.fail("job-main-0")
        await rig.settle()

    rig = play(scenario)
    assert rig.phases[:3] == ["Pending", "Running", "Restarting"]


def test_a_failed_pod_is_restarted_alone_while_an_eviction_would_be_given_time() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(
            _gang(
                policy("PodFailed", "RestartPod"),
                policy("PodEvicted", "TerminateJob", timeout="5m"),
            )
        )
        before = rig.pod("job-main-1")["metadata"]["uid"]
        rig.fail("job-main-0")
        await rig.drain()
        assert rig.pod("job-main-1")["metadata"]["uid"] == before
        rig.run("job-main-0")
        await rig.settle()
        await rig.later(600)

    rig = play(scenario)
    assert [p for p in rig.phases if p != "Pending"] == ["Running", "Restarting", "Running"]
    assert rig.status()["retryCount"] == 1


def test_what_failed_is_kept_when_the_retries_are_used_up() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_gang(policy("PodFailed", "RestartJob"), maxRetry=1))
        rig.fail("job-main-0")
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Restarting", "Failed"]
    assert rig.pods() == ["job-main-0"]
    assert rig.status()["failed"] == 1


def test_a_job_is_restarted_as_often_as_it_may_be() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_gang(policy("PodFailed", "RestartJob"), maxRetry=3))
        for _ in range(3):
            rig.fail("job-main-0")
            await rig.drain()
            if rig.phase() == "Pending":
                rig.run()
                await rig.settle()

    rig = play(scenario)
    restarted = ["Restarting", "Pending", "Running"] * 2
    assert rig.phases == ["Pending", "Running", *restarted, "Restarting", "Failed"]
    assert rig.status()["retryCount"] == 3


def test_what_succeeded_is_kept_when_the_job_is_complete() -> None:
    async def scenario(rig: Rig) -> None:
        spec = {
            "minAvailable": 1,
            "policies": [policy("TaskCompleted", "CompleteJob")],
            "tasks": [task("a", 1), task("b", 1)],
        }
        await rig.started(spec)
        rig.succeed("job-a-0")
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Completing", "Completed"]
    assert rig.pods() == ["job-a-0"]
    assert "pending" not in rig.status()
    assert "running" not in rig.status()
    assert "terminating" not in rig.status()


def test_enough_successes_complete_a_job() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({"minAvailable": 1, "minSuccess": 2, "tasks": [task(replicas=3)]})
        rig.succeed("job-main-0", "job-main-2")
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Completed"]
    assert rig.pods() == ["job-main-0", "job-main-2"]
    assert rig.status()["succeeded"] == 2


@pytest.mark.parametrize(
    ("command", "passing"),
    [("AbortJob", "Aborting"), ("TerminateJob", "Terminating"), ("CompleteJob", "Completing")],
)
def test_every_phase_on_the_way_is_seen_with_counts_that_agree(command: str, passing: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_gang())
        rig.command(command)
        await rig.drain()

    rig = play(scenario)
    on_the_way = [s for s in rig.statuses if s["state"]["phase"] == passing]
    assert on_the_way
    assert on_the_way[0]["terminating"] == 2
    assert "running" not in on_the_way[0]
    final = rig.status()
    assert not {"pending", "running", "terminating"} & set(final)
    assert [c["status"] for c in final["conditions"]] == rig.phases
    assert not rig.api.all(POD_GROUPS)


def test_a_restart_shows_what_it_takes_away() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_gang(policy("PodFailed", "RestartJob")))
        rig.fail("job-main-0")
        await rig.settle()

    rig = play(scenario)
    restarting = next(s for s in rig.statuses if s["state"]["phase"] == "Restarting")
    assert restarting["terminating"] == 2
    assert restarting["state"]["reason"] == "RestartJob"
    assert restarting["state"]["message"] == "PodFailed of pod job-main-0"
