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
PARTS = [{"name": "a", "matchLabelKeys": ["a"]}, {"name": "b", "matchLabelKeys": ["b"]}]


def affinity(kind: str, *required: Object, **more: Any) -> Object:
    """A spec with that block, and two policies of sub-groups."""
    return {"topologyAffinity": {kind: {"required": [*required], **more}}, "subGroupPolicy": PARTS}


def parts(*names: str, **fields: Any) -> Object:
    """A term about these sub-groups, at tier 1 unless it says otherwise."""
    return {"subGroups": [*names], **(fields or {"topologyTier": 1})}


def together_and_apart(near: Object, apart: Object) -> Object:
    """A spec that asks for both."""
    terms = {
        "subGroupAffinity": {"required": [near]},
        "subGroupAntiAffinity": {"required": [apart]},
    }
    return {"topologyAffinity": terms, "subGroupPolicy": PARTS}


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
        {"topologyAffinity": {}},
        affinity("subGroupAntiAffinity", parts("a"), parts("a", "b")),
        affinity("memberSpread", {"minDomains": 1, "maxDomains": 1, "topologyTierName": "rack"}),
        affinity("podGroupAntiAffinity", {"podGroupSelector": {}, "topologyTier": 0}),
        together_and_apart(parts("a", "b", topologyTier=2), parts("a")),
        together_and_apart(parts("a", topologyTier=1), parts("a", "b")),
        together_and_apart(parts("a", topologyTierName="row"), parts("a", topologyTierName="rack")),
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
        (
            affinity("subGroupAffinity", {"subGroups": ["a"]}),
            "spec.topologyAffinity.subGroupAffinity.required[0]: a term names one tier, by "
            "topologyTierName or by topologyTier;",
        ),
        (
            affinity(
                "podGroupAffinity",
                {
                    "podGroupSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]},
                    "topologyTier": 1,
                },
            ),
            'podGroupSelector.matchExpressions[0].operator: "Gt" is not an operator',
        ),
        (
            affinity("subGroupAntiAffinity", parts("a", "c")),
            "spec.topologyAffinity: subGroups names c, and no entry of subGroupPolicy has that "
            "name;",
        ),
        (
            together_and_apart(parts("a", "b"), parts("a")),
            "spec.topologyAffinity: subGroupAffinity of [a b] and subGroupAntiAffinity of [a] "
            "contradict each other at tier 1: what is together has to be of a higher tier than "
            "what is apart;",
        ),
        (
            together_and_apart(
                parts("a", "b", topologyTierName="rack"), parts("a", "b", topologyTierName="rack")
            ),
            "contradict each other at tier rack",
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
        (
            {"minMember": 2} | affinity("memberSpread", {"minDomains": 3, "topologyTier": 1}),
            "spec.topologyAffinity.memberSpread: minDomains is 3, but only 2 members start "
            "together: they are in fewer domains until more have come",
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


def changed(spec: Object, old: Object | None = None) -> Any:
    """The verdict on a group that had the spec ``old`` and is to have ``spec``."""
    before = group(**({"queue": "open"} if old is None else old))
    return ask("/podgroups/validate", group(**spec), old=before, cluster=OURS)


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        ({"queue": "nowhere"}, "spec.queue: unable to find queue: "),
        ({"queue": "closed"}, "queue `closed` status is `Closed`"),
        ({"networkTopology": BOTH}, "spec.networkTopology: must not specify"),
        (
            {"subGroupPolicy": [{"name": "b", "matchLabelKeys": ["a"], "networkTopology": BOTH}]},
            "spec.subGroupPolicy[0].networkTopology: in subGroupPolicy 'b': must not specify",
        ),
        (
            {"queue": "small", "minResources": {"cpu": 3}},
            "spec.minResources: the minimum asks for cpu 3, more than queue small",
        ),
    ],
    ids=str,
)
def test_a_change_that_volcano_lets_through_is_warned_of(spec: Object, warning: str) -> None:
    verdict = changed(spec)
    assert verdict.allowed
    (told,) = verdict.warnings
    assert warning in told


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (affinity("subGroupAffinity", {"subGroups": ["a"]}), "a term names one tier"),
        (affinity("subGroupAntiAffinity", parts("a", "c")), "subGroups names c"),
        (together_and_apart(parts("a", "b"), parts("a")), "contradict each other at tier 1"),
    ],
    ids=str,
)
def test_a_change_to_a_wrong_affinity_is_refused(spec: Object, message: str) -> None:
    verdict = changed(spec)
    assert not verdict.allowed
    assert message in verdict.message


def test_a_change_that_takes_away_what_the_affinity_names_is_refused() -> None:
    good = affinity("subGroupAntiAffinity", parts("a", "b"))
    verdict = changed({**good, "subGroupPolicy": PARTS[:1]}, good)
    assert "subGroups names b, and no entry of subGroupPolicy has that name" in verdict.message


@pytest.mark.parametrize(
    "wrong",
    [
        affinity("subGroupAntiAffinity", parts("a", "c")),
        {"networkTopology": BOTH, "queue": "closed"},
    ],
    ids=str,
)
def test_what_was_wrong_before_hinders_no_other_change(wrong: Object) -> None:
    verdict = changed({**wrong, "minMember": 2}, {**wrong, "minMember": 1})
    assert (verdict.allowed, verdict.warnings) == (True, ())


def test_annotations_of_a_group_are_judged_when_they_change() -> None:
    old, new = group(), group()
    new["metadata"]["annotations"] = {"pumice.sh/stranded-after": "soon"}
    verdict = ask("/podgroups/validate", new, old=old, cluster=OURS)
    assert "metadata.annotations[pumice.sh/stranded-after]" in verdict.message
    assert ask("/podgroups/validate", new, old=new, cluster=OURS).allowed


def test_a_group_that_is_being_deleted_may_change_in_any_way() -> None:
    leaving = group(queue="nowhere", **affinity("subGroupAffinity", parts("c")))
    leaving["metadata"]["deletionTimestamp"] = "2026-11-29T00:00:00Z"
    verdict = ask("/podgroups/validate", leaving, old=group(), cluster=OURS)
    assert (verdict.allowed, verdict.warnings) == (True, ())
