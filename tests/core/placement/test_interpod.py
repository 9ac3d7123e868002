"""Affinity and anti-affinity between pods."""

from typing import Any

import pytest

from app.core.policy import Predicates, Scoring
from app.model.shape import LabelSelector, Operator, PodTerm, Requirement
from app.model.workload import Namespace
from tests.builders import make_node, make_pod, make_shape
from tests.core.placement.rigs import HOST, Rig, app_is, placed_pod, pod_shape
from tests.placed_pods import PlacedPod
from tests.running import Runs, make_running

NODES = (
    make_node("a1", labels={HOST: "a1", "zone": "a"}),
    make_node("a2", labels={HOST: "a2", "zone": "a"}),
    make_node("b1", labels={HOST: "b1", "zone": "b"}),
    make_node("x1", labels={HOST: "x1"}),
)


def term(app: str, key: str = "zone", **fields: Any) -> PodTerm:
    return PodTerm(key, app_is(app), **({"namespaces": ("default",)} | fields))


def test_affinity_wants_the_domain_of_a_matching_pod() -> None:
    rig = Rig(NODES, placed_pods=(placed_pod("w", 0, app="web"),), inter_pod=True)
    assert rig.names(pod_shape("db", pod_affinity=(term("web"),))) == ["a1", "a2"]
    assert rig.names(pod_shape("db", pod_affinity=(term("web", HOST),))) == ["a1"]
    assert rig.names(pod_shape("db", pod_affinity=(term("cache"),))) == []


def test_the_first_pod_of_a_group_may_start_it_where_the_labels_are() -> None:
    rig = Rig(NODES)
    together = pod_shape("web", pod_affinity=(term("web"),))
    assert rig.names(together) == ["a1", "a2", "b1"]
    rig.put(together, "b1")
    assert rig.names(together) == ["b1"]


def test_a_group_is_not_started_twice_because_its_label_is_on_another_key() -> None:
    both = pod_shape("web", pod_affinity=(term("web"), term("web", "rack")))
    nodes = (*NODES, make_node("r1", labels={"zone": "c", "rack": "r"}))
    rig = Rig(nodes, placed_pods=(placed_pod("w", 0, app="web"),), inter_pod=True)
    assert rig.names(both) == []


def test_affinity_terms_must_hold_for_the_same_pod() -> None:
    both = pod_shape("db", pod_affinity=(term("web"), PodTerm("zone", app_is("web", "db"), ())))
    rig = Rig(NODES, placed_pods=(placed_pod("w", 0, app="web"),), inter_pod=True)
    assert rig.names(both) == []


def test_anti_affinity_keeps_out_of_the_domain() -> None:
    rig = Rig(NODES, placed_pods=(placed_pod("w", 0, app="web"),), inter_pod=True)
    assert rig.names(pod_shape("db", pod_anti_affinity=(term("web"),))) == ["b1", "x1"]
    assert rig.names(pod_shape("db", pod_anti_affinity=(term("web", HOST),))) == ["a2", "b1", "x1"]


def test_a_gang_with_anti_affinity_to_itself_gets_a_node_each() -> None:
    rig = Rig(NODES)
    apart = pod_shape("web", pod_anti_affinity=(term("web", HOST),))
    assert [rig.put_found(apart) for _ in range(5)] == ["a1", "a2", "b1", "x1", None]
    assert rig.verdicts(apart) == {"node(s) didn't match pod anti-affinity rules": 4}


def test_an_evicted_pod_keeps_nobody_away_until_that_is_rolled_back() -> None:
    lonely = pod_shape("web", pod_anti_affinity=(term("db"),))
    there = make_pod("w", shape=lonely, labels={"app": "web"})
    rig = Rig(
        NODES,
        placed_pods=(PlacedPod.of(there, 0),),
        running=make_running([Runs(there, 0)]),
        inter_pod=True,
    )
    apart = pod_shape("x", pod_anti_affinity=(term("web", HOST),))
    near = pod_shape("x", pod_affinity=(term("web"),))

    def names() -> tuple[list[str], ...]:
        return rig.names(pod_shape("db")), rig.names(apart), rig.names(near)

    before = (["b1", "x1"], ["a2", "b1", "x1"], ["a1", "a2"])
    with rig.ledger.trial():
        rig.ledger.evict(0)
        assert names() == (["a1", "a2", "b1", "x1"], ["a1", "a2", "b1", "x1"], []), "not asked yet"
    assert names() == before
    with rig.ledger.trial():
        rig.ledger.evict(0)
        assert names() == (["a1", "a2", "b1", "x1"], ["a1", "a2", "b1", "x1"], [])
        rig.put(pod_shape("web"), "b1")
        assert names()[2] == ["b1"]
    assert names() == before


