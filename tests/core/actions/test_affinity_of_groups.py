"""Groups that go where others are, or where they are not, by the domains of a tier."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from app.model.conf import PluginConf
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang
from app.model.ids import GroupKey, NodeName, group_key
from app.model.reason import Cause
from app.model.shape import LabelSelector, Operator, Requirement
from app.model.snapshot import MemberPlace
from app.model.topology import GroupTerm, Tier, TopologyAffinity
from app.model.workload import GroupPhase, Namespace
from tests.builders import make_gang
from tests.core.actions.rigs import Outcome, cores, cycle, gang_of, policies, used, vector
from tests.core.contended import contended, eviction_for, places, running_gang, victims
from tests.topology import hard, make_domains, racks, zone

RACKS = (*racks(a="n0 n1", b="n2 n3", c="n4 n5"), zone("z", "a", "b"))
"""Two racks in one zone, and a third that is in none."""
RACK, ZONE = Tier(1), Tier(name="zone")
WEB = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
LABELS = {"app": "web"}
EVICTING = policies(
    (("priority", PluginConf("gang", switches={"enablePreemptable": False})), ("predicates",)),
    ("enqueue", "allocate", "preempt", "backfill"),
)


def apart(tier: Tier = RACK, **term: Any) -> TopologyAffinity:
    return TopologyAffinity(groups_apart=(GroupTerm(WEB, tier, **term),))


def near(tier: Tier = RACK, **term: Any) -> TopologyAffinity:
    return TopologyAffinity(groups_near=(GroupTerm(WEB, tier, **term),))


def web(name: str = "web", *, namespace: str = "default", **labels: str) -> Gang:
    """A group that runs; where, tells :func:`held`."""
    return make_gang(
        name,
        namespace=namespace,
        phase=GroupPhase.RUNNING,
        labels=labels or LABELS,
        allocated=vector(cpu=1, pods=1),
        request=vector(cpu=1, pods=1),
    )


def held(**nodes: str) -> Mapping[GroupKey, Sequence[MemberPlace]]:
    """Places of groups, by name: of a core each on these nodes."""
    return {
        group_key("default", name): tuple(
            MemberPlace(NodeName(node), "", vector(cpu=1, pods=1)) for node in said.split()
        )
        for name, said in nodes.items()
    }


def plan(*gangs: Gang, sizes: Sequence[int] = (2,) * 6, **fields: Any) -> Outcome:
    nodes = cores(*sizes)
    waiting = tuple(gang for gang in gangs if gang.waiting)
    defaults: dict[str, Any] = {"pending": waiting, "domains": make_domains(nodes, RACKS)}
    return cycle(*gangs, nodes=nodes, **(defaults | fields))


def racks_of(outcome: Outcome, gang: str = "g") -> set[str]:
    return {"aabbcc"[int(node[1:])] for node in outcome.nodes(gang).values()}


@pytest.mark.parametrize(
    ("affinity", "racks"),
    [
        (apart(), {"b"}),
        (apart(ZONE), set()),
        (near(), {"a", "c"}),
        (near(ZONE), {"a", "b"}),
        (TopologyAffinity(near(ZONE).groups_near, apart().groups_apart), {"b"}),
    ],
)
def test_members_are_in_the_domains_that_terms_leave(
    affinity: TopologyAffinity, racks: set[str]
) -> None:
    where = held(web="n0 n5") if affinity != near(ZONE) else held(web="n0")
    outcome = plan(gang_of("g", 4, affinity=affinity), web(), places=where)
    assert racks_of(outcome) <= racks
    assert len(outcome.nodes("g")) == (4 if racks else 0)


def test_a_node_that_is_in_no_domain_of_the_tier_keeps_no_required_term() -> None:
    outcome = plan(gang_of("g", 1, affinity=apart(ZONE)), web(), places=held(web="n0"))
    assert outcome.nodes("g") == {}
    assert outcome.refusal("g").cause is Cause.TOPOLOGY_AFFINITY


def test_groups_that_match_no_label_or_are_in_another_namespace_do_not_matter() -> None:
    gang = gang_of("g", 12, affinity=apart())
    other = web("other", app="db")
    assert len(plan(gang, other, places=held(other="n0 n2 n4")).nodes("g")) == 12
    far = web("web", namespace="far")
    places = {far.key: held(web="n0 n2 n4")[group_key("default", "web")]}
    assert len(plan(gang, far, places=places).nodes("g")) == 12


@pytest.mark.parametrize(
    ("namespaces", "count"),
    [
        (LabelSelector(), 0),
        (LabelSelector((Requirement("team", Operator.IN, ("x",)),)), 0),
        (LabelSelector((Requirement("team", Operator.IN, ("y",)),)), 1),
    ],
)
def test_namespaces_are_selected_by_their_labels(namespaces: LabelSelector, count: int) -> None:
    far = web("web", namespace="far")
    outcome = plan(
        gang_of("g", 1, affinity=apart(namespaces=namespaces)),
        far,
        places={far.key: held(web="n0 n2 n4")[group_key("default", "web")]},
        namespaces={"far": Namespace("far", {"team": "x"}, {})},
    )
    assert len(outcome.nodes("g")) == count


def test_a_group_is_not_kept_away_from_its_own_members() -> None:
    gang = gang_of("g", 3, labels=LABELS, affinity=apart(), min_member=1)
    outcome = plan(gang, places=held(g="n0"))
    assert len(outcome.nodes("g")) == 3


def test_groups_that_keep_apart_from_each_other_are_placed_in_one_cycle() -> None:
    gangs = [gang_of(name, 2, labels=LABELS, affinity=apart()) for name in "wxyz"]
    outcome = plan(*gangs)
    found = [racks_of(outcome, name) for name in "wxyz"]
    assert sorted(map(sorted, found)) == [[], ["a"], ["b"], ["c"]]
    [left] = [name for name in "wxyz" if not outcome.nodes(name)]
    assert outcome.refusal(left).cause is Cause.TOPOLOGY_AFFINITY


def test_of_groups_that_look_for_each_other_the_first_goes_anywhere() -> None:
    gangs = [gang_of(name, 1, labels=LABELS, affinity=near()) for name in "xy"]
    outcome = plan(*gangs)
    assert racks_of(outcome, "x") == racks_of(outcome, "y") != set()


def test_a_group_that_looks_for_others_waits_for_them() -> None:
    outcome = plan(gang_of("g", 1, affinity=near()), web())
    assert outcome.text("g") == (
        "0/6 nodes are available: 6 node(s) didn't match the group's podGroupAffinity; "
        "podGroupAffinity: no group that it names has a place"
    )
    assert outcome.refusal("g").cause is Cause.TOPOLOGY_AFFINITY


def test_the_domains_of_others_are_told() -> None:
    where = held(web="n0 n3", shop="n5")
    outcome = plan(gang_of("g", 1, affinity=apart()), web(), web("shop"), places=where)
    assert outcome.text("g") == (
        "0/6 nodes are available: 6 node(s) didn't match the group's podGroupAntiAffinity; "
        "podGroupAntiAffinity: default/shop, default/web have a, b, c (3 of 3 domains)"
    )


def test_a_tier_that_there_is_not_is_told() -> None:
    outcome = plan(gang_of("g", 1, affinity=apart(Tier(name="row"))), web())
    assert "; no domain of the network is of tier row" in outcome.text("g")


def test_a_domain_of_the_gang_is_looked_for_where_terms_leave_room() -> None:
    gang = gang_of("g", 3, topology=hard(1), affinity=apart())
    outcome = plan(gang, web(), sizes=(2, 1, 2, 2, 4, 4), places=held(web="n0"))
    assert racks_of(outcome) == {"b"}
    refused = plan(gang, web(), sizes=(9, 9, 2, 1, 1, 1), places=held(web="n0 n2"))
    assert refused.refusal("g").cause is Cause.NO_DOMAIN
    assert "podGroupAntiAffinity: default/web has a, b (2 of 3 domains)" in refused.text("g")


def test_a_preferred_term_counts_where_there_is_room_and_bars_nothing() -> None:
    gang = gang_of("g", 2, affinity=apart(weight=100))
    where = held(web="n0 n4")
    assert racks_of(plan(gang, web(), places=where)) == {"b"}
    outcome = plan(gang, web(), sizes=(2, 2, 0, 1, 2, 2), places=where)
    assert len(outcome.nodes("g")) == 2
    assert "b" in racks_of(outcome)
    assert len(plan(gang, web(), places=held(web="n0 n2 n4")).nodes("g")) == 2


def test_of_preferred_terms_the_heavier_one_counts() -> None:
    affinity = TopologyAffinity(
        groups_near=(GroupTerm(WEB, RACK, weight=10),),
        groups_apart=(GroupTerm(WEB, RACK, weight=9),),
    )
    outcome = plan(gang_of("g", 1, affinity=affinity), web(), places=held(web="n2"))
    assert racks_of(outcome) == {"b"}


def test_a_preferred_term_may_be_turned_off_by_the_weight_of_the_plugin() -> None:
    by = policies(
        (("gang",), (PluginConf("group-topology-affinity", arguments={"weight": 0}), "predicates"))
    )
    gang = gang_of("g", 1, affinity=apart(weight=100))
    assert racks_of(plan(gang, web(), places=held(web="n0"), by=by)) == {"a"}
    required = gang_of("g", 1, affinity=apart())
    assert racks_of(plan(required, web(), places=held(web="n0"), by=by)) != {"a"}


def test_places_that_terms_are_about_are_kept_in_their_group() -> None:
    gang = gang_of("g", 1, affinity=apart())
    peer = gang_of("p", 1, labels=LABELS)
    outcome = plan(gang, peer, gang_of("free", 1))
    classes = {
        name: [p.exchange for d in outcome.decisions(name) for p in d.placements]
        for name in ("g", "p", "free")
    }
    assert classes == {
        "g": [Exchange(frozenset({"affinity of default/g "}))],
        "p": [Exchange(frozenset({"affinity of default/p "}))],
        "free": [ANY_EQUAL],
    }


def test_places_that_only_preferred_terms_are_about_may_be_exchanged() -> None:
    outcome = plan(gang_of("g", 1, affinity=apart(weight=1)), gang_of("p", 1, labels=LABELS))
    assert {p.exchange for n in "gp" for d in outcome.decisions(n) for p in d.placements} == {
        ANY_EQUAL
    }


def test_pods_go_only_where_terms_let_the_group_have_the_room() -> None:
    nodes = cores(*(1,) * 6)
    high = gang_of("high", 2, priority=9, affinity=apart())
    running = [running_gang(f"low{row}", [row], priority=row) for row in (0, 1, 2, 3, 5)]
    running.append(running_gang("web", [4], labels=LABELS, priority=10))
    outcome = contended(
        high,
        running=running,
        nodes=nodes,
        by=EVICTING,
        domains=make_domains(nodes, RACKS),
        places=held(web="n4"),
    )
    assert victims(outcome) == {"low0-0", "low1-0"}
    assert set(places(eviction_for(outcome, "high")).values()) == {"n0", "n1"}


def test_no_pod_goes_where_terms_bar_every_domain() -> None:
    nodes = cores(*(1,) * 6)
    high = gang_of("high", 1, priority=9, affinity=apart())
    running = [running_gang(f"low{row}", [row]) for row in (1, 3, 5)]
    running.append(running_gang("web", [0, 2, 4], labels=LABELS))
    outcome = contended(
        high,
        running=running,
        nodes=nodes,
        by=EVICTING,
        domains=make_domains(nodes, RACKS),
        places=held(web="n0 n2 n4"),
    )
    assert victims(outcome) == set()


def test_room_is_collected_where_terms_leave_it() -> None:
    nodes = cores(*(4,) * 6)
    gang = gang_of("g", 8, affinity=apart())
    outcome = plan(
        gang,
        web(),
        sizes=(4,) * 6,
        used=used(nodes, n0=2, n1=4, n2=1, n3=4, n4=4, n5=4),
        places=held(web="n0"),
        now=60.0,
        by=policies((("gang",), ("predicates", PluginConf("proportion")))),
    )
    kept = {node for each in outcome.plan.collected for node, _ in each.nodes}
    assert outcome.refusal("g").cause is Cause.COLLECTING
    assert kept == {"n2"}
