"""nodegroup: which node groups the pods of a queue may go to, and which are better."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.policy import NodesNow
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.exchange import ANY_EQUAL
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.node import Node
from app.model.reason import Cause
from app.model.snapshot import MemberPlace
from app.model.workload import NODE_GROUP, NodeGroupRules, Queue
from tests.builders import GIB, make_amounts, make_gang, make_node, make_queue
from tests.builders import make_snapshot as snapshot_of
from tests.core.actions.rigs import Outcome, cycle, gang_of, policies, vector
from tests.core.plugins.sessions import open_plugin
from tests.scale import examples

GROUPS = ("", "a", "b", "c")
LABEL = "node group label not found"
UNSET = "node group affinity not specified"
OTHER = "node does not satisfy the node group affinity"
LIMIT = "node group resource limit exceeded"


def in_groups(*groups: str, cpu: int = 4) -> tuple[Node, ...]:
    """A node in each of these groups, named after it; empty: without the label."""
    return tuple(
        make_node(
            f"n{at}-{group or 'none'}",
            cpu=cpu * 1000,
            memory=1000 * GIB,
            labels={NODE_GROUP: group} if group else {},
        )
        for at, group in enumerate(groups)
    )


def queue(name: str = "q", rules: NodeGroupRules | None = None, **fields: Any) -> Queue:
    return make_queue(name, node_groups=rules, **fields)


def plan(*gangs: Gang, nodes: tuple[Node, ...], queues: tuple[Queue, ...], **conf: Any) -> Outcome:
    switches = {"enableHierarchy": conf.pop("inherits", False)}
    snapshot = conf.pop("snapshot", {})
    plugin = PluginConf("nodegroup", switches=switches, arguments=conf)
    by = policies((("priority", "gang"), ("predicates", plugin)))
    return cycle(*gangs, nodes=nodes, queues=queues, by=by, **snapshot)


def in_queue(name: str = "g", count: int = 1, *, of: str = "q", **fields: Any) -> Gang:
    return gang_of(name, count, queue=QueueName(of), **fields)


def allowed_by(rules: NodeGroupRules | None, *, strict: bool = True) -> list[str]:
    """The groups of :data:`GROUPS` that a pod of the queue may go to."""
    found = []
    for group in GROUPS:
        outcome = plan(
            in_queue(), nodes=in_groups(group), queues=(queue(rules=rules),), strict=strict
        )
        if outcome.nodes("g"):
            found.append(group)
    return found


@pytest.mark.parametrize(
    ("rules", "strict", "allowed"),
    [
        (None, True, []),
        (None, False, [""]),
        (NodeGroupRules(), True, []),
        (NodeGroupRules(), False, [""]),
        (NodeGroupRules(required=("a",)), True, ["a"]),
        (NodeGroupRules(required=("a",)), False, ["a"]),
        (NodeGroupRules(preferred=("a", "b")), True, ["a", "b"]),
        (NodeGroupRules(required=("a",), preferred=("b",)), True, ["a", "b"]),
        (NodeGroupRules(banned=("a",)), True, []),
        (NodeGroupRules(required=("a", "b"), banned=("a",)), True, ["b"]),
        (NodeGroupRules(required=("a",), avoided=("b",)), True, ["a", "b"]),
        (NodeGroupRules(required=("a",), banned=("a",), avoided=("a",)), True, ["a"]),
    ],
    ids=str,
)
def test_the_groups_a_queue_may_use(
    rules: NodeGroupRules | None, strict: bool, allowed: list[str]
) -> None:
    assert allowed_by(rules, strict=strict) == allowed


@pytest.mark.parametrize(
    ("rules", "ordered", "scores"),
    [
        (None, False, [0, 0, 0, 0]),
        (NodeGroupRules(required=("a",)), False, [0, 100, 0, 0]),
        (NodeGroupRules(preferred=("a", "b")), False, [0, 50, 50, 0]),
        (NodeGroupRules(preferred=("b", "a")), True, [0, 25, 50, 0]),
        (NodeGroupRules(required=("a",), preferred=("a",)), False, [0, 150, 0, 0]),
        (NodeGroupRules(required=("a",), avoided=("a", "b")), False, [0, -1, -1, 0]),
    ],
    ids=str,
)
def test_the_score_of_each_group(
    rules: NodeGroupRules | None, ordered: bool, scores: list[float]
) -> None:
    snapshot = snapshot_of(nodes=in_groups(*GROUPS), queues=(queue(rules=rules),))
    hooks, _ = open_plugin("nodegroup", snapshot, arguments={"enablePreferredOrder": ordered})
    assert hooks.node_score is not None
    gang = in_queue()
    nodes = NodesNow(np.arange(4), snapshot.table.allocatable.T)
    assert hooks.node_score.score(gang, gang.waiting[0], nodes).tolist() == scores


def test_a_required_group_is_better_than_a_preferred_one() -> None:
    rules = NodeGroupRules(required=("b",), preferred=("a",))
    outcome = plan(in_queue(), nodes=in_groups("a", "b"), queues=(queue(rules=rules),))
    assert outcome.nodes("g") == {"g-0": "n1-b"}


@pytest.mark.parametrize(
    ("inherits", "own", "node"),
    [
        (True, None, "n1-b"),
        (True, NodeGroupRules(required=("a",)), "n0-a"),
        (True, NodeGroupRules(), None),
        (False, None, None),
    ],
    ids=str,
)
def test_a_queue_without_affinity_has_that_of_the_nearest_above(
    inherits: bool, own: NodeGroupRules | None, node: str | None
) -> None:
    queues = (
        queue("top", NodeGroupRules(required=("a",))),
        queue("middle", NodeGroupRules(required=("b",)), parent=QueueName("top")),
        queue("q", own, parent=QueueName("middle")),
    )
    outcome = plan(in_queue(), nodes=in_groups("a", "b"), queues=queues, inherits=inherits)
    assert outcome.nodes("g").get("g-0") == node


def test_a_refusal_counts_nodes_and_names_groups() -> None:
    rules = NodeGroupRules(required=("a", "b"), banned=("b",))
    outcome = plan(
        in_queue(count=2), nodes=in_groups("", "b", "c", "c"), queues=(queue(rules=rules),)
    )
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.NODE_GROUP
    assert {count.text: count.nodes for count in refusal.nodes} == {LABEL: 1, OTHER: 3}
    assert outcome.text("g").endswith("queue q may use node groups a, nodes are in b, c")


def test_a_queue_without_affinity_is_told_of_the_groups_there_are() -> None:
    outcome = plan(in_queue(), nodes=in_groups("", "a"), queues=(queue(),))
    assert outcome.text("g") == (
        "0/2 nodes are available: 1 node group affinity not specified, "
        "1 node group label not found; queue q names no node group, nodes are in a"
    )


def test_a_full_group_is_a_matter_of_room() -> None:
    rules = NodeGroupRules(required=("a",))
    gang = in_queue(count=1, cpu=3)
    outcome = plan(
        gang, in_queue("h", cpu=3), nodes=in_groups("a", "b"), queues=(queue(rules=rules),)
    )
    assert outcome.refusal("h").cause is Cause.NOT_ENOUGH_RESOURCES


# --- limits --------------------------------------------------------------------------------------


def limited(limits: Mapping[str, Any] | None) -> tuple[Queue, ...]:
    return (queue(rules=NodeGroupRules(required=("a", "b")), node_group_limits=limits),)


def test_limits_count_what_the_cycle_gives() -> None:
    limits = {"a": make_amounts(cpu=2000)}
    outcome = plan(in_queue(count=5), nodes=in_groups("a", "a", "b"), queues=limited(limits))
    groups = [node[-1] for node in outcome.nodes("g").values()]
    assert sorted(groups) == ["a", "a", "b", "b", "b"]


def test_limits_count_what_other_groups_of_the_queue_hold() -> None:
    nodes = in_groups("a")
    other = make_gang("other", queue=QueueName("q"), allocated=vector(cpu=1))
    places = {other.key: (MemberPlace(nodes[0].name, "", vector(cpu=1)),)}
    limits = {"a": make_amounts(cpu=2000)}
    fits = plan(in_queue(), other, nodes=nodes, queues=limited(limits), snapshot={"places": places})
    assert fits.nodes("g")
    outcome = plan(
        in_queue(count=2), other, nodes=nodes, queues=limited(limits), snapshot={"places": places}
    )
    assert outcome.refusal("g").cause is Cause.NODE_GROUP
    assert outcome.text("g") == (
        "0/1 nodes are available: 1 node group resource limit exceeded; "
        "queue q in node group a: cpu 2 held and 1 asked of 2"
    )


def test_a_gang_that_does_not_fit_whole_leaves_the_limit_to_others() -> None:
    limits = {"a": make_amounts(cpu=2000)}
    big, small = in_queue("big", count=3), in_queue("small", count=2, created=1.0)
    outcome = plan(big, small, nodes=in_groups("a", "a"), queues=limited(limits))
    assert not outcome.nodes("big")
    assert len(outcome.nodes("small")) == 2


def test_a_limit_of_one_resource_leaves_the_others_alone() -> None:
    limits = {"a": make_amounts(memory=GIB), "c": make_amounts(cpu=1)}
    outcome = plan(in_queue(count=4), nodes=in_groups("a"), queues=limited(limits))
    assert len(outcome.nodes("g")) == 4


def test_a_malformed_annotation_keeps_all_pods_of_the_queue_waiting() -> None:
    outcome = plan(in_queue(), nodes=in_groups("a"), queues=limited(None))
    assert outcome.refusal("g").cause is Cause.NODE_GROUP
    assert "1 node group resource limit annotation invalid" in outcome.text("g")


# --- exchange ------------------------------------------------------------------------------------


def test_places_are_exchanged_inside_their_group_only() -> None:
    rules = NodeGroupRules(required=("a", "b"))
    gang = in_queue(count=3, cpu=3)
    outcome = plan(gang, nodes=in_groups("a", "a", "b"), queues=(queue(rules=rules),))
    classes = {p.node[-1]: p.exchange for d in outcome.decisions("g") for p in d.placements}
    assert classes["a"] == ANY_EQUAL.within("node group a")
    assert not classes["a"].allows(classes["b"])
    assert not classes["b"].is_open


def test_the_plugin_is_known_to_configurations() -> None:
    plugin = PluginConf("nodegroup", arguments={"strict": "false", "surplus": 1})
    built = build(SchedulerConf(actions=("allocate",), tiers=((plugin,),)))
    assert built.conf.warnings == ("tier 1, plugin 1 (nodegroup): argument surplus has no effect",)


# --- against the plain formula -------------------------------------------------------------------

names = st.lists(st.sampled_from(GROUPS[1:]), max_size=3, unique=True).map(tuple)
rule_sets = st.builds(NodeGroupRules, names, names, names, names)


def plainly(rules: NodeGroupRules, group: str, *, strict: bool) -> bool:
    """volcano.md §3.6, word by word."""
    is_set = any((rules.required, rules.preferred, rules.banned, rules.avoided))
    if not group:
        return not strict and not is_set
    if not is_set:
        return False
    flag = group in rules.required or group in rules.preferred
    if group in rules.banned:
        flag = False
    return flag or group in rules.avoided


@examples(200)
@given(rule_sets, st.booleans())
def test_rules_are_those_of_volcano(rules: NodeGroupRules, strict: bool) -> None:
    expected = [group for group in GROUPS if plainly(rules, group, strict=strict)]
    assert allowed_by(rules, strict=strict) == expected
