"""Policies with a timeout."""

from typing import Any

import pytest

from app.wire import times
from app.wire.kinds import POD_GROUPS
from app.wire.unstructured import key_of
from tests.controllers.job.rig import Rig, play, policy, task
from tests.service import virtual_time


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
    assert told[:2] == ["Execute action AbortJob after 5m0s"] * 2
    assert told[-1] == "Start to execute action AbortJob "


def test_a_delay_that_is_over_when_it_is_first_seen_is_told_as_well() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_spec(policy("PodPending", "AbortJob", timeout="5m")))
        await rig.settle()
        await rig.kill()
        rig.events.told.clear()
        await rig.later(301)
        rig.start()
        await rig.drain()

    rig = play(scenario)
    told = rig.events.messages("ExecuteAction")
    assert told == ["Execute action AbortJob after 5m0s", "Start to execute action AbortJob "]


@pytest.mark.parametrize(
    ("how", "then"), [("run", []), ("succeed", ["Completed"]), ("fail", ["Failed"])]
)
def test_pods_that_are_no_longer_pending_in_time_are_left_alone(how: str, then: list[str]) -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_spec(policy("PodPending", "AbortJob", timeout="5m")))
        await rig.settle()
        await rig.later(290)
        getattr(rig, how)()
        await rig.settle()
        await rig.later(600)

    assert play(scenario).phases == ["Pending", "Running", *then]


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


@pytest.mark.parametrize("ahead", [30, 3600])
def test_a_clock_that_is_ahead_of_ours_makes_no_timeout_longer(ahead: float) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodFailed", "TerminateJob", timeout="1m")))
        ended = {"exitCode": 1, "finishedAt": times.seconds(virtual_time.clock() + ahead)}
        statuses = [{"name": "main", "state": {"terminated": ended}}]
        rig.change("job-main-0", {"status": {"phase": "Failed", "containerStatuses": statuses}})
        await rig.settle()
        await rig.later(58)
        assert rig.phase() == "Running"
        await rig.later(3)
        await rig.drain()

    rig = play(scenario)
    assert rig.phases[-2:] == ["Terminating", "Terminated"]
    told = rig.events.messages("ExecuteAction")
    assert told.count("Execute action TerminateJob after 1m0s") == 1


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

    rig = play(scenario)
    assert rig.phases[-2:] == ["Terminating", "Terminated"]
    told = rig.events.messages("ExecuteAction")
    assert told.count("Execute action TerminateJob after 5m0s") == (2 if crash else 1)


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


def test_a_failed_pod_in_whose_place_none_runs_in_time_is_answered() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodFailed", "TerminateJob", timeout="5m")))
        rig.fail("job-main-0")
        await rig.settle()
        await rig.later(200)
        rig.vanish("job-main-0")
        await rig.settle()
        assert len(rig.pods()) == 2
        await rig.later(98)
        assert rig.phase() == "Pending"
        await rig.later(4)
        await rig.drain()

    rig = play(scenario)
    assert rig.phases[-2:] == ["Terminating", "Terminated"]
    told = rig.events.messages("ExecuteAction")
    assert told == [
        "Execute action TerminateJob after 5m0s",
        "Start to execute action TerminateJob ",
    ]


def test_a_failed_pod_that_is_no_longer_wanted_is_forgiven() -> None:
    rules = [policy("PodFailed", "TerminateJob", timeout="5m")]

    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(*rules))
        rig.fail("job-main-1")
        await rig.settle()
        rig.edit_job({"spec": {"minAvailable": 1, "tasks": [task(replicas=1)]}})
        await rig.drain()
        await rig.later(600)

    assert play(scenario).phases == ["Pending", "Running"]


def test_a_failed_pod_in_whose_place_another_one_runs_is_forgiven() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("PodFailed", "TerminateJob", timeout="5m")))
        rig.fail("job-main-0")
        await rig.settle()
        await rig.later(200)
        rig.vanish("job-main-0")
        await rig.settle()
        rig.run("job-main-0")
        await rig.settle()
        await rig.later(600)

    assert play(scenario).phases[-1] == "Running"


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


def test_any_event_of_pods_may_be_answered_later() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_spec(policy("*", "AbortJob", timeout="1m")))
        await rig.settle()
        await rig.later(58)
        assert rig.phase() == "Pending"
        await rig.later(3)
        await rig.drain()

    assert play(scenario).phases == ["Pending", "Aborting", "Aborted"]


def test_a_pod_that_is_replaced_while_it_is_pending_has_its_whole_time_again() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_spec(policy("PodPending", "AbortJob", timeout="1m")))
        await rig.settle()
        rig.run("job-main-1")
        await rig.later(40)
        rig.vanish("job-main-0")
        await rig.settle()
        await rig.later(40)
        assert rig.phase() == "Pending"
        await rig.later(22)
        await rig.drain()

    assert play(scenario).phases == ["Pending", "Aborting", "Aborted"]


