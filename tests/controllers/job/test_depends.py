"""Tasks that wait for others."""

from typing import Any

import pytest

from app.controllers.job import sync
from app.controllers.job.members import by_task
from tests.controllers.job.jobs import make_job, make_pod, of
from tests.controllers.job.rig import task

_READY: dict[str, Any] = {"containerStatuses": [{"ready": True}, {"ready": True}]}
_HALF: dict[str, Any] = {"containerStatuses": [{"ready": True}, {"ready": False}]}


def _is_ready(depends_on: Any, *pods: Any, least: int | None = 2) -> bool:
    minimum: dict[str, Any] = {} if least is None else {"minAvailable": least}
    job = make_job(
        {
            "tasks": [
                task("a", 2, **minimum),
                task("b", 2, minAvailable=1),
                task("c", 1, dependsOn=depends_on),
            ]
        }
    )
    return sync.is_ready(job, job.tasks[2], by_task(of(*pods)))


@pytest.mark.parametrize(
    ("first", "second", "ready"),
    [
        (("Running", _READY), ("Running", _READY), True),
        (("Running", _READY), ("Succeeded", {}), True),
        (("Running", _READY), ("Running", _HALF), False),
        (("Running", _READY), ("Pending", {}), False),
        (("Running", _READY), ("Failed", {}), False),
    ],
)
def test_a_task_is_up_when_its_minimum_is_ready_or_done(
    first: Any, second: Any, ready: bool
) -> None:
    pods = [
        make_pod(f"job-a-{index}", phase, **fields)
        for index, (phase, fields) in enumerate([first, second])
    ]
    assert _is_ready({"name": ["a"]}, *pods) is ready


def test_pods_that_are_going_do_not_count() -> None:
    pods = [
        make_pod("job-a-0", "Running", **_READY),
        make_pod("job-a-1", "Running", metadata={"deletionTimestamp": "now"}, **_READY),
    ]
    assert not _is_ready({"name": ["a"]}, *pods)


@pytest.mark.parametrize(("up", "ready"), [(0, False), (1, False), (2, True)])
def test_of_a_task_that_says_no_minimum_all_replicas_must_be_up(up: int, *, ready: bool) -> None:
    """Nothing has filled it in, as while the webhooks are away."""
    pods = [make_pod(f"job-a-{index}", "Running", **_READY) for index in range(up)]
    assert _is_ready({"name": ["a"]}, *pods, least=None) is ready


def test_a_task_that_needs_no_pod_holds_nobody_up() -> None:
    assert _is_ready({"name": ["a"]}, least=0)


def test_a_task_that_is_not_there_holds_nobody_up() -> None:
    assert _is_ready({"name": ["x"]})


@pytest.mark.parametrize(("iteration", "ready"), [("any", True), ("all", False), ("", False)])
def test_of_several_tasks_all_must_be_up_or_any(iteration: str, ready: bool) -> None:
    up = make_pod("job-b-0", "Running", **_READY)
    assert _is_ready({"name": ["a", "b"], "iteration": iteration}, up) is ready


def test_any_of_one_is_all() -> None:
    assert not _is_ready({"name": ["a"], "iteration": "any"})


def test_pods_of_other_tasks_do_not_count() -> None:
    pods = [make_pod(f"job-b-{index}", "Running", **_READY) for index in range(2)]
    assert not _is_ready({"name": ["a"]}, *pods)


@pytest.mark.parametrize("nothing", [None, {}, {"name": []}, {"iteration": "any"}])
def test_a_task_that_depends_on_nothing_waits_for_nobody(nothing: Any) -> None:
    assert _is_ready(nothing)
