"""What lies below HyperNodes, however it is named and in whatever order it comes."""

import random
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.hypernode.controller import judged
from app.core.topology.tree import Tree
from app.wire.objects.hyper_nodes import members_of
from tests.scale import examples


def exact(kind: str, name: str) -> Mapping[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def regex(kind: str, pattern: str) -> Mapping[str, Any]:
    return {"type": kind, "selector": {"regexMatch": {"pattern": pattern}}}


def labelled(kind: str, **selector: Any) -> Mapping[str, Any]:
    return {"type": kind, "selector": {"labelMatch": selector}}


def tree(**hyper_nodes: list[Mapping[str, Any]]) -> Tree:
    made = Tree()
    for number in range(4):
        made.put_node(f"n{number}", {"rack": f"r{number // 2}"})
    for name, members in hyper_nodes.items():
        made.put(name, {"tier": "1"}, members_of({"members": members}))
    return made


@pytest.mark.parametrize(
    ("members", "nodes"),
    [
        pytest.param([exact("Node", "n1")], {"n1"}, id="by name"),
        pytest.param([regex("Node", "^n[02]$")], {"n0", "n2"}, id="by pattern"),
        pytest.param([regex("Node", "1")], {"n1"}, id="a pattern matches anywhere"),
        pytest.param([labelled("Node", matchLabels={"rack": "r1"})], {"n2", "n3"}, id="by labels"),
        pytest.param(
            [
                labelled(
                    "Node",
                    matchExpressions=[{"key": "rack", "operator": "NotIn", "values": ["r1"]}],
                )
            ],
            {"n0", "n1"},
            id="by expressions",
        ),
        pytest.param(
            [exact("Node", "n1"), regex("Node", "n")], {"n0", "n1", "n2", "n3"}, id="each once"
        ),
        pytest.param([], set(), id="of nothing"),
    ],
)
def test_members_are_found(members: list[Mapping[str, Any]], nodes: set[str]) -> None:
    assert tree(h=members).below("h").nodes == nodes


def test_nodes_are_counted_through_all_tiers() -> None:
    made = tree(
        s0=[regex("Node", "n[01]")],
        s1=[exact("Node", "n2")],
        top=[labelled("HyperNode", matchLabels={"tier": "1"}), exact("Node", "n3")],
    )
    tier_1 = [labelled("HyperNode", matchLabels={"tier": "1"})]
    made.put("top", {"tier": "2"}, members_of({"members": tier_1}))

    assert made.below("top").nodes == {"n0", "n1", "n2"}
    assert not made.below("top").in_cycle


@pytest.mark.parametrize(
    ("members", "status", "reason", "message"),
    [
        ([exact("Node", "n1")], "True", "Resolved", "every member was found"),
        ([], "False", "Empty", "it has no nodes"),
        ([regex("Node", "x")], "False", "Empty", "it has no nodes"),
        ([exact("Node", "x")], "False", "NoSuchMember", "there is no Node x"),
        ([exact("HyperNode", "x")], "False", "NoSuchMember", "there is no HyperNode x"),
        (
            [exact("Node", f"x{n}") for n in range(5)],
            "False",
            "NoSuchMember",
            "there is no Node x0, Node x1, Node x2, Node x3, Node x4",
        ),
        (
            [exact("Node", f"x{n}") for n in range(6)],
            "False",
            "NoSuchMember",
            "there is no Node x0, Node x1, Node x2, Node x3, Node x4 and 1 more",
        ),
        (
            [exact("Node", f"x{n}") for n in range(7)],
            "False",
            "NoSuchMember",
            "there is no Node x0, Node x1, Node x2, Node x3, Node x4 and 2 more",
        ),
        ([exact("HyperNode", "h")], "False", "Cycle", "it is a member of itself"),
        ([{"type": "Node"}], "False", "InvalidSelector", "it has no selector"),
        ([labelled("Node")], "False", "InvalidSelector", "labelMatch has no requirement"),
    ],
)
def test_a_condition_tells_what_is_wrong(
    members: list[Mapping[str, Any]], status: str, reason: str, message: str
) -> None:
    assert judged(tree(h=members).below("h")) == (status, reason, message)


@pytest.mark.parametrize("pattern", ["(", "", "(?=a)b", "[a-"])
def test_a_pattern_that_is_none_is_told_of(pattern: str) -> None:
    _, reason, _ = judged(tree(h=[regex("Node", pattern)]).below("h"))

    assert reason == ("Resolved" if pattern == "" else "InvalidSelector")


def test_a_cycle_far_below_is_not_the_own() -> None:
    made = tree(
        a=[exact("HyperNode", "b")],
        b=[exact("HyperNode", "c"), exact("Node", "n0")],
        c=[exact("HyperNode", "b"), exact("Node", "n1")],
    )

    assert made.below("a").nodes == {"n0", "n1"}
    assert [made.below(name).in_cycle for name in "abc"] == [False, True, True]


_selectors = st.one_of(
    st.sampled_from("01234").map(lambda n: exact("Node", f"n{n}")),
    st.sampled_from(["n", "[01]", "4$"]).map(lambda p: regex("Node", p)),
    st.sampled_from("xy").map(lambda v: labelled("Node", matchLabels={"l": v})),
    st.tuples(st.sampled_from(["In", "NotIn"]), st.lists(st.sampled_from("xyz"), min_size=1)).map(
        lambda given: labelled(
            "Node", matchExpressions=[{"key": "l", "operator": given[0], "values": given[1]}]
        )
    ),
    st.sampled_from("abc").map(lambda n: exact("HyperNode", n)),
)
_events = st.one_of(
    st.tuples(st.just("node"), st.sampled_from("01234"), st.none() | st.sampled_from("xyz")),
    st.tuples(
        st.just("hyper"), st.sampled_from("abc"), st.none() | st.lists(_selectors, max_size=3)
    ),
)


def _naive(
    name: str, nodes: Mapping[str, str], hyper: Mapping[str, Any], seen: frozenset[str]
) -> set[str]:
    found: set[str] = set()
    for member in hyper.get(name, ()):
        selector = member["selector"]
        if member["type"] == "HyperNode":
            child = selector["exactMatch"]["name"]
            if child in hyper and child not in seen:
                found |= _naive(child, nodes, hyper, seen | {child})
        elif "exactMatch" in selector:
            found |= {selector["exactMatch"]["name"]} & nodes.keys()
        elif "regexMatch" in selector:
            found |= {n for n in nodes if re.search(selector["regexMatch"]["pattern"], n)}
        elif "matchLabels" in selector["labelMatch"]:
            value = selector["labelMatch"]["matchLabels"]["l"]
            found |= {n for n, label in nodes.items() if label == value}
        else:
            (wanted,) = selector["labelMatch"]["matchExpressions"]
            is_in = wanted["operator"] == "In"
            found |= {n for n, label in nodes.items() if (label in wanted["values"]) is is_in}
    return found


@examples(80)
@given(st.lists(_events, max_size=25), st.randoms(use_true_random=False))
def test_following_changes_is_the_same_as_looking_anew(
    events: list[Any], chance: random.Random
) -> None:
    made, nodes, hyper = Tree(), dict[str, str](), dict[str, Any]()
    for kind, name, what in events:
        if kind == "node":
            nodes.pop(f"n{name}", None)
            if what is None:
                made.drop_node(f"n{name}")
            else:
                nodes[f"n{name}"] = what
                made.put_node(f"n{name}", {"l": what})
        elif what is None:
            hyper.pop(name, None)
            made.drop(name)
        else:
            hyper[name] = what
            made.put(name, {}, members_of({"members": what}))
        if chance.random() < 0.5:
            made.below(chance.choice("abc"))
    for name in hyper:
        assert made.below(name).nodes == _naive(name, nodes, hyper, frozenset({name}))
