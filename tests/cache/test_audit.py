"""Comparing what is counted with what the API server lists."""

from dataclasses import replace

import pytest

from app.cache.audit import Drift, audit
from app.cache.cluster import ClusterCache
from app.model.ids import NodeName
from app.model.plan import GangPlacement, Placement
from app.model.pod import Pod
from app.model.workload import Namespace
from tests.builders import make_node, make_pod

BOUND = make_pod("p", node=NodeName("n"), phase="Running")


@pytest.fixture
def cache() -> ClusterCache:
    cache = ClusterCache(schedulers=frozenset({"volcano"}))
    for name in ("n", "m"):
        cache.set_node(make_node(name))
    cache.set_namespace(Namespace("default", {}, {}))
    return cache


def reserve(cache: ClusterCache, pod: Pod, node: str) -> None:
    cache.set_pod(pod, now=1.0)
    placed = Placement(cache.members[pod.uid].task, NodeName(node))
    assert cache.reservations.reserve(GangPlacement(pod.group, (placed,), whole=True), now=1.0)


def test_agreement(cache: ClusterCache) -> None:
    waiting = make_pod("q")
    for pod in (BOUND, waiting):
        cache.set_pod(pod, now=1.0)
    outcome = audit(cache, [BOUND, waiting])
    assert (outcome.drifts, outcome.pods, outcome.charges, outcome.promises) == (
        (),
        2,
        1,
        0,
    )


def test_a_bound_pod_that_is_not_counted_is_missed(cache: ClusterCache) -> None:
    assert audit(cache, [BOUND]).drifts == (Drift("missed", "uid-p", "default/p", "", "n"),)


def test_a_counted_pod_that_is_not_there_is_redundant(cache: ClusterCache) -> None:
    cache.set_pod(BOUND, now=1.0)
    assert audit(cache, []).drifts == (Drift("redundant", "uid-p", "uid-p", "n", ""),)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_counted_pod_that_is_over_is_redundant(cache: ClusterCache, phase: str) -> None:
    cache.set_pod(BOUND, now=1.0)
    [drift] = audit(cache, [replace(BOUND, phase=phase)]).drifts
    assert drift.kind == "redundant"


def test_a_pod_that_is_counted_elsewhere_is_moved(cache: ClusterCache) -> None:
    cache.set_pod(BOUND, now=1.0)
    moved = replace(BOUND, node=NodeName("m"))
    assert audit(cache, [moved]).drifts == (Drift("moved", "uid-p", "default/p", "n", "m"),)


def test_reservations_are_counted_and_are_no_drift(cache: ClusterCache) -> None:
    pod = make_pod("p")
    reserve(cache, pod, "n")
    outcome = audit(cache, [pod])
    assert (outcome.drifts, outcome.promises) == ((), 1)


def test_a_reservation_that_was_used_before_the_watch_shows_it_is_no_drift(
    cache: ClusterCache,
) -> None:
    pod = make_pod("p")
    reserve(cache, pod, "n")
    assert audit(cache, [replace(pod, node=NodeName("n"))]).drifts == ()
    [drift] = audit(cache, [replace(pod, node=NodeName("m"))]).drifts
    assert (drift.kind, drift.counted_on, drift.bound_to) == ("moved", "n", "m")
