"""Every cell of the state machine's table (volcano.md section 5.1), on a job with pods.

The job has four pods, of which the first has succeeded and the second has failed; it needs all
four. What is done to single pods is done by a policy on exit code 7, the rest by Commands.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from app.wire.kinds import POD_GROUPS
from app.wire.unstructured import uid
from tests.controllers.job.rig import Rig, play, policy, task

_PODS = [f"job-main-{index}" for index in range(4)]
_ENDED, _ALIVE = _PODS[:2], _PODS[2:]
_TARGETED = ["RestartTask", "RestartPod", "RestartPartition"]
_COMMANDS = [
    "RestartJob",
    "AbortJob",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
    "SyncJob",
]


@dataclass(frozen=True)
class _Then:
    """What the phases are until nothing moves, which pods are kept, and what is counted."""

    phases: list[str]
    kept: list[str]
    retries: int = 0
    version: int = 0
    group: str = "gone"
    """Or the "same", or a "new" one."""


async def _pending(rig: Rig, action: str) -> None:
    rig.start()
    partitions = {"totalPartitions": 2, "partitionSize": 2}
    rig.submit(
        {
            "minAvailable": 4,
            "tasks": [task(replicas=4, partitionPolicy=partitions)],
            "policies": [
                {"exitCode": 7, "action": action if action in _TARGETED else "SyncJob"},
                policy("PodEvicted", "RestartPod"),
            ],
        }
    )
    await rig.settle()
    rig.succeed("job-main-0")
    rig.fail("job-main-1")
    rig.run("job-main-2")
    await rig.settle()


async def _running(rig: Rig, action: str) -> None:
    await _pending(rig, action)
    rig.run("job-main-3")
    await rig.settle()


async def _restarting(rig: Rig, action: str) -> None:
    """By a restart of the job; for what is done to single pods by one of a single pod."""
    await _running(rig, action)
    if action in _TARGETED:
        rig.evict("job-main-2")
    else:
        rig.command("RestartJob", name="before")
    await rig.settle()


async def _failed(rig: Rig, action: str) -> None:
    await _running(rig, action)
    rig.fail(*_ALIVE)
    await rig.settle()


def _by(command: str, *, drained: bool) -> Any:
    async def bring(rig: Rig, action: str) -> None:
        await _running(rig, action)
        rig.command(command, name="before")
        await (rig.drain() if drained else rig.settle())

    return bring


_BRING: dict[str, Any] = {
    "Pending": _pending,
    "Running": _running,
    "Restarting": _restarting,
    "Aborting": _by("AbortJob", drained=False),
    "Aborted": _by("AbortJob", drained=True),
    "Terminating": _by("TerminateJob", drained=False),
    "Terminated": _by("TerminateJob", drained=True),
    "Completing": _by("CompleteJob", drained=False),
    "Completed": _by("CompleteJob", drained=True),
    "Failed": _failed,
}

_AGAIN = ["Restarting", "Pending"]
_ALIVE_ROW = {
    "RestartJob": _Then(_AGAIN, [], retries=1, version=1, group="new"),
    "RestartTask": _Then(_AGAIN, [], retries=1, group="same"),
    "RestartPod": _Then(_AGAIN, [*_ENDED, "job-main-3"], retries=1, group="same"),
    "RestartPartition": _Then(_AGAIN, _ENDED, retries=1, group="same"),
    "AbortJob": _Then(["Aborting", "Aborted"], _ENDED, version=1),
    "TerminateJob": _Then(["Terminating", "Terminated"], _ENDED, version=1),
    "CompleteJob": _Then(["Completing", "Completed"], _ENDED, version=1),
    "ResumeJob": _Then([], _PODS, group="same"),
    "SyncJob": _Then([], _PODS, group="same"),
}
_KILLED_AGAIN = _Then(["Pending"], [], retries=1, version=2, group="new")
_RESUMED = _Then(_AGAIN, _ENDED, retries=1, version=2, group="new")


def _row(then: _Then, resumed: _Then | None = None) -> dict[str, _Then]:
    row = dict.fromkeys([*_TARGETED, *_COMMANDS], then)
    return {**row, "ResumeJob": resumed or then}


_TABLE: dict[str, dict[str, _Then]] = {
    "Pending": _ALIVE_ROW,
    "Running": _ALIVE_ROW,
    "Restarting": {
        "RestartJob": _KILLED_AGAIN,
        "AbortJob": _Then(["Aborting", "Aborted"], [], retries=1, version=2),
        "TerminateJob": _Then(["Terminating", "Terminated"], [], retries=1, version=2),
        "CompleteJob": _Then(["Completing", "Completed"], [], retries=1, version=2),
        "ResumeJob": _Then(["Pending"], [], retries=1, version=1, group="new"),
        "RestartTask": _Then(["Pending"], [], retries=1, group="same"),
        "RestartPod": _Then(["Pending"], _ENDED, retries=1, group="same"),
        "RestartPartition": _Then(["Pending"], _ENDED, retries=1, group="same"),
        "SyncJob": _Then(["Pending"], [], retries=1, version=1, group="new"),
    },
    "Aborting": _row(_Then(["Aborted"], _ENDED, version=1), _RESUMED),
    "Aborted": _row(_Then([], _ENDED, version=1), _RESUMED),
    "Terminating": _row(_Then(["Terminated"], _ENDED, version=1)),
    "Terminated": _row(_Then([], _ENDED, version=1)),
    "Completing": _row(_Then(["Completed"], _ENDED, version=1)),
    "Completed": _row(_Then([], _ENDED, version=1)),
    "Failed": _row(_Then([], _PODS)),
}


@pytest.mark.parametrize(
    ("phase", "action", "then"),
    [
        pytest.param(phase, action, then, id=f"{phase}-{action}")
        for phase, row in _TABLE.items()
        for action, then in row.items()
    ],
)
def test_each_action_does_in_each_phase_what_the_table_says(
    phase: str, action: str, then: _Then
) -> None:
    before: dict[str, str] = {}
    kept: list[str] = []
    groups: list[str] = []

    async def scenario(rig: Rig) -> None:
        await _BRING[phase](rig, action)
        assert rig.phase() == phase
        before.update({pod: uid(rig.pod(pod)) for pod in rig.pods()})
        groups.extend(uid(group) for group in rig.api.all(POD_GROUPS))
        rig.phases.clear()
        _act(rig, action)
        await rig.settle()
        kept.extend(pod for pod in rig.pods() if _is_kept(rig, pod, before))
        await rig.drain()

    rig = play(scenario)
    assert rig.phases[rig.phases[:1] == [phase] :] == then.phases
    assert kept == then.kept
    status = rig.status()
    assert (status.get("retryCount", 0), status.get("version", 0)) == (then.retries, then.version)
    now = [uid(group) for group in rig.api.all(POD_GROUPS)]
    found = "gone" if not now else "same" if now == groups else "new"
    assert found == then.group


def test_the_table_is_complete() -> None:
    assert all(set(row) == {*_TARGETED, *_COMMANDS} for row in _TABLE.values())


def _act(rig: Rig, action: str) -> None:
    if action not in _TARGETED:
        rig.command(action)
        return
    pod = "job-main-3" if rig.phase() == "Restarting" else "job-main-2"
    if pod in rig.pods():
        rig.fail(pod, code=7)


def _is_kept(rig: Rig, pod: str, before: dict[str, str]) -> bool:
    found = rig.pod(pod)
    return uid(found) == before.get(pod) and "deletionTimestamp" not in found["metadata"]


@pytest.mark.parametrize(
    ("most", "before", "kept"),
    [(3, 0, []), (3, 1, []), (3, 2, _ENDED), (1, 0, _ENDED)],
    ids=["first of 3", "second of 3", "last of 3", "only one"],
)
def test_the_last_restart_leaves_what_has_ended(most: int, before: int, kept: list[str]) -> None:
    """Whatever the action says; pods that have ended are counted there."""

    async def scenario(rig: Rig) -> None:
        rig.start()
        rule = policy("PodFailed", "RestartJob", timeout="1s")
        rig.submit(
            {
                "minAvailable": 4,
                "maxRetry": most,
                "tasks": [task(replicas=4)],
                "policies": [rule],
            }
        )
        for _ in range(before):
            await rig.settle()
            rig.fail("job-main-1")
            await rig.later(1)
            await rig.drain()
        await rig.settle()
        rig.succeed("job-main-0")
        rig.fail("job-main-1")
        rig.run(*_ALIVE)
        await rig.settle()
        uids = {pod: uid(rig.pod(pod)) for pod in rig.pods()}
        await rig.later(1)
        assert [pod for pod in rig.pods() if _is_kept(rig, pod, uids)] == kept
        await rig.drain()

    rig = play(scenario)
    assert rig.phase() == ("Failed" if kept else "Pending")
    assert rig.status()["retryCount"] == before + 1
    if kept:
        assert (rig.status()["succeeded"], rig.status()["failed"]) == (1, 1)
        assert rig.pods() == _ENDED


def test_a_completed_job_takes_away_what_still_runs() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({"minAvailable": 1, "minSuccess": 1, "tasks": [task(replicas=3)]})
        rig.succeed("job-main-0")
        rig.fail("job-main-1")
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Completed"]
    assert rig.pods() == ["job-main-0", "job-main-1"]


@pytest.mark.parametrize("action", _COMMANDS)
def test_every_action_but_a_sync_is_told(action: str) -> None:
    async def scenario(rig: Rig) -> None:
        await _running(rig, action)
        rig.command(action)
        await rig.drain()

    told = play(scenario).events.messages("ExecuteAction")
    quiet = {"SyncJob", "ResumeJob"}
    assert told == ([] if action in quiet else [f"Start to execute action {action} "])
