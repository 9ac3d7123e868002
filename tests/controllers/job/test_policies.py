"""Which action the policies of a job and its tasks ask for (volcano.md section 5.1)."""

from typing import Any

import pytest

from app.controllers.job import policies
from app.controllers.job.policies import Happening
from app.controllers.job.vocabulary import Event
from tests.controllers.job.jobs import make_job
from tests.controllers.job.rig import policy, task

_FAILED: dict[str, Any] = {"event": Event.POD_FAILED, "exit_code": 3}
_BY_NAME = {Event.JOB_UPDATED, Event.STRANDED}
_OF_POD = [Event.POD_FAILED, Event.POD_EVICTED, Event.TASK_COMPLETED, Event.TASK_FAILED]


def _code(code: int, action: str, **more: Any) -> dict[str, Any]:
    return {"exitCode": code, "action": action, **more}


def _decided(
    *, of_job: list[Any], of_task: list[Any] | None = None, at: str = "main", **happened: Any
) -> tuple[str, float | None] | None:
    """The action and its timeout."""
    tasks = [task(policies=of_task or []), task("other")]
    job = make_job({"tasks": tasks, "policies": of_job})
    decision = policies.decide(job, Happening(**{"task": at, "pod": "p", **happened}))
    return None if decision is None else (decision.action.value, decision.timeout_s)


@pytest.mark.parametrize("event", list(Event))
@pytest.mark.parametrize("named", [*(event.value for event in Event), "*"])
def test_a_policy_answers_the_events_it_names(event: Event, named: str) -> None:
    given = [policy(named, "AbortJob", timeout="1s")]
    answers = named == event.value or (named == "*" and event not in _BY_NAME)
    assert _decided(of_job=given, event=event) == (("AbortJob", 1) if answers else None)


@pytest.mark.parametrize("named", ["OutOfSync", "CommandIssued", "PodRunning"])
@pytest.mark.parametrize("event", list(Event))
def test_internal_events_are_never_answered(named: str, event: Event) -> None:
    assert _decided(of_job=[policy(named, "AbortJob", timeout="1s")], event=event) is None


@pytest.mark.parametrize("event", _OF_POD)
def test_one_policy_may_name_several_events(event: Event) -> None:
    given = [policy([event.value for event in _OF_POD], "RestartTask")]
    assert _decided(of_job=given, event=event) == ("RestartTask", None)


@pytest.mark.parametrize(
    ("of_task", "of_job", "action"),
    [
        ([], [policy("PodFailed", "AbortJob")], "AbortJob"),
        ([policy("PodFailed", "RestartPod")], [policy("PodFailed", "AbortJob")], "RestartPod"),
        ([policy("PodEvicted", "RestartPod")], [policy("PodFailed", "AbortJob")], "AbortJob"),
        ([policy("*", "RestartPod")], [policy("PodFailed", "AbortJob")], "RestartPod"),
        ([_code(3, "RestartPod")], [policy("PodFailed", "AbortJob")], "RestartPod"),
        ([_code(4, "RestartPod")], [policy("PodFailed", "AbortJob")], "AbortJob"),
        ([], [policy("PodFailed", "AbortJob"), _code(3, "RestartJob")], "AbortJob"),
        ([], [_code(3, "RestartJob"), policy("PodFailed", "AbortJob")], "RestartJob"),
        ([], [policy("PodEvicted", "AbortJob"), _code(3, "RestartJob")], "RestartJob"),
        ([_code(3, "RestartTask"), policy("PodFailed", "RestartPod")], [], "RestartTask"),
        ([policy("PodFailed", "RestartPod"), _code(3, "RestartTask")], [], "RestartPod"),
        ([policy("PodFailed", "SyncJob")], [policy("PodFailed", "AbortJob")], None),
        ([], [policy("TaskFailed", "AbortJob"), _code(4, "RestartJob")], None),
        ([], [], None),
    ],
)
def test_those_of_the_task_come_first_and_each_in_its_order(
    of_task: list[Any], of_job: list[Any], action: str | None
) -> None:
    decided = _decided(of_task=of_task, of_job=of_job, **_FAILED)
    assert (decided and decided[0]) == action


def test_those_of_another_task_do_not_count() -> None:
    given = [policy("PodFailed", "RestartPod")]
    assert _decided(of_task=given, of_job=[], at="other", **_FAILED) is None


@pytest.mark.parametrize(
    ("given", "decided"),
    [
        ([policy("PodPending", "AbortJob")], None),
        ([policy("*", "AbortJob")], None),
        ([policy("PodPending", "AbortJob", timeout="5m")], ("AbortJob", 300)),
        ([policy("*", "AbortJob", timeout="5m")], ("AbortJob", 300)),
        (
            [policy("*", "AbortJob"), policy("PodPending", "RestartPod", timeout="1h")],
            ("RestartPod", 3600),
        ),
    ],
)
def test_a_pod_that_is_pending_counts_only_where_a_timeout_is_said(
    given: list[Any], decided: tuple[str, float] | None
) -> None:
    assert _decided(of_job=given, event=Event.POD_PENDING) == decided
    assert _decided(of_task=given, of_job=[], event=Event.POD_PENDING) == decided


def test_an_exit_code_may_be_answered_later() -> None:
    given = [_code(3, "AbortJob", timeout="90s")]
    assert _decided(of_job=given, **_FAILED) == ("AbortJob", 90)


@pytest.mark.parametrize("others", [[], [policy("PodFailed", "RestartPod")]])
def test_what_happens_outside_partitions_restarts_none(others: list[Any]) -> None:
    given = [policy("PodFailed", "RestartPartition"), *others]
    assert _decided(of_job=given, event=Event.POD_FAILED) is None
    decided = _decided(of_job=given, event=Event.POD_FAILED, partition="0")
    assert decided == ("RestartPartition", None)


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod", "RestartPartition"])
def test_what_happens_to_no_task_restarts_none(action: str) -> None:
    given = [policy("Unknown", action)]
    assert _decided(of_job=given, at="", event=Event.UNKNOWN) is None
