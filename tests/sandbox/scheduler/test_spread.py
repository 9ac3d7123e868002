"""Topology spread: which nodes count, and where one more pod is too many."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.scheduler import spread
from app.sandbox.scheduler.cluster import NodeState, PlacedPod
from app.sandbox.scheduler.requirements import requirements_of
from app.wire.documents import Document

TAINT = {"key": "team", "effect": "NoSchedule"}


def rule(**fields: Any) -> Document:
    return {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **fields,
    }


def web(name: str, *rules: Document, **spec: Any) -> Document:
    return {
        "metadata": {"name": name, "uid": name, "namespace": "n", "labels": {"app": "web"}},
        "spec": {"containers": [], "topologySpreadConstraints": list(rules), **spec},
    }


def node(name: str, pods: int, *, taint: bool = False, **labels: str) -> NodeState:
    """A node with so many pods that count, in the zone of its name unless told."""
    document = {
        "metadata": {"name": name, "labels": {"zone": name, **labels}},
        "spec": {"taints": [TAINT] if taint else []},
    }
    state = NodeState(document, allocatable={})
    for number in range(pods):
        placed = web(f"{name}-{number}")
        state.add(PlacedPod(placed, requirements_of(placed)))
    return state


def takes(pod: Document, *nodes: NodeState) -> list[str]:
    return [at.name for at in nodes if not spread.too_skewed(pod, at, list(nodes))]


def test_the_fullest_domain_takes_no_more() -> None:
    nodes = node("a", 2), node("b", 1), node("c", 1)
    assert takes(web("p", rule()), *nodes) == ["b", "c"]
    assert takes(web("p", rule(maxSkew=2)), *nodes) == ["a", "b", "c"]


def test_too_few_domains_count_as_an_empty_one() -> None:
    assert takes(web("p", rule(minDomains=2)), node("a", 0)) == ["a"]
    assert takes(web("p", rule(minDomains=2)), node("a", 1)) == []
    assert takes(web("p", rule(minDomains=1)), node("a", 1)) == ["a"]


@pytest.mark.parametrize(("policy", "taken"), [({}, ["a"]), ({"nodeAffinityPolicy": "Ignore"}, [])])
def test_a_pinned_pod_sees_its_own_node_unless_affinity_is_ignored(
    policy: Document, taken: list[str]
) -> None:
    pod = web("p", rule(**policy), nodeSelector={"host": "a"})
    nodes = [node("a", 1, host="a"), node("b", 0, host="b")]
    assert [at.name for at in nodes[:1] if not spread.too_skewed(pod, at, nodes)] == taken


@pytest.mark.parametrize(("policy", "taken"), [({}, []), ({"nodeTaintsPolicy": "Honor"}, ["a"])])
def test_a_node_that_nobody_may_use_counts_unless_taints_are_honoured(
    policy: Document, taken: list[str]
) -> None:
    nodes = [node("a", 1), node("closed", 0, taint=True)]
    pod = web("p", rule(**policy))
    assert [at.name for at in nodes[:1] if not spread.too_skewed(pod, at, nodes)] == taken


def test_a_node_without_the_label_of_another_rule_does_not_count() -> None:
    nodes = [node("a", 1, rack="1"), node("b", 0)]
    pod = web("p", rule(), rule(topologyKey="rack"))
    assert not spread.too_skewed(pod, nodes[0], nodes)
    assert spread.lacks_key(pod, nodes[1])
