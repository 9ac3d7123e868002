"""Queues: defaults, limits, the tree, deletion."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from app.webhooks.cluster_facts import ClusterFacts
from app.webhooks.world import Options
from app.wire import kinds
from app.wire.unstructured import Object
from tests.webhooks.objects import ask, facts, group, new_queue, node, patched, queue

HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


def with_path(path: str, weights: str, called: str = "new") -> Object:
    given = new_queue(called)
    pairs = {HIERARCHY: path, WEIGHTS: weights}
    given["metadata"]["annotations"] = {key: value for key, value in pairs.items() if value}
    return given


@pytest.mark.parametrize(
    ("limits", "fault"),
    [
        ('{"a": {"cpu": "2"}}', ""),
        ("", ""),
        ('{"a": {"cpu": "two"}}', "a.cpu:"),
        ("cpu 2", "not JSON"),
        ('{"a": 2}', "Expected `object | null`, got `int`"),
    ],
)
def test_limits_per_node_group_must_be_readable(limits: str, fault: str) -> None:
    given = new_queue("new")
    given["metadata"]["annotations"] = {"volcano.sh/nodegroup-resource-limits": limits}
    verdict = ask("/queues/validate", given)
    assert verdict.allowed is (not fault)
    if fault:
        assert "metadata.annotations[volcano.sh/nodegroup-resource-limits]: " in verdict.message
        assert fault in verdict.message


def guaranteed(**amounts: Any) -> Object:
    return {"resource": amounts}


@pytest.mark.parametrize(
    ("spec", "stored"),
    [
        ({}, {"reclaimable": True, "weight": 1}),
        ({"weight": 0}, {"reclaimable": True, "weight": 1}),
        ({"weight": 3, "reclaimable": False}, {"reclaimable": False, "weight": 3}),
        ({"parent": "p", "weight": -1}, {"parent": "p", "reclaimable": True, "weight": -1}),
    ],
    ids=str,
)
def test_the_defaults(spec: Object, stored: Object) -> None:
    given = new_queue(**spec)
    verdict = ask("/queues/mutate", given)
    assert patched(copy.deepcopy(given), verdict)["spec"] == stored


def test_a_queue_without_a_spec_gets_one() -> None:
    given = {"metadata": {"name": "q"}}
    assert patched(dict(given), ask("/queues/mutate", given))["spec"]["weight"] == 1


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (("a/b", "1/2"), ("root/a/b", "1/1/2")),
        (("root/a", "1/2"), ("root/a", "1/2")),
        (("a", ""), ("a", "")),
        (("", "1"), ("", "1")),
    ],
)
def test_the_hierarchy_starts_at_the_root(given: tuple[str, str], stored: tuple[str, str]) -> None:
    made = with_path(*given)
    after = patched(copy.deepcopy(made), ask("/queues/mutate", made))
    assert after["metadata"]["annotations"] == with_path(*stored)["metadata"]["annotations"]


TREE = facts(
    queue("top", capability={"cpu": 10}, deserved={"cpu": 8}, guarantee=guaranteed(cpu=4)),
    queue("middle", parent="top"),
    queue(
        "left",
        parent="middle",
        capability={"cpu": 6},
        deserved={"cpu": 3},
        guarantee=guaranteed(cpu=3),
    ),
    queue("full", status={"allocated": {"pods": "7", "cpu": "1"}}),
    queue("busy", status={"allocated": {"pods": "7"}}),
    queue("first", parent="busy"),
    queue("bare"),
    queue("wide", deserved={"cpu": 3}, guarantee=guaranteed(cpu=3)),
    queue("d2", parent="d1"),
    queue("d1"),
    queue("d3", parent="d2"),
    queue("d4", parent="d3"),
    queue("d5", parent="d4"),
    queue("science", state="Open"),
)

ACCEPTED: dict[str, Object] = {
    "nothing": new_queue(),
    "all limits in order": new_queue(
        capability={"cpu": 3}, deserved={"cpu": "2"}, guarantee=guaranteed(cpu="1500m")
    ),
    "deserved beside capability": new_queue(capability={"cpu": 1}, deserved={"memory": "9Gi"}),
    "only deserved": new_queue(deserved={"cpu": 1}),
    "whole devices": new_queue(capability={"nvidia.com/gpu": "2000m", "pods": "1k"}),
    "guarantee beside capability": new_queue(
        capability={"cpu": 1}, deserved={"memory": 2}, guarantee=guaranteed(memory=1)
    ),
    "limits of nothing": new_queue(
        capability={"cpu": 0}, deserved={"cpu": 0}, guarantee=guaranteed(cpu=0)
    ),
    "a second one under a queue with pods": new_queue(parent="busy"),
    "under the root": new_queue(parent="root"),
    "under another": new_queue(parent="d1"),
    "as deep as allowed": new_queue(parent="d4"),
    "within the limits above": new_queue(
        parent="top", capability={"cpu": 10}, deserved={"cpu": 8}, guarantee=guaranteed(cpu=4)
    ),
    "a resource nobody above names": new_queue(parent="top", capability={"memory": "9Ti"}),
    "a hierarchy": with_path("root/a/b", "1/2/0.5"),
    "state Open": {**new_queue(), "status": {"state": "Open"}},
    "state Closed": {**new_queue(), "status": {"state": "Closed"}},
}


@pytest.mark.parametrize("given", ACCEPTED.values(), ids=ACCEPTED)
def test_is_accepted(given: Object) -> None:
    verdict = ask("/queues/validate", given, cluster=TREE)
    assert (verdict.allowed, verdict.message) == (True, "")


REFUSED: dict[str, tuple[Object, str]] = {
    "negative capability": (
        new_queue(capability={"cpu": "-1"}),
        'requestBody.spec.capability[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ),
    "negative guarantee": (
        new_queue(guarantee=guaranteed(cpu="-1")),
        'requestBody.spec.guarantee.resource[cpu]: Invalid value: "-1": must be greater than',
    ),
    "no quantity": (
        new_queue(deserved={"cpu": "x"}),
        'requestBody.spec.deserved[cpu]: Invalid value: "x": not a quantity',
    ),
    "null": (
        new_queue(deserved={"cpu": None}),
        "requestBody.spec.deserved[cpu]: Invalid value: null: not a quantity;",
    ),
    "part of a pod": (
        new_queue(capability={"pods": "1500m"}),
        'requestBody.spec.capability[pods]: Invalid value: "1500m": must be an integer;',
    ),
    "part of a device": (
        new_queue(deserved={"nvidia.com/gpu": "500m"}),
        'requestBody.spec.deserved[nvidia.com/gpu]: Invalid value: "500m": must be an integer;',
    ),
    "guarantee without deserved": (
        new_queue(guarantee=guaranteed(cpu=1)),
        "spec.deserved[cpu]: deserved[cpu]=0 must be >= guarantee[cpu]=1;",
    ),
    "guarantee above deserved": (
        new_queue(deserved={"cpu": 1}, guarantee=guaranteed(cpu=2)),
        "deserved[cpu]=1 must be >= guarantee[cpu]=2;",
    ),
    "guarantee of another resource": (
        new_queue(deserved={"memory": 1}, guarantee=guaranteed(cpu=2)),
        "deserved[cpu]=0 must be >= guarantee[cpu]=2;",
    ),
    "deserved above capability": (
        new_queue(capability={"cpu": 1}, deserved={"cpu": "1500m"}),
        "spec.deserved[cpu]: deserved[cpu]=1500m must be <= capability[cpu]=1;",
    ),
    "guarantee above capability": (
        new_queue(capability={"cpu": 1}, deserved={"cpu": 2}, guarantee=guaranteed(cpu=2)),
        "spec.guarantee[cpu]: guarantee[cpu]=2 must be <= capability[cpu]=1;",
    ),
    "a state that only a controller sets": (
        {**new_queue(), "status": {"state": "Closing"}},
        "status.state: queue state must be in [Open Closed];",
    ),
    "a hierarchy without weights": (
        with_path("root/a", ""),
        f"{HIERARCHY} must have the same length with {WEIGHTS};",
    ),
    "weights without a hierarchy": (
        with_path("", "1/2"),
        f"{HIERARCHY} must have the same length with {WEIGHTS};",
    ),
    "too few weights": (
        with_path("root/a/b", "1/2"),
        f"metadata.annotations[{HIERARCHY}]: {HIERARCHY} must have the same length with {WEIGHTS};",
    ),
    "a weight that is none": (
        with_path("root/a", "1/x"),
        f"metadata.annotations[{WEIGHTS}]: x in the 1/x is invalid number:",
    ),
    "a weight that only Python reads": (
        with_path("root/a", "1/1_0"),
        "1_0 in the 1/1_0 is invalid number: it cannot be read;",
    ),
    "a weight that is no number": (
        with_path("root/a", "1/nan"),
        "nan in the 1/nan is invalid number: it cannot be read;",
    ),
    "a weight beyond all numbers": (
        with_path("root/a", "1/1e999"),
        "1e999 in the 1/1e999 is invalid number: it cannot be read;",
    ),
    "a weight of zero": (with_path("root/a", "1/0"), "0 in the 1/0 must be larger than 0;"),
    "a negative weight": (with_path("root/a", "1/-2"), "-2 in the 1/-2 must be larger than 0;"),
    "itself as parent": (
        new_queue("q", parent="q"),
        "spec.parent: queue q cannot use itself as parent;",
    ),
    "too deep": (
        new_queue("q", parent="d5"),
        "spec.parent: queue q exceeds the maximum allowed depth of 5;",
    ),
    "no such parent": (
        new_queue("q", parent="nowhere"),
        "spec.parent: failed to get parent queue of queue q: queues.scheduling.volcano.sh "
        '"nowhere" not found;',
    ),
    "a parent with pods": (
        new_queue("q", parent="full"),
        "spec.parent: queue full cannot be the parent queue of queue q because it has allocated "
        "Pods: 7;",
    ),
    "capability above an ancestor's": (
        new_queue("q", parent="middle", capability={"cpu": "10500m"}),
        "spec.capability[cpu]: queue q capability[cpu]=10500m exceeds its ancestor's capability=10",
    ),
    "guarantees above the parent's": (
        new_queue("q", parent="top", deserved={"cpu": 5}, guarantee=guaranteed(cpu=5)),
        "spec.guarantee: parent queue top validation failed: sum of children's guarantee (cpu 5) "
        "exceeds parent's guarantee limit (cpu 4);",
    ),
    "deserved above the parent's": (
        new_queue("q", parent="top", deserved={"cpu": 9}),
        "spec.deserved: parent queue top validation failed: sum of children's deserved (cpu 9) "
        "exceeds parent's deserved limit (cpu 8);",
    ),
    "deserved below a parent that deserves nothing": (
        new_queue("q", parent="bare", deserved={"cpu": 1}),
        "spec.deserved: parent queue bare validation failed: sum of children's deserved (cpu 1) "
        "exceeds parent's deserved limit (none);",
    ),
    "guarantees of what the parent has none of": (
        new_queue("q", parent="top", deserved={"a/b": 1}, guarantee=guaranteed(**{"a/b": 1})),
        "spec.guarantee: parent queue top validation failed: sum of children's guarantee (a/b 1) "
        "exceeds parent's guarantee limit (cpu 4);",
    ),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_is_refused(given: Object, message: str) -> None:
    verdict = ask("/queues/validate", given, cluster=TREE)
    assert not verdict.allowed
    assert message in verdict.message


@pytest.mark.parametrize("parent", ["root", ""])
def test_the_root_may_be_a_parent_whatever_it_has(parent: str) -> None:
    full = ClusterFacts()
    root = queue(
        "root",
        capability={"cpu": 1},
        deserved={"cpu": 1},
        guarantee=guaranteed(cpu=1),
        status={"allocated": {"pods": "7"}},
    )
    full.put(kinds.QUEUES, root)
    given = new_queue(
        parent=parent, capability={"cpu": 3}, deserved={"cpu": 2}, guarantee=guaranteed(cpu=2)
    )
    assert ask("/queues/validate", given, cluster=full).message == ""


def test_a_queue_may_not_be_an_inner_node_of_another_s_path() -> None:
    other = with_path("root/a/b", "1/1/1", "other")
    message = ask("/queues/validate", with_path("root/a", "1/1"), cluster=facts(other)).message
    assert "root/a is not allowed to be in the sub path of root/a/b of queue other;" in message
    assert ask("/queues/validate", with_path("root/ab", "1/1"), cluster=facts(other)).allowed
    assert ask("/queues/validate", other, cluster=facts(other)).allowed


def changed(called: str, cluster: ClusterFacts = TREE, **spec: Any) -> Any:
    """The answer to a change of a queue that is there."""
    old = cluster.queue(called)
    assert old is not None
    new = {**old, "spec": {**old["spec"], **spec}}
    return ask("/queues/validate", new, old=old, cluster=cluster)


def test_a_queue_may_not_shrink_below_those_under_it() -> None:
    assert changed("top", capability={"cpu": 5}, deserved={"cpu": 5}).message.startswith(
        "spec.capability[cpu]: queue top capability[cpu]=5 is smaller than its descendants' max "
        "capability=6;"
    )
    # Limits that nobody meets below a nearer limit are that one's business.
    nearer = facts(
        queue("a", capability={"cpu": 9}),
        queue("b", parent="a", capability={"cpu": 4}),
        queue("c", parent="b", capability={"cpu": 3}),
    )
    assert changed("a", nearer, capability={"cpu": 4}).allowed


def test_a_queue_may_not_have_less_than_its_children_are_guaranteed() -> None:
    message = changed("middle", deserved={"cpu": 3}, guarantee=guaranteed(cpu=2)).message
    assert message == (
        "spec.guarantee: queue middle validation failed: sum of children's guarantee (cpu 3) "
        "exceeds parent's guarantee limit (cpu 2);"
    )


def test_what_does_not_change_is_not_judged_against_the_tree() -> None:
    over = facts(
        queue("p", guarantee=guaranteed(cpu=1), deserved={"cpu": 1}),
        queue("a", parent="p", guarantee=guaranteed(cpu=1), deserved={"cpu": 1}),
        queue("b", parent="p", guarantee=guaranteed(cpu=1), deserved={"cpu": 1}),
    )
    assert changed("a", over, weight=5).allowed
    assert not changed("a", over, capability={"cpu": 3}).allowed


def test_a_parent_is_judged_when_it_changes() -> None:
    assert changed("left", parent="wide").allowed
    assert "cannot be the parent queue" in changed("left", parent="full").message
    assert "below queue top: they form a cycle" in changed("top", parent="left").message
    assert changed("middle", parent="", deserved={"cpu": 3}, guarantee=guaranteed(cpu=3)).allowed


def test_a_closing_queue_may_be_changed() -> None:
    closing = facts(queue("q", state="Closing"))
    assert changed("q", closing, weight=2).allowed


def test_the_root_s_resources_are_protected() -> None:
    verdict = changed("root", capability={"cpu": 1})
    assert verdict.message == (
        "spec: root queue's resource attributes (capability, deserved, guarantee) cannot be "
        "modified;"
    )
    assert changed("root", weight=2).allowed
    old = TREE.queue("root")
    assert old is not None
    new = {**old, "spec": {"capability": {"cpu": 1}}}
    options = Options(protect_root=False)
    assert ask("/queues/validate", new, old=old, cluster=TREE, options=options).allowed


def test_shares_of_the_root_that_are_only_written_otherwise_do_not_change() -> None:
    known = facts(queue("root", capability={"cpu": "1000m"}))
    assert changed("root", known, capability={"cpu": 1}, deserved={}, guarantee={}).allowed
    assert not changed("root", known, capability={"cpu": "1001m"}).allowed
    assert not changed("root", known, guarantee=guaranteed(cpu=1)).allowed


def test_the_depth_is_an_option() -> None:
    options = Options(max_queue_depth=2)
    for parent, allowed in (("root", True), ("d1", True), ("d2", False)):
        given = new_queue("q", parent=parent)
        verdict = ask("/queues/validate", given, cluster=TREE, options=options)
        assert verdict.allowed == allowed


def deleted(called: str, *, options: Options | None = None, cluster: Any = TREE) -> Any:
    old = cluster.queue(called)
    return ask(
        "/queues/validate", {}, old=old, operation="DELETE", options=options, cluster=cluster
    )


@pytest.mark.parametrize("called", ["default", "root"])
def test_two_queues_stay(called: str) -> None:
    assert deleted(called).message == f"metadata.name: `{called}` queue can not be deleted;"


def test_a_queue_with_queues_below_stays() -> None:
    two = facts(queue("p"), queue("b", parent="p"), queue("a", parent="p"))
    assert deleted("p", cluster=two).message == (
        "metadata.name: queue p can not be deleted because it has 2 child queues: a, b;"
    )


@pytest.mark.parametrize("state", ["Open", "Closed", "Closing", "Unknown", ""])
def test_a_queue_in_any_state_may_be_deleted(state: str) -> None:
    assert deleted("q", cluster=facts(queue("q", state=state))).allowed


def test_a_queue_with_pods_stays_if_that_is_asked_for() -> None:
    assert deleted("full").allowed
    assert deleted("full", options=Options(check_allocated=True)).message == (
        "metadata.name: queue full cannot be deleted because it has allocated Pods: 7;"
    )


def test_who_deletes_a_queue_is_told_who_still_names_it() -> None:
    cluster = facts(queue("q"), groups=(group("a", queue="q"), group("b", queue="q")))
    assert deleted("q", cluster=cluster).warnings == (
        "metadata.name: PodGroups that still name queue q: 2; their running pods go on, and no "
        "further pod of them is placed until there is a queue of that name",
    )


def test_shares_that_can_never_be_had_are_warned_about() -> None:
    cluster = facts(
        queue("top", capability={"cpu": 4}),
        queue("p", parent="top", deserved={"cpu": 5}),
        nodes=(node("a", cpu=8), node("b", cpu=8)),
    )
    given = new_queue("q", parent="p", deserved={"cpu": 5})
    assert (
        ask("/queues/validate", given, cluster=facts(queue("p", deserved={"cpu": 5}))).warnings
        == ()
    )
    deserved = ask("/queues/validate", given, cluster=cluster)
    assert deserved.allowed
    assert deserved.warnings == (
        "spec.deserved: cpu 5 is more than queue top above it may ever use",
    )
    beyond = new_queue("q", deserved={"cpu": 17}, guarantee=guaranteed(cpu=17))
    assert ask("/queues/validate", beyond, cluster=cluster).warnings == (
        "spec.guarantee: all queues together are guaranteed cpu 17, more than the nodes have",
    )


def test_resources_that_no_node_has_are_warned_about_with_the_nearest_name() -> None:
    cluster = facts(nodes=(node("a", **{"cpu": 8, "memory": "8Gi", "nvidia.com/gpu": 4}),))
    given = new_queue(
        "q",
        capability={"cpu": 4, "memroy": "1Gi", "nvidia.com/gpus": 2},
        deserved={"example.com/fpga": 1},
        guarantee=guaranteed(gpu=0),
    )
    verdict = ask("/queues/validate", given, cluster=cluster)
    assert verdict.allowed
    until = "so it counts for nothing until one has"
    assert verdict.warnings == (
        f"spec.capability[memroy]: no node has memroy, {until}; is memory meant?",
        f"spec.capability[nvidia.com/gpus]: no node has nvidia.com/gpus, {until}; "
        "is nvidia.com/gpu meant?",
        f"spec.deserved[example.com/fpga]: no node has example.com/fpga, {until}",
        f"spec.guarantee.resource[gpu]: no node has gpu, {until}; is nvidia.com/gpu meant?",
    )
    assert not ask("/queues/validate", given, cluster=facts()).warnings


def test_a_change_of_something_else_is_not_warned_about_again() -> None:
    cluster = facts(nodes=(node("a", cpu=8),))
    before = queue("q", capability={"memroy": "1Gi"})
    changed = {**before, "spec": {**before["spec"], "weight": 3}}
    verdict = ask("/queues/validate", changed, old=before, cluster=cluster)
    assert (verdict.allowed, verdict.warnings) == (True, ())


def test_a_queue_is_not_moved_so_deep_that_queues_below_it_are_too_deep() -> None:
    known = facts(queue("a"), queue("b", parent="a"), queue("q"), queue("c", parent="q"))
    options = Options(max_queue_depth=3)
    moved = queue("q", parent="b")
    verdict = ask("/queues/validate", moved, cluster=known, options=options)
    assert verdict.message == (
        "spec.parent: queues below queue q exceed the maximum allowed depth of 3;"
    )
    deeper = Options(max_queue_depth=4)
    assert ask("/queues/validate", moved, cluster=known, options=deeper).allowed


def test_a_chain_of_thousands_of_queues_is_judged_in_no_time() -> None:
    parents = ["", *(f"q{number}" for number in range(5_000))]
    chain = [queue(f"q{i}", parent=parents[i], capability={"cpu": 1}) for i in range(5_000)]
    known = facts(*chain)
    for name in ("q0", "q4999"):
        given = queue(name, parent="q2500", capability={"cpu": 2})
        assert not ask("/queues/validate", given, cluster=known).allowed


@pytest.mark.parametrize(
    ("path", "weights"), [("root" + "/a" * 65, "1" + "/1" * 65), ("root/a", "1/" + "x" * 5_000)]
)
def test_a_way_of_more_levels_than_count_is_refused_once(path: str, weights: str) -> None:
    message = ask("/queues/validate", with_path(path, weights)).message
    assert message.startswith(
        "metadata.annotations[volcano.sh/hierarchy]: names more than 64 levels below the root"
    )
    assert len(message) < 300
