"""What Commands and policies ask for is done, or an event says why it is not."""

from typing import Any

import pytest

from tests.controllers.job.rig import Rig, play, policy, task

_SPEC = {"minAvailable": 2, "tasks": [task(replicas=2)]}
_TARGETED = ["RestartTask", "RestartPod", "RestartPartition"]


@pytest.mark.parametrize(
    ("action", "phase"),
    [
        ("AbortJob", "Aborted"),
        ("TerminateJob", "Terminated"),
        ("CompleteJob", "Completed"),
    ],
)
def test_a_job_that_crashes_again_and_again_is_stopped_while_it_restarts(
    action: str, phase: str
) -> None:
    """As by `kubectl pumice job suspend` while the pods of the last round still go."""

    async def scenario(rig: Rig) -> None:
        rule = policy("PodFailed", "RestartJob")
        await rig.started({**_SPEC, "maxRetry": 100, "policies": [rule]})
        rig.fail("job-main-0")
        await rig.settle()
        assert rig.phase() == "Restarting"
        rig.command(action)
        await rig.drain()

    rig = play(scenario)
    assert rig.phase() == phase
    assert rig.pods() == [], "the failed pod was to go with the restart"


def test_a_policy_stops_a_job_while_a_pod_of_it_restarts() -> None:
    async def scenario(rig: Rig) -> None:
        rules = [policy("PodEvicted", "RestartPod"), policy("PodFailed", "AbortJob")]
        await rig.started({**_SPEC, "policies": rules})
        rig.evict("job-main-0")
        await rig.settle()
        assert rig.phase() == "Restarting"
        rig.fail("job-main-1")
        await rig.drain()

    rig = play(scenario)
    assert rig.phases[-2:] == ["Aborting", "Aborted"]
    assert rig.pods() == ["job-main-1"]


def test_a_job_that_was_stopped_while_it_restarted_is_resumed_whole() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "policies": [policy("PodFailed", "RestartJob")]})
        rig.fail("job-main-0")
        await rig.settle()
        rig.command("AbortJob", name="suspend")
        await rig.drain()
        rig.command("ResumeJob", name="resume")
        await rig.drain()
        rig.run()
        await rig.settle()

    rig = play(scenario)
    assert (rig.phase(), rig.status()["running"]) == ("Running", 2)


async def _brought_to(rig: Rig, phase: str) -> None:
    await rig.started(_SPEC)
    if phase == "Completed":
        rig.succeed("job-main-0", "job-main-1")
    if phase == "Failed":
        rig.fail("job-main-0", "job-main-1")
    by = {"Restarting": "RestartJob", "Terminating": "TerminateJob", "Completing": "CompleteJob"}
    command = {**by, "Aborting": "AbortJob", "Aborted": "AbortJob"}.get(phase)
    if command:
        rig.command(command, name="before")
    await rig.settle()
    if phase == "Aborted":
        await rig.drain()
    assert rig.phase() == phase


@pytest.mark.parametrize(
    ("phase", "action", "why"),
    [
        ("Running", "ResumeJob", "it is not suspended, so there is nothing to resume"),
        ("Restarting", "ResumeJob", "it is not suspended, so there is nothing to resume"),
        ("Aborting", "AbortJob", "it is being suspended already"),
        ("Aborting", "RestartJob", "it is being suspended, and only ResumeJob acts on it"),
        ("Aborted", "AbortJob", "it is suspended already"),
        ("Aborted", "TerminateJob", "it is suspended, and only ResumeJob acts on it"),
        ("Terminating", "AbortJob", "it is about to end, and no action changes that"),
        ("Completing", "ResumeJob", "it is about to end, and no action changes that"),
        ("Completed", "AbortJob", "it has ended"),
        ("Completed", "ResumeJob", "it has ended"),
        ("Failed", "AbortJob", "it has ended"),
        ("Failed", "RestartJob", "it has ended"),
    ],
)
def test_a_command_that_comes_to_nothing_is_refused(phase: str, action: str, why: str) -> None:
    async def scenario(rig: Rig) -> None:
        await _brought_to(rig, phase)
        rig.command(action)
        await rig.settle()

    assert play(scenario).events.messages("CommandIgnored") == [
        f"{action} of command command is not executed: the job is {phase}: {why}"
    ]


@pytest.mark.parametrize(
    ("action", "why"),
    [
        *[
            (action, "a Command names no task and no pod; RestartJob is possible")
            for action in _TARGETED
        ],
        ("OpenQueue", "jobs know no such action"),
    ],
)
def test_a_command_that_jobs_cannot_execute_is_refused(action: str, why: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC)
        rig.command(action)
        await rig.settle()

    rig = play(scenario)
    assert rig.phase() == "Running"
    assert rig.events.messages("CommandIgnored") == [
        f"{action} of command command is not executed: {why}"
    ]


def test_a_command_is_refused_that_was_noted_before_the_job_ended() -> None:
    """The controller dies after the note; the job has ended when the next one starts."""

    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC)
        await rig.kill()
        rig.edit_job({"metadata": {"annotations": {"pumice.sh/command": "AbortJob/u-9"}}})
        rig.edit_job({"status": {"state": {"phase": "Completed"}}})
        rig.start()
        await rig.settle()

    assert play(scenario).events.messages("CommandIgnored") == [
        "AbortJob is not executed: the job is Completed: it has ended"
    ]


_NEEDS_TIMEOUT = "every pod is pending at first, so the policy needs a timeout"
_RULES: list[tuple[dict[str, Any], str]] = [
    (
        policy("PodFailed", "RestartPartition"),
        "RestartPartition on PodFailed of task main is not executed: the task has no partitions;"
        " RestartTask and RestartPod are possible",
    ),
    (
        policy("PodFailed", "ResumeJob"),
        "ResumeJob on PodFailed of task main is not executed: the job is not suspended, so there"
        " is nothing to resume",
    ),
    (
        policy("JobUpdated", "RestartTask"),
        "RestartTask on JobUpdated is not executed: it happens to no task, so no pods are meant;"
        " RestartJob is possible",
    ),
    (
        policy("PodPending", "AbortJob"),
        f"AbortJob on PodPending of task main is not executed: {_NEEDS_TIMEOUT}",
    ),
]


@pytest.mark.parametrize(("rule", "told"), _RULES)
def test_a_policy_that_comes_to_nothing_says_so_once(rule: dict[str, Any], told: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "minAvailable": 1, "policies": [rule]})
        rig.edit_job({"spec": {"minAvailable": 2}})
        rig.fail("job-main-0")
        await rig.settle()
        rig.fail("job-main-1")
        await rig.drain()

    assert play(scenario).events.messages("PolicyIgnored") == [told]
