"""What went wrong is told before a restart takes the pods that show it."""

from typing import Any

import pytest

from app.controllers.job import failures
from app.wire.unstructured import Object
from tests.controllers.job.jobs import make_pod, of
from tests.controllers.job.rig import Rig, play, policy, task


def _ended(code: int = 1, *, at: str = "2026-01-01T00:00:00Z", **more: Any) -> Object:
    return {"terminated": {"exitCode": code, "finishedAt": at, **more}}


def _failed(name: str, state: Object, phase: str = "Failed", **status: Any) -> Object:
    return make_pod(name, phase, containerStatuses=[{"name": "c", **state}], **status)


def _told(*pods: Object) -> list[str]:
    return failures.last_of_tasks(of(*pods))


def test_exit_code_reason_and_last_words_are_told() -> None:
    message = "Traceback\n" + "\n".join(f"line {n}" for n in range(8)) + "\nValueError: no\n"
    ended = _ended(137, reason="OOMKilled", message=message)
    assert _told(_failed("job-w-0", {"state": ended})) == [
        "task w, pod job-w-0: container c ended with exit code 137 (OOMKilled), its last words:"
        " line 4 | line 5 | line 6 | line 7 | ValueError: no"
    ]


def test_of_every_task_it_is_the_last_failure() -> None:
    told = _told(
        _failed("job-a-0", {"state": _ended(1, at="2026-01-01T00:00:05Z")}),
        _failed("job-a-1", {"state": _ended(2, at="2026-01-01T00:00:09Z")}),
        _failed("job-a-2", {"state": _ended(3, at="2026-01-01T00:00:01Z")}),
        _failed("job-b-0", {"state": _ended(4)}),
        make_pod("job-c-0", "Running"),
        _failed("job-d-0", {"state": _ended(0)}, phase="Succeeded"),
    )
    assert told == [
        "task a, pod job-a-1: container c ended with exit code 2",
        "task b, pod job-b-0: container c ended with exit code 4",
    ]


def test_a_container_that_was_started_again_tells_of_the_last_time() -> None:
    status = {"state": {"waiting": {}}, "lastState": _ended(3, message="no route")}
    assert _told(_failed("job-w-0", status, phase="Running")) == [
        "task w, pod job-w-0: container c ended with exit code 3, its last words: no route"
    ]


def test_a_pod_that_its_kubelet_put_out_tells_why() -> None:
    evicted = make_pod(
        "job-w-0", "Failed", reason="Evicted", message="The node was low on resource: memory."
    )
    assert _told(evicted) == [
        "task w, pod job-w-0: it failed; Evicted: The node was low on resource: memory."
    ]


def test_an_event_has_room_for_it() -> None:
    (told,) = _told(_failed("job-w-0", {"state": _ended(1, message="x" * 4096)}))
    assert len(told) < 1000


@pytest.mark.parametrize(
    ("action", "tasks"),
    [
        ("RestartPod", ["a"]),
        ("RestartTask", ["a"]),
        ("RestartJob", ["a", "b"]),
        ("AbortJob", []),
    ],
)
def test_a_restart_tells_of_the_failures_that_it_takes(action: str, tasks: list[str]) -> None:
    async def scenario(rig: Rig) -> None:
        both = [task("a", 2, policies=[policy("PodFailed", action)]), task("b", 2)]
        await rig.started({"minAvailable": 4, "tasks": both})
        rig.fail("job-b-0", code=7)
        await rig.settle()
        rig.fail("job-a-1", code=3)
        await rig.drain()

    told = play(scenario).events.messages("LastFailure")
    assert [text.partition(",")[0].removeprefix("task ") for text in told] == tasks
    assert all("exit code 3" in text for text in told if text.startswith("task a"))
