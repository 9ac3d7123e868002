"""Topology spread constraints."""

from typing import Any

from app.core.policy import Predicates, Scoring
from app.model.ids import NodeName
from app.model.node import Taint
from app.model.shape import LabelSelector, PodShape, Spread
from tests.builders import make_node, make_pod
from tests.core.placement.rigs import HOST, Rig, app_is, placed_pod, pod_shape
from tests.placed_pods import PlacedPod
from tests.running import Runs, make_running

NODES = (
    make_node("a1", labels={HOST: "a1", "zone": "a"}),
    make_node("a2", labels={HOST: "a2", "zone": "a"}),
    make_node("b1", labels={HOST: "b1", "zone": "b"}),
    make_node("x1", labels={HOST: "x1"}),
)


def spread(key: str = "zone", skew: int = 1, *, hard: bool = True, **fields: Any) -> Spread:
    return Spread(skew, key, hard=hard, **({"selector": app_is("web")} | fields))


def web(*constraints: Spread, **fields: Any) -> PodShape:
    return pod_shape("web", spread=constraints, **fields)


def test_a_domain_may_lead_by_the_skew_only() -> None:
    rig = Rig(NODES)
    shape = web(spread())
    assert [rig.put_found(shape) for _ in range(4)] == ["a1", "b1", "a1", "b1"]
    rig.put(shape, "a1")
    assert rig.names(shape) == ["b1"]
    assert rig.verdicts(web(spread(), node_selector=(("zone", "b"),))) == {
        "node(s) didn't match Pod's node affinity/selector": 3
    }


def test_nodes_without_the_label_are_told_apart_from_full_domains() -> None:
    rig = Rig(NODES, placed_pods=(placed_pod("w", 0, app="web"),), inter_pod=True)
    assert rig.verdicts(web(spread(min_domains=3), cpu=9000)) == {
        "node(s) didn't match pod topology spread constraints": 2,
        "node(s) didn't match pod topology spread constraints (missing required label)": 1,
        "Insufficient cpu": 1,
    }


def test_constraints_all_hold() -> None:
    rig = Rig(NODES)
    shape = web(spread(), spread(HOST))
    assert [rig.put_found(shape) for _ in range(4)] == ["a1", "b1", "a2", "b1"]


def test_a_selector_that_takes_everything_counts_nothing() -> None:
    rig = Rig(NODES, placed_pods=(placed_pod("w", 0, app="web"),), inter_pod=True)
    shape = web(spread(selector=LabelSelector()))
    assert [rig.put_found(shape) for _ in range(3)] == ["a1", "a1", "a1"]


def test_fewer_domains_than_wanted_count_as_an_empty_one() -> None:
    rig = Rig(NODES)
    shape = web(spread(min_domains=3))
    assert [rig.put_found(shape) for _ in range(3)] == ["a1", "b1", None]
    assert Rig(NODES).names(web(spread(min_domains=2))) == ["a1", "a2", "b1"]


def test_terminating_pods_and_other_namespaces_do_not_count() -> None:
    placed_pods = (
        placed_pod("w1", 0, app="web", deleting=True),
        placed_pod("w2", 0, app="web", namespace="other"),
        placed_pod("w3", 0, app="db"),
    )
    rig = Rig(NODES, placed_pods=placed_pods, inter_pod=True)
    assert rig.names(web(spread())) == ["a1", "a2", "b1"]


def test_an_evicted_pod_counts_no_more_unless_it_did_not_as_it_terminates() -> None:
    pods = [
        make_pod(name, shape=web(), labels={"app": "web"}, deleting=deleting)
        for name, deleting in (("stays", False), ("goes", True))
    ]
    rig = Rig(
        NODES,
        placed_pods=[PlacedPod.of(pod, 0) for pod in pods],
        running=make_running(Runs(pod, 0) for pod in pods),
        inter_pod=True,
    )
    assert rig.names(web(spread())) == ["b1"]
    for at in (1, 0):
        with rig.ledger.trial() as trial:
            rig.ledger.evict(at)
            assert rig.names(web(spread())) == [["a1", "a2", "b1"], ["b1"]][at]
            trial.kept = at == 1
    assert rig.names(web(spread())) == ["b1"]


def test_excluded_nodes_are_no_domains_unless_the_policy_ignores_that() -> None:
    placed_pods = (placed_pod("w", 0, app="web"),)
    in_a = (("zone", "a"),)
    rig = Rig(NODES, placed_pods=placed_pods, inter_pod=True)
    assert rig.names(web(spread(), node_selector=in_a)) == ["a1", "a2"]
    assert rig.names(web(spread(honor_affinity=False), node_selector=in_a)) == []


def test_tainted_nodes_are_domains_unless_the_policy_honors_taints() -> None:
    tainted = make_node("b1", labels={"zone": "b"}, taints=(Taint("gpu", "", "NoSchedule"),))
    placed_pods = (placed_pod("w", 0, app="web"),)
    rig = Rig((*NODES[:2], tainted), placed_pods=placed_pods, inter_pod=True)
    assert rig.names(web(spread())) == []
    assert rig.names(web(spread(honor_taints=True))) == ["a1", "a2"]


def test_a_pin_makes_its_node_the_only_domain() -> None:
    placed_pods = tuple(placed_pod(f"w{i}", 0, app="web") for i in range(3))
    rig = Rig(NODES, placed_pods=placed_pods, inter_pod=True)
    pinned = NodeName("a1")
    assert rig.find(web(spread())) == "b1"
    assert rig.find(web(spread()), pinned=pinned) == "a1"
    assert rig.find(web(spread(honor_affinity=False)), pinned=pinned) is None
    assert rig.find(web(spread(min_domains=2)), pinned=pinned) is None
    assert rig.verdicts(web(spread(min_domains=2)), pinned=pinned) == {
        "node(s) didn't match Pod's node affinity/selector": 3,
        "node(s) didn't match pod topology spread constraints": 1,
    }


def test_soft_constraints_prefer_the_emptier_domain() -> None:
    placed_pods = (placed_pod("w1", 0, app="web"), placed_pod("w2", 0, app="web"))
    rig = Rig(NODES, placed_pods=placed_pods, inter_pod=True, scoring=Scoring(topology_spread=2))
    shape = web(spread(hard=False))
    assert rig.scores(shape) == [0.0, 0.0, 200.0, 0.0]
    assert rig.find(shape) == "b1"
    assert rig.names(shape) == ["a1", "a2", "b1", "x1"]


def test_constraints_are_not_looked_at_when_switched_off() -> None:
    rig = Rig(NODES, predicates=Predicates(topology_spread=False))
    assert rig.names(web(spread())) == ["a1", "a2", "b1", "x1"]


def test_soft_constraints_alone_order_all_nodes_and_forbid_none() -> None:
    shape = pod_shape("web", spread=(Spread(1, "zone", hard=False, selector=app_is("web")),))
    rig = Rig(
        [make_node(f"n{i}", labels={"zone": f"z{i}"}) for i in range(2)],
        scoring=Scoring(topology_spread=1),
        predicates=Predicates(pod_affinity=False, topology_spread=False),
    )
    assert [rig.put_found(shape) for _ in range(3)] == ["n0", "n1", "n0"]
    assert rig.names(shape) == ["n0", "n1"]
