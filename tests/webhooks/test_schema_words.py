"""A refusal has our words and the API server's, which clients match too."""

from __future__ import annotations

from typing import Any

import pytest

from app.webhooks.object_types import KINDS
from app.webhooks.schema_words import beyond_schema
from app.wire import kinds
from app.wire.unstructured import Object
from tests.webhooks.objects import ask, job, new_queue, task


def hyper_node(*selectors: Any) -> Object:
    members = [{"type": "Node", "selector": selector} for selector in selectors]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "x"},
        "spec": {"tier": 1, "members": members},
    }


def mounted(path: str) -> Object:
    return job(volumes=[{"mountPath": path, "volumeClaimName": "c"}])


ZERO = "in body should be greater than or equal to 0"
SELECTOR = "spec.members[0].selector"

BEYOND: dict[str, tuple[Object, str, str]] = {
    "retries": (
        job(maxRetry=-1),
        "'maxRetry' cannot be less than zero",
        f"spec.maxRetry: Invalid value: -1: spec.maxRetry {ZERO}",
    ),
    "the minimum": (
        job(minAvailable=-1),
        "job 'minAvailable' must be >= 0",
        f"spec.minAvailable: Invalid value: -1: spec.minAvailable {ZERO}",
    ),
    "the time to live": (
        job(ttlSecondsAfterFinished=-1),
        "'ttlSecondsAfterFinished' cannot be less than zero",
        f"Invalid value: -1: spec.ttlSecondsAfterFinished {ZERO}",
    ),
    "replicas": (
        job(task("a", -1, minAvailable=0), minAvailable=1),
        "'replicas' < 0 in task",
        f"Invalid value: -1: spec.tasks[0].replicas {ZERO}",
    ),
    "the minimum of a task": (
        job(task("a", minAvailable=-1), minAvailable=1),
        "in task",
        f"Invalid value: -1: spec.tasks[0].minAvailable {ZERO}",
    ),
    "the name of a task": (
        job(task("A_b")),
        "a lowercase RFC 1123 label must consist of",
        "spec.tasks[0].name in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
    ),
    "no tasks": (
        {**job(), "spec": {"queue": "default", "minAvailable": 1, "tasks": []}},
        "No task specified in job spec",
        "Invalid value: 0: spec.tasks in body should have at least 1 items",
    ),
    "an empty path": (
        mounted(""),
        "mountPath is required;",
        "spec.volumes[0].mountPath in body should be at least 1 chars long",
    ),
    "a path of two": (
        mounted("/a:/b"),
        "mountPath must not contain ':'",
        "spec.volumes[0].mountPath in body should match '^[^:]+$'",
    ),
    "no members": (
        hyper_node(),
        "member must have at least one member",
        "Invalid value: 0: spec.members in body should have at least 1 items",
    ),
    "no name": (
        hyper_node({"exactMatch": {"name": ""}}),
        "member exactMatch name is required",
        f"{SELECTOR}.exactMatch.name in body should be at least 1 chars long",
    ),
    "no pattern": (
        hyper_node({"regexMatch": {"pattern": ""}}),
        "member regexMatch pattern is required",
        f"{SELECTOR}.regexMatch.pattern in body should be at least 1 chars long",
    ),
}
BEYOND_A_PATTERN = (
    hyper_node({"exactMatch": {"name": "A_b@"}}),
    "member exactMatch validate failed",
    f"{SELECTOR}.exactMatch.name in body should match '^[a-z0-9]",
)
"""Where the schema refuses it alone, only its own words are told."""


def judge(given: Object) -> str:
    path = "/jobs/validate" if given["kind"] == "Job" else "/hypernodes/validate"
    return ask(path, given).message


@pytest.mark.parametrize(
    ("given", "ours", "theirs"), [*BEYOND.values(), BEYOND_A_PATTERN], ids=[*BEYOND, "a name"]
)
def test_both_words_are_told(given: Object, ours: str, theirs: str) -> None:
    message = judge(given)
    assert ours in message
    assert theirs in message


def test_a_value_of_which_there_are_few_is_told_with_those_there_are() -> None:
    policy = {"event": "PodLost", "action": "AbortJob"}
    message = judge(job(policies=[policy]))
    assert 'spec.policies[0].event: Unsupported value: "PodLost": supported values: "*"' in message


def test_an_upper_limit_is_told() -> None:
    message = ask("/queues/validate", new_queue(weight=70000, parent="nowhere")).message
    assert "spec.weight in body should be less than or equal to 65535" in message


@pytest.mark.parametrize("given", [job(queue="nowhere"), job(task("a", 1, minAvailable=2))])
def test_what_the_schema_takes_has_none_of_its_words(given: Object) -> None:
    message = judge(given)
    assert message
    assert "in body should" not in message


@pytest.mark.parametrize("spec", [None, [], {"tasks": [None, 1], "maxRetry": "a"}], ids=str)
def test_values_of_other_types_are_passed_over(spec: Any) -> None:
    assert list(beyond_schema(kinds.JOBS, {**job(), "spec": spec})) == []


def test_a_newline_at_the_end_is_beyond_a_pattern() -> None:
    (found,) = beyond_schema(kinds.JOBS, job(task("a\n")))
    assert "should match" in found.message


@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.plural)
def test_every_kind_that_is_judged_early_has_a_schema(resource: Any) -> None:
    assert list(beyond_schema(resource, {"spec": {}})) == []


def test_objects_of_others_have_no_schema_here() -> None:
    assert list(beyond_schema(kinds.PODS, {"spec": {"x": 1}})) == []
