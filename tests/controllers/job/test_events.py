"""Where events come from (the table of volcano.md section 5.1)."""

from typing import Any

import pytest

from app.controllers.job import events
from app.controllers.job.vocabulary import Event
from app.wire.unstructured import Object
from tests.controllers.job.jobs import in_phase, make_job, make_pod, of
from tests.controllers.job.rig import policy, task

_GOING = {"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30}
_OUT_OF_SYNC = {"volcano.sh/controller-out-of-sync": "true"}


def _ended(*codes: int | None) -> list[Object]:
    """Statuses of containers; None: it still runs."""
    return [{} if code is None else {"state": {"terminated": {"exitCode": code}}} for code in codes]


def _ended_at(second: int) -> dict[str, Any]:
    ended = {"exitCode": 137, "finishedAt": f"2026-01-01T00:00:{second}Z"}
    return {"containerStatuses": [{"state": {"terminated": ended}}]}


def _restarted(*counts: int) -> list[Object]:
    return [{"restartCount": count} for count in counts]


def _found(
    *pods: Object,
    group: Object | None = None,
    phase: str = "Running",
    evicted: dict[str, float] | None = None,
    replicas: int = 2,
    **of_task: Any,
) -> list[tuple[str, str]]:
    """Events and pods."""
    spec = {"tasks": [task(replicas=replicas, **of_task)], "policies": [policy("*", "AbortJob")]}
    job = make_job(spec, status=in_phase(phase, version=1), generation=2)
    found = events.happenings(job, of(*pods), group, evicted=evicted or {})
    return [(one.event.value, one.pod) for one in found]


def _pod(phase: str, *, index: int = 0, version: int = 1, **fields: Any) -> Object:
    return make_pod(f"job-main-{index}", phase, version=version, **fields)


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        (_pod("Pending"), ["PodPending"]),
        (_pod("Pending", annotations=_OUT_OF_SYNC), []),
        (_pod("Running"), []),
        (_pod("Unknown"), []),
        (_pod("Failed"), ["PodFailed"]),
        (_pod("Failed", annotations=_OUT_OF_SYNC), []),
        (_pod("Failed", version=0), []),
        (_pod("Succeeded"), []),
        (_pod("Running", metadata=_GOING), ["PodEvicted"]),
        (_pod("Succeeded", metadata=_GOING), ["PodEvicted"]),
        (_pod("Failed", metadata=_GOING, **_ended_at(59)), ["PodEvicted", "PodFailed"]),
        (_pod("Failed", metadata=_GOING, **_ended_at(29)), ["PodFailed", "PodEvicted"]),
        (_pod("Running", metadata=_GOING, annotations=_OUT_OF_SYNC), []),
        (_pod("Failed", metadata=_GOING, annotations=_OUT_OF_SYNC), []),
        (_pod("Running", metadata=_GOING, version=0), []),
        (_pod("Failed", metadata=_GOING, version=0), []),
        (_pod("Running", metadata=_GOING, index=2), []),
        (_pod("Failed", metadata=_GOING, index=2), []),
    ],
    ids=[
        "pod added",
        "pod added, but out of sync",
        "pod runs",
        "pod unknown",
        "pod failed",
        "pod failed, but out of sync",
        "pod of an older version failed",
        "one of two succeeded",
        "pod deleted",
        "pod deleted, then succeeded",
        "pod deleted, then failed",
        "pod failed, then deleted",
        "pod deleted, but out of sync",
        "pod deleted and failed, but out of sync",
        "pod of an older version deleted",
        "pod of an older version deleted and failed",
        "pod beyond the replicas deleted",
        "pod beyond the replicas deleted and failed",
    ],
)
def test_a_pod_makes_these_events_in_this_order(pod: Object, found: list[str]) -> None:
    assert _found(pod) == [(event, pod["metadata"]["name"]) for event in found]


def test_a_pod_that_is_gone_was_evicted() -> None:
    assert _found(evicted={"job-main-1": 5.0}) == [("PodEvicted", "job-main-1")]


def test_a_pod_that_the_status_counts_and_that_is_not_there_was_evicted() -> None:
    job = make_job(
        {"tasks": [task()], "policies": [policy("*", "AbortJob")]},
        status=in_phase("Running", taskStatusCount={"main": {"phase": {"Running": 2}}}),
    )
    (found,) = events.happenings(job, of(make_pod("job-main-1", "Running")), None, evicted={})
    assert (found.event, found.pod) == (Event.POD_EVICTED, "job-main-0")


