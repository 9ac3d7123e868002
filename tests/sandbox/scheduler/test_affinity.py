"""Terms about other pods: which namespaces they look into."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.scheduler import affinity
from app.sandbox.scheduler.cluster import Cluster
from app.wire.documents import Document
from tests.sandbox.documents import node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES = "n1", "n2"
TEAM_A = {"matchLabels": {"team": "a"}}
TEAM_B = {"matchLabels": {"team": "b"}}


def about(kind: str, **fields: Any) -> Document:
    selector = {"matchLabels": {"app": "x"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, **fields}
    return {kind: {REQUIRED: [term]}}


def named(name: str, namespace: str, **spec: Any) -> Document:
    about_it = {"namespace": namespace, "uid": name, "labels": {"app": name}}
    return pod(name, metadata={"name": name, **about_it}, **spec)


def cluster_with(placed: Document) -> Cluster:
    """Two nodes, and ``placed`` on the first of them."""
    cluster = Cluster()
    for name, labels in (("home", {"team": "a"}), ("away", {"team": "b"})):
        cluster.set_namespace({"metadata": {"name": name, "labels": labels}})
    for name in NODES:
        cluster.set_node(node(name))
    cluster.assume(placed, NODES[0])
    return cluster


# Of a pod in the namespace `home` about one in `away`.
FOUND: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"namespaces": ["away"]}, True),
    ({"namespaceSelector": {}}, True),
    ({"namespaceSelector": TEAM_B}, True),
    ({"namespaceSelector": TEAM_A}, False),
    ({"namespaces": ["home"], "namespaceSelector": TEAM_B}, True),
    ({"namespaces": ["home"], "namespaceSelector": TEAM_A}, False),
    ({"namespaces": ["home"], "namespaceSelector": {}}, True),
]


@pytest.mark.parametrize(("fields", "found"), FOUND)
def test_a_term_finds_pods_of_the_namespaces_it_names_and_selects(
    fields: dict[str, Any], found: bool
) -> None:
    cluster = cluster_with(named("x", "away"))
    around = cluster.neighbourhood()
    shy = named("p", "home", affinity=about("podAntiAffinity", **fields))
    near = named("p", "home", affinity=about("podAffinity", **fields))
    repelled = [affinity.anti_affinity_broken(shy, cluster.nodes[n], around) for n in NODES]
    unmet = [affinity.affinity_unmet(near, cluster.nodes[n], around) for n in NODES]
    assert repelled == [found, False]
    assert unmet == [not found, True]


@pytest.mark.parametrize(("fields", "found"), FOUND)
def test_so_does_a_term_of_a_pod_that_is_there_already(fields: dict[str, Any], found: bool) -> None:
    shy = named("p", "home", affinity=about("podAntiAffinity", **fields))
    cluster = cluster_with(shy)
    around = cluster.neighbourhood()
    new = named("x", "away")
    assert [affinity.is_repelled(new, cluster.nodes[n], around) for n in NODES] == [found, False]


def test_labels_of_a_namespace_count_as_they_are_now() -> None:
    cluster = cluster_with(named("x", "away"))
    shy = named("p", "home", affinity=about("podAntiAffinity", namespaceSelector=TEAM_B))
    cluster.set_namespace({"metadata": {"name": "away", "labels": {"team": "c"}}})
    assert not affinity.anti_affinity_broken(shy, cluster.nodes["n1"], cluster.neighbourhood())
