"""Minima that admission filled in follow the size of a job; those of the user do not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from app.model.ids import FILLED_IN
from app.webhooks.admission import Verdict
from app.wire.unstructured import Object
from tests.webhooks.objects import ask, job, patched, task

Change = Callable[[Any], object]
Minima = tuple[int | None, list[int | None]]

PARTITIONS = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}
SAID: dict[str, Any] = {"minAvailable": 2}


def stored(given: Object) -> Any:
    """As admission stores a new job."""
    return patched(copy.deepcopy(given), ask("/jobs/mutate", given))


def submitted(job: Any, change: Change) -> tuple[Any, Verdict]:
    """The job as admission makes it of a change, and what is said of it."""
    new = copy.deepcopy(job)
    change(new)
    made = patched(copy.deepcopy(new), ask("/jobs/mutate", new, old=job))
    return made, ask("/jobs/validate", made, old=job)


def changed(job: Any, *changes: Change) -> Any:
    """The job after changes that are accepted."""
    for change in changes:
        job, verdict = submitted(job, change)
        assert verdict.message == ""
    return job


def refused(job: Any, change: Change) -> str:
    return submitted(job, change)[1].message


def minima(job: Any) -> Minima:
    spec = job["spec"]
    return spec.get("minAvailable"), [each.get("minAvailable") for each in spec["tasks"]]


def resized(*replicas: int) -> Change:
    """A patch of replicas."""

    def resize(job: Any) -> None:
        for each, number in zip(job["spec"]["tasks"], replicas, strict=True):
            each["replicas"] = number

    return resize


def needing(**fields: Any) -> Change:
    """A patch of the first task."""
    return lambda job: job["spec"]["tasks"][0].update(fields)


def applied(*tasks: Object) -> Change:
    """A manifest applied again: of lists the whole is replaced."""
    return lambda job: job["spec"].update(tasks=[copy.deepcopy(each) for each in tasks])


FOLLOWING: dict[str, tuple[Object, tuple[int, ...], Minima]] = {
    "smaller": (job(task("w", 3), task("x")), (1, 1), (2, [1, 1])),
    "larger": (job(task("w", 3), task("x")), (5, 1), (6, [5, 1])),
    "to none": (job(task("w", 3), task("x")), (0, 0), (0, [0, 0])),
    "the job says its own": (job(task("w", 3), task("x"), minAvailable=1), (1, 1), (1, [1, 1])),
    "a task says its own": (job(task("w", 3, **SAID), task("x", 4)), (3, 1), (3, [2, 1])),
}


@pytest.mark.parametrize(("given", "size", "expected"), FOLLOWING.values(), ids=FOLLOWING)
def test_what_was_filled_in_follows(given: Object, size: tuple[int, ...], expected: Minima) -> None:
    assert minima(changed(stored(given), resized(*size))) == expected


def test_it_follows_time_and_again() -> None:
    """Five, one and five again, as of the report."""
    job_ = stored(job(task("w", 3), task("x"), minAvailable=1))
    assert minima(changed(job_, resized(5, 1), resized(1, 1))) == (1, [1, 1])
    assert minima(changed(job_, resized(5, 1), resized(1, 1), resized(4, 1))) == (1, [4, 1])


def test_partitions_that_are_needed_do_not_depend_on_replicas() -> None:
    given = stored(job(task("w", 6, partitionPolicy=PARTITIONS), task("x", 2)))
    assert minima(changed(given, resized(6, 1))) == (5, [4, 1])


def test_a_manifest_that_is_applied_again_may_be_smaller() -> None:
    given = stored(job(task("w", 3), task("x")))
    smaller = changed(given, applied(task("w", 1), task("x")))
    assert minima(smaller) == (2, [None, None])
    assert minima(changed(smaller, applied(task("w", 2), task("x")))) == (3, [None, None])


TOO_HIGH = "'minAvailable' must be <= 'replicas' in task: w"
TOO_HIGH_TOGETHER = "job 'minAvailable' must not be greater than total replicas"


STAYING = {
    "of a task": (job(task("w", 3, minAvailable=3)), f"spec.tasks[0].minAvailable: {TOO_HIGH}"),
    "of the job": (job(task("w", 3), minAvailable=3), f"spec.minAvailable: {TOO_HIGH_TOGETHER}"),
}


@pytest.mark.parametrize(("given", "message"), STAYING.values(), ids=STAYING)
def test_what_the_user_wrote_does_not(given: Object, message: str) -> None:
    assert message in refused(stored(given), resized(1))


@pytest.mark.parametrize(
    "write",
    [
        [needing(minAvailable=2)],
        [needing(minAvailable=2), needing(replicas=2)],
        [applied(task("w", 3)), applied(task("w", 3, minAvailable=3))],
    ],
    ids=["a patch", "a patch and its size", "a manifest"],
)
def test_what_the_user_writes_later_does_not(write: list[Change]) -> None:
    given = changed(stored(job(task("w", 3), minAvailable=1)), *write)
    assert TOO_HIGH in refused(given, resized(1))


def test_a_job_of_which_nothing_is_noted_keeps_its_minima() -> None:
    given = stored(job(task("w", 3), minAvailable=1))
    del given["metadata"]["annotations"]
    assert TOO_HIGH in refused(given, resized(1))


def test_the_user_s_own_size_and_minimum_at_once_are_taken_as_they_are() -> None:
    given = stored(job(task("w", 3)))
    made = changed(given, lambda job: job["spec"].update(minAvailable=1), needing(minAvailable=1))
    assert minima(made) == (1, [1])
    assert FILLED_IN not in made["metadata"]["annotations"]


def test_less_than_none_is_refused_as_ever() -> None:
    message = refused(stored(job(task("w", 3), minAvailable=1)), resized(-1))
    assert "spec.tasks[0].replicas: 'replicas' must be >= 0 in task: w" in message


def test_being_followed_twice_is_being_followed_once() -> None:
    """A policy of the API server may have done it before, and a webhook is asked again."""
    given = stored(job(task("w", 3)))
    once = changed(given, resized(1))
    again = patched(copy.deepcopy(once), ask("/jobs/mutate", once, old=given))
    assert again == once


@pytest.mark.parametrize("tasks", ["no list", [1, "a"], None], ids=str)
def test_what_the_schema_will_refuse_is_passed_on(tasks: Any) -> None:
    given = stored(job(task("w", 3), task("x")))
    new = copy.deepcopy(given)
    new["spec"]["tasks"] = tasks
    assert ask("/jobs/mutate", new, old=given).patch == []


@pytest.mark.parametrize(
    "change",
    [
        lambda job: job["metadata"].update(labels={"a": "b"}),
        lambda job: job["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["a label", "its end"],
)
def test_nothing_else_is_changed(change: Change) -> None:
    given = stored(job(task("w", 3)))
    new = copy.deepcopy(given)
    change(new)
    assert ask("/jobs/mutate", new, old=given).patch == []
