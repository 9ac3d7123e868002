"""The state machine: every phase with every action, and where syncs and drains lead."""

from typing import Any

import pytest

from app.controllers.job import machine
from app.controllers.job.counts import Counts, TaskCounts
from app.controllers.job.machine import Drain, Keep, Kill, KillTarget, Refuse, Step, Sync
from app.controllers.job.vocabulary import Action, Phase
from tests.controllers.job.jobs import in_phase, make_job
from tests.controllers.job.rig import task

_ACTIONS = [
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "AbortJob",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
    "SyncJob",
]


def _kill(keep: str, to: str | None = None, *, retry: bool = False) -> Kill:
    return Kill(Keep(keep), Phase(to) if to else None, retry)


_ENDS: list[Step] = [
    _kill("soft", "Aborting"),
    _kill("soft", "Terminating"),
    _kill("soft", "Completing"),
    Refuse("is not suspended, so there is nothing to resume"),
    Sync(),
]
_ALIVE: list[Step] = [
    _kill("none", "Restarting", retry=True),
    *[KillTarget(Phase.RESTARTING, True)] * 3,
    *_ENDS,
]
_RESTARTING: list[Step] = [_kill("none"), *[KillTarget()] * 3, *_ENDS]


def _suspended(how: str, then: Phase | None) -> list[Step]:
    refused = Refuse(f"{how}, and only ResumeJob acts on it")
    resume = _kill("soft", "Restarting", retry=True)
    return [*[refused] * 4, Refuse(f"{how} already"), *[refused] * 2, resume, Drain(then)]


def _past(how: str, then: Phase | None = None) -> list[Step]:
    return [*[Refuse(how)] * 8, Drain(then)]


_ENDING = "is about to end, and no action changes that"
_TABLE: dict[str, list[Step]] = {
    "": _ALIVE,
    "Pending": _ALIVE,
    "Running": _ALIVE,
    "Restarting": _RESTARTING,
    "Aborting": _suspended("is being suspended", Phase.ABORTED),
    "Aborted": _suspended("is suspended", None),
    "Terminating": _past(_ENDING, Phase.TERMINATED),
    "Completing": _past(_ENDING, Phase.COMPLETED),
    "Completed": _past("has ended"),
    "Failed": _past("has ended"),
    "Terminated": _past("has ended"),
}
_ROWS = [
    pytest.param(phase, action, step, id=f"{phase or 'new'}-{action}")
    for phase, steps in _TABLE.items()
    for action, step in zip(_ACTIONS, steps, strict=True)
]


@pytest.mark.parametrize(("phase", "action", "step"), _ROWS)
def test_each_action_does_in_each_phase_what_the_table_says(
    phase: str, action: str, step: Step
) -> None:
    assert machine.step(make_job(_TWO, status=in_phase(phase)), Action(action)) == step


@pytest.mark.parametrize("action", _ACTIONS)
def test_a_restart_that_is_one_too_many_only_goes_on(action: str) -> None:
    job = make_job(_TWO, status=in_phase("Restarting", retryCount=3))
    step = machine.step(job, Action(action))
    assert isinstance(step, Sync if action == "SyncJob" else Refuse)


def test_the_table_is_complete() -> None:
    assert {phase.value for phase in Phase} == set(_TABLE)
    assert {action.value for action in Action} == set(_ACTIONS)


def _counts(*, tasks: dict[str, int] | None = None, **numbers: int) -> Counts:
    zeros = dict.fromkeys(
        ("pending", "running", "succeeded", "failed", "unknown", "terminating"), 0
    )
    by_task = {name: TaskCounts({"Succeeded": n}) for name, n in (tasks or {}).items()}
    return Counts(**{**zeros, **numbers}, tasks=by_task)


_TWO = {"minAvailable": 2, "tasks": [task(replicas=3, minAvailable=2)]}
_SPLIT = {
    "minAvailable": 3,
    "tasks": [task("a", 2, minAvailable=1), task("b", 2, minAvailable=2)],
}


