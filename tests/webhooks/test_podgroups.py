"""PodGroups: the namespace's queue, and where they may go."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from app.wire.unstructured import Object
from tests.webhooks.objects import ask, facts, group, patched, queue

OURS = facts(
    queue("open"),
    queue("closed", state="Closed"),
    queue("unknown", state="Unknown"),
    queue("fresh", state=""),
    queue("small", capability={"cpu": "2"}),
    namespaces={"default": {"scheduling.volcano.sh/queue-name": "open"}},
    classes=("high",),
)
BOTH = {"highestTierAllowed": 1, "highestTierName": "rack"}


@pytest.mark.parametrize(
    ("given", "stored"),
    [("default", "open"), ("", "open"), (None, "open"), ("closed", "closed")],
)
def test_the_queue_of_the_namespace_stands_in_for_the_default(given: Any, stored: str) -> None:
    made = group() if given is None else group(queue=given)
    verdict = ask("/podgroups/mutate", made, cluster=OURS)
    assert patched(copy.deepcopy(made), verdict)["spec"]["queue"] == stored


def test_a_namespace_without_the_annotation_changes_nothing() -> None:
    assert ask("/podgroups/mutate", group(queue="default")).patch == []


@pytest.mark.parametrize(
    "spec",
    [
        {"queue": "open"},
        {"queue": "fresh"},
        {},
        {"networkTopology": {"highestTierName": "rack"}},
        {"subGroupPolicy": [{"name": "a", "networkTopology": {"highestTierAllowed": 0}}]},
    ],
    ids=str,
)
def test_is_accepted(spec: Object) -> None:
    verdict = ask("/podgroups/validate", group(**spec), cluster=OURS)
    assert (verdict.allowed, verdict.message) == (True, "")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"queue": "nowhere"},
            'spec.queue: unable to find queue: queues.scheduling.volcano.sh "nowhere" not found;',
        ),
        (
            {"queue": "closed"},
            "spec.queue: can only submit PodGroup to queue with state `Open`, queue `closed` "
            "status is `Closed`. ;",
        ),
        ({"queue": "unknown"}, "queue `unknown` status is `Unknown`. "),
        (
            {"networkTopology": BOTH},
            "spec.networkTopology: must not specify 'highestTierAllowed' and 'highestTierName' in "
            "networkTopology simultaneously",
        ),
        (
            {"subGroupPolicy": [{"name": "a"}, {"name": "b", "networkTopology": BOTH}]},
            "spec.subGroupPolicy[1].networkTopology: in subGroupPolicy 'b': must not specify "
            "'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously.;",
        ),
    ],
    ids=str,
)
def test_is_refused(spec: Object, message: str) -> None:
    verdict = ask("/podgroups/validate", group(**spec), cluster=OURS)
    assert not verdict.allowed
    assert message in verdict.message


def test_errors_are_joined() -> None:
    message = ask("/podgroups/validate", group(queue="nowhere", networkTopology=BOTH)).message
    assert "not found; spec.networkTopology: must not" in message


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        ({"priorityClassName": "low"}, "spec.priorityClassName: there is no PriorityClass low"),
        (
            {"queue": "small", "minResources": {"cpu": 3}},
            "spec.minResources: the minimum asks for cpu 3, more than queue small may ever use (2)",
        ),
        (
            {"minMember": 2, "minTaskMember": {"a": 2, "b": 1}},
            "spec.minTaskMember: the roles need 3 members together, minMember is 2",
        ),
        (
            {"subGroupPolicy": [{"name": "a", "networkTopology": {"mode": "hard"}}]},
            "spec.subGroupPolicy[0].networkTopology: no pod is in a sub-group without "
            "matchLabelKeys",
        ),
        (
            {"subGroupPolicy": [{"name": "a", "minSubGroups": 1, "matchLabelKeys": []}]},
            "spec.subGroupPolicy[0].minSubGroups: no pod is in a sub-group without "
            "matchLabelKeys: the group never runs",
        ),
    ],
    ids=str,
)
def test_a_warning_is_given(spec: Object, warning: str) -> None:
    verdict = ask("/podgroups/validate", group(**spec), cluster=OURS)
    assert verdict.allowed
    assert verdict.warnings == (warning,)


@pytest.mark.parametrize(
    "spec",
    [
        {"queue": "small", "priorityClassName": "high", "minResources": {"cpu": 2}},
        {"minMember": 3, "minTaskMember": {"a": 2, "b": 1}},
        {"minMember": 0, "minTaskMember": {"a": 2}},
    ],
    ids=str,
)
def test_what_is_fine_gets_no_warning(spec: Object) -> None:
    given = group(**spec)
    assert ask("/podgroups/validate", given, cluster=OURS).warnings == ()
