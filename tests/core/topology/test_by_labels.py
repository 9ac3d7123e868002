"""Domains by labels of nodes."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.hypernode.by_labels import hyper_nodes
from app.controllers.hypernode.making import Known
from app.core.topology.by_labels import label_domains
from app.model.domains import Domains
from app.model.ids import CLUSTER
from app.model.node import Node
from app.wire.controller_conf import Level, Topology
from app.wire.objects.hyper_nodes import decode_hyper_node
from tests.builders import make_node
from tests.scale import examples
from tests.topology import make_domains

LABELS = ("zone", "rack")


def nodes_of(*values: str) -> tuple[Node, ...]:
    """Nodes ``n0``, ``n1``, … each with ``zone/rack``; an empty part is no label."""
    return tuple(
        make_node(
            f"n{number}",
            labels={k: v for k, v in zip(LABELS, each.split("/"), strict=True) if v},
        )
        for number, each in enumerate(values)
    )


def as_sets(found: Domains) -> dict[str, tuple[int, set[int], str]]:
    """Each domain's tier, rows and parent."""
    names = (*found.names, "")
    return {
        name: (
            int(found.tiers[at]),
            set(found.rows_of(at).tolist()),
            names[int(found.parents[at])],
        )
        for at, name in enumerate(found.names)
    }


def test_nodes_with_the_same_values_are_a_domain() -> None:
    found = label_domains(nodes_of("a/1", "a/2", "a/1", "b/1"), LABELS)
    assert as_sets(found) == {
        "a/1": (1, {0, 2}, "a"),
        "a/2": (1, {1}, "a"),
        "b/1": (1, {3}, "b"),
        "a": (2, {0, 1, 2}, CLUSTER),
        "b": (2, {3}, CLUSTER),
        CLUSTER: (3, {0, 1, 2, 3}, ""),
    }
    assert found.names == ("a/1", "a/2", "b/1", "a", "b", CLUSTER)
    assert found.tier_of_name == {"zone": 2, "rack": 1}


def test_a_node_without_a_label_is_in_no_domain_of_that_tier() -> None:
    found = label_domains(nodes_of("a/", "/1", "/", "a/1"), LABELS)
    assert as_sets(found) == {
        "/1": (1, {1}, CLUSTER),
        "a/1": (1, {3}, "a"),
        "a": (2, {0, 3}, CLUSTER),
        CLUSTER: (3, {0, 1, 2, 3}, ""),
    }


@pytest.mark.parametrize("nodes", [(), nodes_of("/", "/")], ids=["no nodes", "no labels"])
def test_without_nodes_that_have_labels_there_is_the_whole_cluster(nodes: tuple[Node, ...]) -> None:
    assert set(as_sets(label_domains(nodes, LABELS))) == {CLUSTER}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("123")), max_size=12))
@examples(300)
def test_the_domains_are_those_of_hyper_nodes_that_the_labels_make(
    values: list[tuple[str, str]],
) -> None:
    nodes = nodes_of(*("/".join(each) for each in values))
    objects = hyper_nodes(
        [Topology("t", tuple(Level(label, label) for label in LABELS))],
        [{"metadata": {"name": node.name, "labels": dict(node.labels)}} for node in nodes],
        Known({}),
    )
    made = [decode_hyper_node(json.dumps(each).encode()) for each in objects.values()]
    ordered = tuple(sorted(nodes, key=lambda node: node.name))
    assert _shape(label_domains(ordered, LABELS)) == _shape(make_domains(ordered, made))


def _shape(found: Domains) -> Counter[tuple[int, frozenset[int], frozenset[int]]]:
    """Tiers, rows and those of the parents; the names differ."""
    rows = [frozenset(found.rows_of(at).tolist()) for at in range(len(found))]
    highest = int(found.tiers[-1]) if len(found) > 1 else 0
    return Counter(
        (
            min(int(found.tiers[at]), highest),
            rows[at],
            rows[int(found.parents[at])] if at < len(found) - 1 else frozenset(),
        )
        for at in range(len(found))
    )
