"""Annotations of ours on jobs, PodGroups and queues: what is refused, and what has no effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.wire.unstructured import Object
from tests.webhooks.objects import ask, group, job, new_queue

AFTER, ACTION = "pumice.sh/stranded-after", "pumice.sh/stranded-action"
EXPECTED = "pumice.sh/run-time"
RUN_TIME, OVER = "pumice.sh/minimum-run-time", "pumice.sh/evict-over-capability"

QUEUE, GROUP, JOB = "/queues/validate", "/podgroups/validate", "/jobs/validate"
MADE: dict[str, Callable[[], Object]] = {QUEUE: new_queue, GROUP: group, JOB: job}


def annotated(path: str, said: dict[str, Any], **metadata: Any) -> Object:
    made = MADE[path]()
    made["metadata"].update({"annotations": said, **metadata})
    return made


@pytest.mark.parametrize(
    ("path", "said"),
    [
        *((QUEUE, {RUN_TIME: value}) for value in ("0", "90", "90s", "1h30m")),
        *((QUEUE, {OVER: value}) for value in ("true", "false")),
        *((path, {AFTER: "10m"}) for path in (GROUP, JOB)),
        *((path, {EXPECTED: value}) for path in (GROUP, JOB) for value in ("90", "1h30m")),
        *(
            (path, {AFTER: "0s", ACTION: do})
            for path in (GROUP, JOB)
            for do in ("restart", "release")
        ),
    ],
    ids=str,
)
def test_what_can_be_read_is_accepted_without_a_word(path: str, said: dict[str, Any]) -> None:
    verdict = ask(path, annotated(path, said))
    assert (verdict.allowed, verdict.message, verdict.warnings) == (True, "", ())


@pytest.mark.parametrize(
    ("path", "said", "key", "advice"),
    [
        *(
            (QUEUE, {RUN_TIME: value}, RUN_TIME, "90s, 1h30m or a number of seconds")
            for value in ("", "soon", "-5", "-1h", "1.5")
        ),
        *((QUEUE, {OVER: value}, OVER, '"true"') for value in ("", "yes", "restart")),
        *((path, {EXPECTED: "long"}, EXPECTED, "how long it will run") for path in (GROUP, JOB)),
        *(
            (path, {AFTER: value}, AFTER, "such as 90s or 1h30m")
            for path in (GROUP, JOB)
            for value in ("", "10", "ten minutes", "-10m")
        ),
        *(
            (path, {AFTER: "10m", ACTION: value}, ACTION, "write restart")
            for path in (GROUP, JOB)
            for value in ("", "explode", "Restart")
        ),
        *((path, {ACTION: "release"}, ACTION, f"set {AFTER} as well") for path in (GROUP, JOB)),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_refused_with_what_to_write(
    path: str, said: dict[str, Any], key: str, advice: str
) -> None:
    verdict = ask(path, annotated(path, said))
    assert not verdict.allowed
    assert f'metadata.annotations[{key}]: invalid value "{said[key]}": ' in verdict.message
    assert advice in verdict.message
    assert verdict.message.count("metadata.annotations") == 1


@pytest.mark.parametrize("path", [QUEUE, JOB])
def test_a_change_is_judged_only_where_it_changes_the_annotation(path: str) -> None:
    key = RUN_TIME if path == QUEUE else AFTER
    bad, other = annotated(path, {key: "soon"}), annotated(path, {key: "later"})
    assert ask(path, bad, old=bad).allowed
    assert not ask(path, bad, old=other).allowed
    assert not ask(path, bad, old=annotated(path, {})).allowed
    assert ask(path, annotated(path, {}), old=bad).allowed


@pytest.mark.parametrize("path", [QUEUE, JOB])
def test_an_end_hangs_on_no_annotation(path: str) -> None:
    key = RUN_TIME if path == QUEUE else AFTER
    ending = annotated(path, {key: "soon"}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert ask(path, ending, old=annotated(path, {})).allowed


@pytest.mark.parametrize(
    ("path", "key", "told"),
    [
        (JOB, RUN_TIME, "has no effect on a Job: set it on a Queue"),
        (GROUP, OVER, "has no effect on a PodGroup: set it on a Queue"),
        (QUEUE, AFTER, "has no effect on a Queue: set it on a Job or a PodGroup"),
    ],
)
def test_an_annotation_on_a_kind_that_ignores_it_is_only_warned_of(
    path: str, key: str, told: str
) -> None:
    verdict = ask(path, annotated(path, {key: "true"}))
    assert verdict.allowed
    assert verdict.warnings == (f"metadata.annotations[{key}]: {told}",)


AFFINITY, ORDER = "volcano.sh/task-topology-affinity", "volcano.sh/task-topology-task-order"


@pytest.mark.parametrize("path", [GROUP, JOB])
@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({AFFINITY: "a,b;a;;", ORDER: "a,b,"}, ""),
        ({AFFINITY: "a,b,a"}, "task a is named twice in a,b,a"),
        ({ORDER: "a;b"}, "the order is one list, without semicolons"),
        ({"volcano.sh/task-topology-anti-affinity": "b,b"}, "task b is named twice in b,b"),
    ],
)
def test_tasks_that_belong_together_are_readable(
    path: str, said: dict[str, Any], fault: str
) -> None:
    verdict = ask(path, annotated(path, said))
    assert verdict.allowed is (not fault)
    assert fault in verdict.message


def test_a_job_that_names_tasks_it_has_not_is_warned() -> None:
    (warning,) = ask(JOB, annotated(JOB, {AFFINITY: "nobody,task"})).warnings
    assert warning.startswith(f"metadata.annotations[{AFFINITY}]: no task is named nobody")