@pytest.mark.parametrize(
    ("containers", "code"),
    [
        (_ended(3), 3),
        (_ended(3, 4), 3),
        (_ended(0, 4), 0),
        (_ended(None, 4), None),
        ([], None),
    ],
)
def test_a_failed_pod_tells_how_its_first_container_ended(
    containers: list[Object], code: int | None
) -> None:
    job = make_job(
        {"tasks": [task()], "policies": [policy("*", "AbortJob")]}, status=in_phase("Running")
    )
    pods = of(make_pod("job-main-0", "Failed", containerStatuses=containers))
    (found,) = events.happenings(job, pods, None, evicted={})
    assert found.exit_code == code


@pytest.mark.parametrize(
    ("phases", "completed"),
    [
        (["Succeeded", "Succeeded"], True),
        (["Succeeded"], False),
        (["Succeeded", "Running"], False),
        (["Succeeded", "Failed"], False),
        ([], False),
    ],
)
def test_a_task_is_complete_when_all_its_replicas_have_succeeded(
    phases: list[str], completed: bool
) -> None:
    pods = [_pod(phase, index=index) for index, phase in enumerate(phases)]
    assert ("TaskCompleted" in dict(_found(*pods))) is completed


def test_a_task_is_complete_once_and_not_again_after_a_restart() -> None:
    both = [_pod("Succeeded", index=index, version=0) for index in range(2)]
    assert _found(*both) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Running"])
def test_nothing_happens_to_a_task_without_replicas(phase: str) -> None:
    left = _pod(phase, containerStatuses=_restarted(9))
    assert _found(replicas=0) == []
    assert _found(left, replicas=0) == []


def test_replicas_that_the_task_has_no_more_do_not_complete_it() -> None:
    pods = [_pod(phase, index=at) for at, phase in enumerate(["Running", "Succeeded", "Succeeded"])]
    assert _found(*pods) == []


def test_restarts_of_replicas_that_the_task_has_no_more_do_not_count() -> None:
    pods = [_pod("Running", index=at, containerStatuses=_restarted(at)) for at in range(3)]
    assert _found(*pods) == []


@pytest.mark.parametrize(
    ("most", "restarts", "phases", "failed"),
    [
        (0, [2, 0], ["Running", "Running"], False),
        (0, [2, 1], ["Running", "Running"], True),
        (0, [3, 0], ["Pending", "Running"], True),
        (5, [4, 0], ["Running", "Running"], False),
        (5, [4, 1], ["Running", "Running"], True),
        (-1, [99, 99], ["Running", "Running"], False),
        (3, [1, 2], ["Running", "Succeeded"], False),
        (3, [3, 0], ["Failed", "Running"], False),
    ],
    ids=[
        "below 3, the default",
        "3 in all",
        "of a pod that is pending",
        "below its own limit",
        "at its own limit",
        "no limit",
        "those of pods that have ended do not count",
        "nor of pods that have failed",
    ],
)
def test_a_task_has_failed_when_its_containers_were_restarted_too_often(
    most: int, restarts: list[int], phases: list[str], failed: bool
) -> None:
    pods = [
        _pod(phase, index=index, containerStatuses=_restarted(count))
        for index, (phase, count) in enumerate(zip(phases, restarts, strict=True))
    ]
    assert ("TaskFailed" in dict(_found(*pods, maxRetry=most))) is failed


def test_restarts_of_all_containers_of_a_pod_count() -> None:
    pod = _pod(
        "Running", containerStatuses=_restarted(1, 1), initContainerStatuses=_restarted(0, 1)
    )
    assert "TaskFailed" in dict(_found(pod))


def test_restarts_before_the_job_was_restarted_do_not_count() -> None:
    pod = _pod("Running", version=0, containerStatuses=_restarted(9))
    assert _found(pod) == []


_SIZE = make_job({"tasks": [task()]}).size


def _group(phase: str, size: str) -> Object:
    annotations = {"pumice.sh/job-size": size}
    return {"metadata": {"annotations": annotations}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("group", "found"),
    [
        (_group("Unknown", _SIZE), ["Unknown"]),
        (_group("Running", _SIZE), []),
        (_group("Inqueue", _SIZE), []),
        (_group("Pending", _SIZE), []),
        (_group("Running", "another"), ["JobUpdated"]),
        ({"metadata": {}, "status": {}}, []),
    ],
    ids=["unknown", "running", "inqueue", "pending", "of another size", "of no size we know"],
)
def test_a_group_makes_this_event(group: Object, found: list[str]) -> None:
    assert [event for event, _ in _found(group=group)] == found


@pytest.mark.parametrize(
    "phase", ["Aborting", "Aborted", "Terminating", "Completing", "Completed", "Failed"]
)
def test_a_job_that_ends_or_rests_answers_nothing(phase: str) -> None:
    assert _found(_pod("Failed"), group=_group("Unknown", "another"), phase=phase) == []


def test_a_restart_that_goes_on_is_not_started_anew_by_the_groups_phase() -> None:
    found = _found(_pod("Failed"), group=_group("Unknown", "another"), phase="Restarting")
    assert found == [("PodFailed", "job-main-0")]