@pytest.mark.parametrize(
    ("phase", "spec", "counts", "then"),
    [
        ("Pending", _TWO, {"pending": 3}, "Pending"),
        ("Pending", _TWO, {"running": 1, "pending": 2}, "Pending"),
        ("Pending", _TWO, {"running": 1, "failed": 1}, "Running"),
        ("Pending", _TWO, {"succeeded": 2}, "Running"),
        ("Running", {"tasks": [task(replicas=0)]}, {}, "Running"),
        ("Running", _TWO, {"running": 3}, "Running"),
        ("Running", _TWO, {"running": 2, "pending": 1}, "Running"),
        ("Running", _TWO, {"running": 1, "pending": 2}, "Pending"),
        ("Running", _TWO, {"succeeded": 2, "running": 1}, "Running"),
        ("Running", {**_TWO, "minSuccess": 1}, {"succeeded": 1, "running": 2}, "Completed"),
        ("Running", {**_TWO, "minSuccess": 2}, {"succeeded": 1, "failed": 2}, "Failed"),
        ("Running", _TWO, {"tasks": {"main": 2}, "succeeded": 2, "failed": 1}, "Completed"),
        ("Running", _TWO, {"tasks": {"main": 1}, "succeeded": 1, "failed": 2}, "Failed"),
        ("Running", _SPLIT, {"tasks": {"a": 2, "b": 1}, "succeeded": 3, "failed": 1}, "Failed"),
        ("Running", _SPLIT, {"tasks": {"a": 1, "b": 2}, "succeeded": 3, "failed": 1}, "Completed"),
        (
            "Running",
            {**_SPLIT, "minAvailable": 2},
            {"tasks": {"a": 2, "b": 0}, "succeeded": 2, "failed": 2},
            "Completed",
        ),
        (
            "Running",
            {"minAvailable": 2, "tasks": [task("a", 2), task("b", 2, minAvailable=0)]},
            {"tasks": {"a": 1, "b": 2}, "succeeded": 3, "failed": 1},
            "Failed",
        ),
        ("Aborting", _TWO, {"failed": 3}, "Aborting"),
        ("Completed", _TWO, {"running": 3}, "Completed"),
    ],
)
def test_a_sync_leads_where_the_pods_say(
    phase: str, spec: dict[str, Any], counts: dict[str, Any], then: str
) -> None:
    job = make_job(spec, status=in_phase(phase))
    assert machine.after_sync(job, Phase(phase), _counts(**counts)).value == then


@pytest.mark.parametrize(
    ("retries", "terminating", "then"),
    [
        (1, 2, "Restarting"),
        (1, 1, "Pending"),
        (1, 0, "Pending"),
        (3, 3, "Failed"),
        (4, 0, "Failed"),
    ],
)
def test_a_restart_ends_when_enough_pods_can_be_made_or_retries_are_used_up(
    retries: int, terminating: int, then: str
) -> None:
    status = in_phase("Restarting", retryCount=retries, minAvailable=2)
    job = make_job({**_TWO, "maxRetry": 3}, status=status)
    counts = _counts(terminating=terminating)
    assert machine.after_sync(job, Phase.RESTARTING, counts).value == then


@pytest.mark.parametrize(("others", "then"), [(0, "Failed"), (1, "Pending"), (3, "Pending")])
def test_only_failures_use_retries_up(others: int, then: str) -> None:
    status = in_phase("Restarting", retryCount=3, restartsWithoutFailure=others)
    job = make_job({**_TWO, "maxRetry": 3}, status=status)
    assert machine.after_sync(job, Phase.RESTARTING, _counts()).value == then


@pytest.mark.parametrize(
    ("phase", "then"),
    [("Aborting", "Aborted"), ("Terminating", "Terminated"), ("Completing", "Completed")],
)
@pytest.mark.parametrize("left", ["pending", "running", "terminating", ""])
def test_a_phase_that_drains_ends_when_nothing_is_left(phase: str, then: str, left: str) -> None:
    numbers: dict[str, Any] = {left: 1} if left else {}
    counts = _counts(succeeded=1, failed=1, **numbers)
    assert machine.after_drain(Phase(phase), counts).value == (phase if left else then)


@pytest.mark.parametrize("phase", ["Aborted", "Completed", "Failed", "Terminated"])
def test_a_phase_at_rest_stays(phase: str) -> None:
    assert machine.after_drain(Phase(phase), _counts()).value == phase