def test_a_placed_pods_anti_affinity_keeps_others_away() -> None:
    lonely = pod_shape("web", pod_anti_affinity=(term("db"),))
    rig = Rig(NODES, placed_pods=(placed_pod("w", 0, app="web", shape=lonely),), inter_pod=True)
    assert rig.names(pod_shape("db")) == ["b1", "x1"]
    assert rig.names(pod_shape("web")) == ["a1", "a2", "b1", "x1"]
    assert rig.verdicts(pod_shape("db", node_selector=(("zone", "a"),))) == {
        "node(s) didn't match Pod's node affinity/selector": 2,
        "node(s) didn't satisfy existing pods anti-affinity rules": 2,
    }


def test_anti_affinity_of_a_task_placed_in_this_cycle_counts_until_rolled_back() -> None:
    rig = Rig(NODES, inter_pod=True)
    assert rig.names(pod_shape("db")) == ["a1", "a2", "b1", "x1"]
    with rig.ledger.trial():
        rig.put(pod_shape("web", pod_anti_affinity=(term("db"),)), "b1")
        assert rig.names(pod_shape("db")) == ["a1", "a2", "x1"]
    assert rig.names(pod_shape("db")) == ["a1", "a2", "b1", "x1"]


def test_anti_affinity_of_a_task_placed_before_anybody_asked_counts() -> None:
    rig = Rig(NODES, inter_pod=True)
    rig.put(pod_shape("web", pod_anti_affinity=(term("db"),)), "b1")
    assert rig.names(pod_shape("db")) == ["a1", "a2", "x1"]


@pytest.mark.parametrize(
    ("looks", "refused"),
    [
        ({}, False),
        ({"namespaces": ("other",)}, True),
        ({"namespace_selector": LabelSelector()}, True),
        ({"namespace_selector": LabelSelector((Requirement("t", Operator.IN, ("r",)),))}, True),
        ({"namespace_selector": LabelSelector((Requirement("t", Operator.IN, ("s",)),))}, False),
    ],
)
def test_a_term_looks_into_its_namespaces_only(looks: dict[str, Any], refused: bool) -> None:
    rig = Rig(
        NODES,
        placed_pods=(placed_pod("w", 2, app="web", namespace="other"),),
        inter_pod=True,
        namespaces={"other": Namespace("other", {"t": "r"}, {})},
    )
    names = rig.names(pod_shape("db", pod_anti_affinity=(term("web", **looks),)))
    assert ("b1" not in names) == refused


def test_a_term_without_selector_selects_no_pod() -> None:
    nobody = PodTerm("zone", None, ("default",))
    rig = Rig(NODES, placed_pods=(placed_pod("w", 0, app="web"),), inter_pod=True)
    assert rig.names(pod_shape("db", pod_anti_affinity=(nobody,))) == ["a1", "a2", "b1", "x1"]
    assert rig.names(pod_shape("db", pod_affinity=(nobody,))) == []


def test_preferred_terms_are_scaled_to_a_hundred() -> None:
    placed_pods = (placed_pod("w", 0, app="web"), placed_pod("d", 2, app="db"))
    rig = Rig(NODES, placed_pods=placed_pods, inter_pod=True, scoring=Scoring(pod_affinity=2))
    liking = pod_shape("x", preferred_pods=((3, term("web")), (-1, term("db"))))
    assert rig.scores(liking) == [200.0, 200.0, 0.0, 50.0]
    assert rig.find(liking) == "a1"


def test_the_preferences_of_placed_pods_draw_the_task_to_them() -> None:
    fond = pod_shape("web", preferred_pods=((5, term("db", HOST)),))
    needing = pod_shape("web", pod_affinity=(term("db", HOST),))
    rig = Rig(
        NODES,
        placed_pods=(placed_pod("f", 1, shape=fond), placed_pod("n", 3, shape=needing)),
        inter_pod=True,
        scoring=Scoring(pod_affinity=1),
    )
    assert rig.scores(pod_shape("db")) == [0.0, 100.0, 0.0, 20.0]
    assert rig.scores(pod_shape("web")) == [0.0] * 4


def test_rules_are_not_looked_at_when_switched_off() -> None:
    rig = Rig(NODES, predicates=Predicates(pod_affinity=False))
    assert rig.names(pod_shape("db", pod_affinity=(term("web"),))) == ["a1", "a2", "b1", "x1"]


def test_plain_shapes_have_no_rules_while_no_rule_looks_at_pods() -> None:
    rig = Rig(NODES)
    assert rig.names(make_shape()) == ["a1", "a2", "b1", "x1"]
