"""Policies with a timeout."""

from typing import Any

import pytest

from tests.controllers.job.rig import Rig, play, policy, task


def _spec(*policies: Any) -> dict[str, Any]:
    return {"minAvailable": 2, "tasks": [task()], "policies": list(policies)}


async def _passes(rig: Rig, seconds: float, *, crash: bool) -> None:
    """Time goes by, in the middle of which the controller may be replaced."""
    await rig.later(seconds / 2)
    if crash:
        await rig.kill()
        rig.start()
    await rig.later(seconds / 2)


@pytest.mark.parametrize("crash", [False, True], ids=["", "over a crash"])
def test_pods_that_are_pending_for_too_long_are_answered(crash: bool) -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_spec(policy("PodPending", "AbortJob", timeout="5m")))
        await rig.settle()
        await _passes(rig, 299, crash=crash)
        assert rig.phase() == "Pending"
        await rig.later(2)
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Aborting", "Aborted"]
    told = rig.events.messages("ExecuteAction")
    assert told[:2] == ["Execute action AbortJob after 5m"] * 2
    assert told[-1] == "Start to execute action AbortJob "


def test_pods_that_run_in_time_are_left_alone() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodPending", "AbortJob", timeout="5m")))
        await rig.later(600)

    assert play(scenario).phases == ["Pending", "Running"]


def test_pods_that_are_pending_need_a_policy_with_a_timeout() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodPending", "AbortJob")))

    assert play(scenario).phases == ["Pending", "Running"]


@pytest.mark.parametrize("crash", [False, True], ids=["", "over a crash"])
def test_a_failed_pod_is_answered_after_its_timeout(crash: bool) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodFailed", "TerminateJob", timeout="1m")))
        rig.fail("job-main-0")
        await rig.settle()
        await _passes(rig, 58, crash=crash)
        assert rig.phase() == "Running"
        await rig.later(3)
        await rig.drain()

    assert play(scenario).phases == ["Pending", "Running", "Terminating", "Terminated"]


@pytest.mark.parametrize("crash", [False, True], ids=["", "over a crash"])
@pytest.mark.parametrize("how", ["evict", "vanish"])
def test_an_evicted_pod_has_its_time_to_run_again(how: str, crash: bool) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodEvicted", "TerminateJob", timeout="5m")))
        getattr(rig, how)("job-main-0")
        await rig.drain()
        await _passes(rig, 298, crash=crash)
        assert rig.phase() == "Pending"
        await rig.later(4)
        await rig.drain()

    assert play(scenario).phases[-2:] == ["Terminating", "Terminated"]


@pytest.mark.parametrize("how", ["evict", "vanish"])
def test_an_evicted_pod_that_runs_again_is_forgiven(how: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodEvicted", "TerminateJob", timeout="5m")))
        getattr(rig, how)("job-main-0")
        await rig.drain()
        await rig.later(200)
        rig.run("job-main-0")
        await rig.settle()
        await rig.later(600)

    assert play(scenario).phases == ["Pending", "Running", "Pending", "Running"]


def test_a_delay_ends_with_what_another_action_takes_away() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(
            _spec(
                policy("PodEvicted", "TerminateJob", timeout="5m"),
                policy("PodFailed", "RestartJob"),
            )
        )
        rig.vanish("job-main-0")
        await rig.settle()
        rig.fail("job-main-1")
        await rig.drain()
        rig.run()
        await rig.settle()
        await rig.later(600)

    assert play(scenario).phases[-3:] == ["Restarting", "Pending", "Running"]


@pytest.mark.parametrize("crash", [False, True], ids=["", "over a crash"])
def test_an_unschedulable_gang_is_answered_after_its_timeout(crash: bool) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("Unknown", "AbortJob", timeout="1m")))
        condition = {"status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z"}
        rig.change_group({"status": {"phase": "Unknown", "conditions": [condition]}})
        await rig.settle()
        await _passes(rig, 58, crash=crash)
        assert rig.phase() == "Running"
        await rig.later(3)
        await rig.drain()

    assert play(scenario).phase() == "Aborted"


def test_what_tells_no_time_counts_from_when_it_is_first_seen() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("TaskFailed", "AbortJob", timeout="1m")))
        rig.run("job-main-0", restarts=3)
        await rig.settle()
        await rig.later(59)
        assert rig.phase() == "Running"
        await rig.later(2)
        await rig.drain()

    assert play(scenario).phase() == "Aborted"