def test_each_pod_has_one_delay_and_is_told_of_once() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(
            _spec(
                policy("PodFailed", "AbortJob", timeout="1m"),
                policy("PodFailed", "RestartJob", timeout="1s"),
            )
        )
        rig.fail()
        rig.change("job-main-0", {"metadata": {"labels": {"seen": "again"}}})
        await rig.settle()
        await rig.later(30)
        rig.change("job-main-1", {"metadata": {"labels": {"seen": "again"}}})
        await rig.settle()

    rig = play(scenario)
    assert rig.events.messages("ExecuteAction") == ["Execute action AbortJob after 1m0s"] * 2


_PARTITIONED: dict[str, Any] = {
    "replicas": 4,
    "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2},
}

_ONE: dict[str, Any] = {
    "replicas": 1,
    "partitionPolicy": {"totalPartitions": 1, "partitionSize": 1},
}


@pytest.mark.parametrize(
    ("delayed", "at_once", "other", "goes_on"),
    [
        ("TerminateJob", "RestartTask", "job-a-1", True),
        ("TerminateJob", "RestartPod", "job-a-1", True),
        ("TerminateJob", "RestartPartition", "job-a-1", True),
        ("TerminateJob", "RestartJob", "job-a-1", False),
        ("RestartTask", "RestartTask", "job-a-1", False),
        ("RestartTask", "RestartTask", "job-b-0", True),
        ("RestartTask", "RestartJob", "job-b-0", False),
        ("RestartPod", "RestartPod", "job-a-1", True),
        ("RestartPod", "RestartTask", "job-a-1", True),
        ("RestartPartition", "RestartPartition", "job-a-1", False),
        ("RestartPartition", "RestartPartition", "job-a-2", True),
        ("RestartPartition", "RestartPartition", "job-b-0", True),
    ],
)
@pytest.mark.parametrize("how", ["evict", "vanish"])
def test_an_action_ends_the_delays_of_its_own_scope(
    delayed: str, at_once: str, other: str, *, how: str, goes_on: bool
) -> None:
    """A pod is evicted and does not come to run again; meanwhile another one fails."""

    async def scenario(rig: Rig) -> None:
        await rig.started(
            {
                "minAvailable": 1,
                "maxRetry": 10,
                "tasks": [
                    task("a", minAvailable=1, **_PARTITIONED),
                    task("b", minAvailable=1, **_ONE),
                ],
                "policies": [
                    policy("PodEvicted", delayed, timeout="5m"),
                    policy("PodFailed", at_once),
                ],
            }
        )
        getattr(rig, how)("job-a-0")
        await rig.settle()
        rig.fail(other)
        await rig.drain()
        rig.run(*(pod for pod in rig.pods() if pod != "job-a-0"))
        await rig.drain()
        await rig.later(310)
        await rig.drain()

    done = play(scenario).events.messages("ExecuteAction")
    begun = [text.split()[-1] for text in done if text.startswith("Start")]
    assert begun == ([at_once, delayed] if goes_on else [at_once])


def test_a_changed_size_is_answered_after_its_timeout_and_once() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("JobUpdated", "RestartJob", timeout="1m")))
        rig.phases.clear()
        rig.edit_job({"spec": {"minAvailable": 1}})
        await rig.settle()
        await rig.later(40)
        rig.edit_job({"spec": {"minAvailable": 0}})
        await rig.settle()
        await rig.later(18)
        assert rig.phase() == "Running"
        await rig.later(3)
        await rig.drain()
        await rig.later(120)

    rig = play(scenario)
    assert [phase for phase in rig.phases if phase != "Running"] == ["Restarting", "Pending"]
    assert rig.events.messages("ExecuteAction").count("Execute action RestartJob after 1m0s") == 1


@pytest.mark.parametrize("is_deleted", [False, True], ids=["", "and a deleted PodGroup"])
def test_a_changed_size_is_answered_over_a_crash(is_deleted: bool) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(policy("JobUpdated", "AbortJob", timeout="1m")))
        rig.edit_job({"spec": {"minAvailable": 1}})
        await rig.settle()
        assert rig.group()["spec"]["minMember"] == 1
        if is_deleted:
            rig.api.remove(POD_GROUPS, key_of(rig.group()))
            await rig.settle()
        await rig.later(40)
        await rig.kill()
        rig.start()
        await rig.later(58)
        assert rig.phase() == "Running"
        await rig.later(3)
        await rig.drain()

    assert play(scenario).phase() == "Aborted"
