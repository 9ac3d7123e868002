"""Gangs that need one domain of the network: what is evicted for them, and where."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.cli.certificates import check
from app.core.actions import victim_search
from app.core.conf_error import ConfError
from app.core.policy import Policies
from app.core.tiers import build
from app.core.victims.problem import NoSolution, Problem, Solution
from app.core.victims.solver import solve
from app.model.conf import PluginConf, SchedulerConf
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang
from app.model.ids import NodeName, QueueName
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.reason import Cause, Never
from app.model.snapshot import MemberPlace
from app.model.topology import HyperNode, NetworkTopology
from tests.builders import make_gang, make_queue
from tests.core.actions.rigs import (
    Outcome,
    amounts_of,
    cores,
    counts_of,
    gang_of,
    members,
    policies,
    vector,
)
from tests.core.contended import (
    RunningGang,
    contended,
    eviction_for,
    foreign_pod,
    places,
    running_gang,
    terminating,
    victims,
)
from tests.topology import SOFT, hard, make_domains, racks, zone

RACKS = (*racks(a="n0 n1", b="n2 n3", c="n4 n5"), zone("z", "a", "b"))
"""Two racks in one zone, and a third that is in none."""
ACTIONS = ("enqueue", "allocate", "preempt", "backfill")
WHOLE = PluginConf("gang", switches={"enablePreemptable": False, "enableReclaimable": False})
BY = policies((("priority", WHOLE, "conformance"), ("predicates",)), ACTIONS)
WAYS = {
    "preempt": BY,
    "gangpreempt": policies(
        (("priority", "gang", "conformance"), ("predicates",)),
        ("enqueue", "allocate", "gangpreempt", "backfill"),
    ),
}


def plan(
    *gangs: Gang,
    running: Sequence[RunningGang],
    sizes: Sequence[int] = (1,) * 6,
    tree: Sequence[HyperNode] = RACKS,
    by: Policies = BY,
    **fields: Any,
) -> Outcome:
    nodes = cores(*sizes)
    domains = make_domains(nodes, tree)
    return contended(*gangs, running=running, nodes=nodes, by=by, domains=domains, **fields)


def high(size: int, topology: NetworkTopology, **fields: Any) -> Gang:
    return gang_of("high", size, priority=9, topology=topology, **fields)


def one_each(count: int = 6, **fields: Any) -> list[RunningGang]:
    """One gang of one pod on each node."""
    return [running_gang(f"low{row}", [row], **fields) for row in range(count)]


def racks_of(outcome: Outcome) -> set[str]:
    return {"aabbcc"[int(node[1:])] for node in places(eviction_for(outcome, "high")).values()}


@pytest.mark.parametrize("way", WAYS)
def test_all_places_are_inside_one_domain_and_only_its_pods_go(way: str) -> None:
    outcome = plan(high(2, hard(1)), running=one_each(), by=WAYS[way])
    [rack] = racks_of(outcome)
    rows = [row for row in range(6) if "aabbcc"[row] == rack]
    assert victims(outcome) == {f"low{row}-0" for row in rows}


@pytest.mark.parametrize("way", WAYS)
def test_a_gang_larger_than_any_domain_of_its_tier_evicts_no_pod(way: str) -> None:
    outcome = plan(high(3, hard(1)), running=one_each(), by=WAYS[way])
    assert victims(outcome) == set()
    assert outcome.refusal("high").cause is Cause.NO_DOMAIN
    assert outcome.refusal("high").never is Never.DOMAINS


def test_the_best_domain_is_the_one_that_would_take_the_most_members() -> None:
    stays = [foreign_pod("stays", row) for row in (0, 1, 2, 4, 5)]
    running = [running_gang("low", [3])]
    outcome = plan(high(2, hard(1)), running=running, foreign=stays)
    assert victims(outcome) == set()
    assert (
        "b is best: with all candidates gone, cpu 1 is free, and the members ask 2"
        in outcome.text("high")
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_wider_domain_is_taken_where_it_is_allowed_and_no_lower_one_will_do(way: str) -> None:
    outcome = plan(high(3, hard(2)), running=one_each(), by=WAYS[way])
    assert racks_of(outcome) == {"a", "b"}
    assert len(victims(outcome)) == 3
    assert not any(name in victims(outcome) for name in ("low4-0", "low5-0"))


@pytest.mark.parametrize("way", WAYS)
def test_the_lowest_tier_that_will_do_is_taken_though_a_wider_one_would_cost_less(way: str) -> None:
    cheap = [running_gang(f"low{row}", [row], priority=0) for row in (0, 2)]
    dear = [running_gang(f"low{row}", [row], priority=5) for row in (1, 3, 4, 5)]
    outcome = plan(high(2, hard(2)), running=[*cheap, *dear], by=WAYS[way])
    assert len(racks_of(outcome)) == 1


def test_of_the_domains_of_a_tier_the_one_whose_victims_cost_least_is_taken() -> None:
    priority = {0: 5, 1: 5, 2: 0, 3: 5, 4: 1, 5: 1}
    running = [running_gang(f"low{row}", [row], priority=priority[row]) for row in range(6)]
    assert racks_of(plan(high(2, hard(1)), running=running)) == {"c"}


def test_free_room_in_a_domain_saves_victims() -> None:
    outcome = plan(high(2, hard(1)), running=one_each(5))
    assert victims(outcome) == {"low4-0"}


def test_room_that_terminating_pods_leave_in_a_domain_is_waited_for() -> None:
    going = terminating(running_gang("going", [2, 3]))
    others = [running_gang(f"low{row}", [row]) for row in (0, 1, 4, 5)]
    outcome = plan(high(2, hard(1)), running=[going, *others])
    assert victims(outcome) == set()
    assert len(places(eviction_for(outcome, "high"))) == 2
    assert outcome.refusal("high").no_victims == ()


def test_members_of_several_shapes_are_packed_into_what_terminating_pods_leave() -> None:
    waiting = (*members("high", 2, cpu=2, role="a"), *members("high", 1, cpu=3, role="b"))
    gang = make_gang("high", waiting=waiting, priority=9, topology=hard(1))
    going = [terminating(running_gang(f"going{at}", [at], cpu=cpu)) for at, cpu in ((0, 3), (1, 4))]
    outcome = plan(gang, running=going, sizes=(3, 4, 1, 1, 1, 1))
    assert victims(outcome) == set()
    assert len(places(eviction_for(outcome, "high"))) == 3
    assert outcome.refusal("high").no_victims == ()


def test_pods_of_a_gang_that_ends_go_in_other_domains_too() -> None:
    low = [running_gang("whole", [0, 1, 4]), *one_each(0)]
    stays = [foreign_pod("stays", row) for row in (2, 3, 5)]
    outcome = plan(high(2, hard(1)), running=low, foreign=stays)
    assert victims(outcome) == {"whole-0", "whole-1", "whole-2"}
    assert racks_of(outcome) == {"a"}


def test_a_gang_that_may_lie_anywhere_evicts_beyond_all_domains_last() -> None:
    outcome = plan(high(5, hard(3)), running=one_each())
    assert len(victims(outcome)) == 5
    assert {place.exchange for place in eviction_for(outcome, "high").places} == {ANY_EQUAL}


def test_a_soft_gang_evicts_where_it_costs_least() -> None:
    priority = {0: 5, 1: 0, 2: 0, 3: 5, 4: 5, 5: 5}
    running = [running_gang(f"low{row}", [row], priority=priority[row]) for row in range(6)]
    assert victims(plan(high(2, SOFT), running=running)) == {"low1-0", "low2-0"}


def test_pipelined_places_are_not_taken_out_of_their_domain() -> None:
    priority = {0: 5, 1: 5, 2: 0, 3: 0, 4: 5, 5: 5}
    running = [running_gang(f"low{row}", [row], priority=priority[row]) for row in range(6)]
    outcome = plan(high(2, hard(1)), running=running)
    classes = {place.exchange for place in eviction_for(outcome, "high").places}
    assert classes == {Exchange(frozenset({"domain b"}))}


def test_the_certificate_names_the_nodes_of_the_domain_and_the_checker_holds_it_to_them() -> None:
    outcome = plan(high(2, hard(1)), running=one_each())
    certificate = json.loads(json.dumps(eviction_for(outcome, "high").certificate))
    domain = certificate["preemptor"]["domain"]
    assert domain["name"] in "abc"
    assert sorted(domain["nodes"]) == sorted(places(eviction_for(outcome, "high")).values())
    assert check(certificate) == []
    moved = domain | {"nodes": domain["nodes"][:1]}
    found = check(certificate | {"preemptor": certificate["preemptor"] | {"domain": moved}})
    assert any(f"may not be on {domain['nodes'][1]}" in text for _, text in found)


def test_a_lost_member_is_made_room_for_in_the_domain_of_the_others() -> None:
    waiting = members("high", 1, priority=9)
    gang = make_gang(
        "high",
        waiting=waiting,
        min_member=2,
        priority=9,
        allocated=vector(cpu=1),
        topology=hard(1),
    )
    gang = replace(gang, counts=counts_of(waiting, running=1))
    at = {gang.key: (MemberPlace(NodeName("n2"), "", vector(cpu=1)),)}
    running = [running_gang(f"low{row}", [row], priority=3 * (row == 3)) for row in (0, 1, 3, 4)]
    own = foreign_pod("high-own", 2)
    outcome = plan(gang, running=running, foreign=[own], sizes=(1, 1, 1, 1, 1, 0), places=at)
    assert victims(outcome) == {"low3-0"}


def test_members_that_do_not_exist_yet_have_their_room_in_the_same_domain() -> None:
    gang = make_gang("high", waiting=members("high", 1), min_member=2, priority=9, topology=hard(1))
    outcome = plan(gang, running=one_each())
    assert len(victims(outcome)) == 2
    assert len(eviction_for(outcome, "high").places) == 2
    assert len(racks_of(outcome)) == 1


def test_a_member_that_is_pinned_decides_on_the_domain_whose_pods_go() -> None:
    pinned = replace(members("high", 1)[0], pinned=NodeName("n3"))
    waiting = (pinned, *members("other", 1))
    gang = make_gang("high", waiting=waiting, priority=9, topology=hard(1))
    outcome = plan(gang, running=one_each())
    assert victims(outcome) == {"low2-0", "low3-0"}


def test_members_that_no_allowed_domain_has_all_of_are_helped_by_no_eviction() -> None:
    waiting = members("high", 1, priority=9)
    gang = make_gang("high", waiting=waiting, min_member=3, priority=9, topology=hard(1))
    gang = replace(gang, counts=counts_of(waiting, running=2))
    at = {gang.key: tuple(MemberPlace(NodeName(n), "", vector(cpu=1)) for n in ("n0", "n4"))}
    stays = [foreign_pod("own", row) for row in (0, 4)]
    running = [running_gang(f"low{row}", [row]) for row in (1, 2, 3, 5)]
    outcome = plan(gang, running=running, foreign=stays, places=at)
    assert victims(outcome) == set()
    assert outcome.refusal("high").no_victims == ()


def test_a_rule_about_nodes_leads_to_the_next_domain() -> None:
    waiting = members("high", 2, cpu=2, priority=9)
    gang = make_gang("high", waiting=waiting, priority=9, topology=hard(1))
    running = [running_gang(f"low{row}", [row, row]) for row in range(4)]
    outcome = plan(gang, running=running, sizes=(3, 1, 2, 2, 0, 0))
    assert racks_of(outcome) == {"b"}


def two_shapes() -> Gang:
    """Two members of two cores and two of three, which fill two nodes of five."""
    waiting = (*members("high", 2, cpu=2, role="a"), *members("high", 2, cpu=3, role="b"))
    return make_gang("high", waiting=waiting, priority=9, topology=hard(1))


def test_members_of_several_shapes_are_packed_into_what_the_victims_leave() -> None:
    running = [running_gang("low0", [0], cpu=5), running_gang("low1", [1], cpu=5)]
    outcome = plan(two_shapes(), running=running, sizes=(5, 5, 1, 1, 1, 1))
    assert Counter(places(eviction_for(outcome, "high")).values()) == {"n0": 2, "n1": 2}


def test_sub_groups_get_their_domains_inside_that_of_the_gang() -> None:
    waiting = members("high", 4, priority=9)
    of = {task.uid: SubGroup("s", str(at // 2)) for at, task in enumerate(waiting)}
    policy = SubGroupPolicy("s", keys=("k",), size=2, least=2, topology=hard(1))
    gang = make_gang(
        "high",
        waiting=waiting,
        priority=9,
        topology=hard(2),
        sub_groups=(policy,),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    outcome = plan(gang, running=one_each())
    assert victims(outcome) == {f"low{row}-0" for row in range(4)}
    classes = {place.exchange.inside for place in eviction_for(outcome, "high").places}
    assert classes == {frozenset({"domain z", "domain a"}), frozenset({"domain z", "domain b"})}


def test_sub_groups_of_a_gang_that_may_lie_anywhere_evict_inside_their_own_domains() -> None:
    waiting = members("high", 2, priority=9)
    of = {task.uid: SubGroup("s", "0") for task in waiting}
    policy = SubGroupPolicy("s", keys=("k",), size=2, least=1, topology=hard(1))
    gang = make_gang(
        "high",
        waiting=waiting,
        priority=9,
        sub_groups=(policy,),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    running = [running_gang(f"low{row}", [row]) for row in (0, 2, 3, 4)]
    stays = [foreign_pod("stays", row) for row in (1, 5)]
    outcome = plan(gang, running=running, foreign=stays)
    assert victims(outcome) == {"low2-0", "low3-0"}


def test_a_sub_group_that_no_minimum_counts_is_inside_its_domain_as_well() -> None:
    waiting = members("high", 2, priority=9)
    of = {task.uid: SubGroup("s", "0") for task in waiting}
    policy = SubGroupPolicy("s", keys=("k",), size=2, least=0, topology=hard(1))
    gang = make_gang(
        "high",
        waiting=waiting,
        priority=9,
        sub_groups=(policy,),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    priority = {0: 5, 1: 0, 2: 0, 3: 5, 4: 5, 5: 5}
    running = [running_gang(f"low{row}", [row], priority=priority[row]) for row in range(6)]
    outcome = plan(gang, running=running)
    assert len(victims(outcome)) == 2
    assert len(racks_of(outcome)) == 1


def test_a_full_queue_is_freed_by_pods_of_other_domains_too() -> None:
    queue = make_queue("q", capability=amounts_of(cpu=2))
    by = policies((("priority", WHOLE), ("predicates", "capacity")), ACTIONS)
    running = [running_gang(f"low{row}", [row], queue="q") for row in (0, 2)]
    stays = [foreign_pod("stays", row) for row in (1, 3)]
    gang = high(2, hard(1), queue=queue.name)
    outcome = plan(gang, running=running, foreign=stays, queues=[queue], by=by)
    assert victims(outcome) == {"low0-0", "low2-0"}
    assert racks_of(outcome) == {"c"}


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
@pytest.mark.parametrize(("size", "tier", "count"), [(2, 1, 2), (3, 1, 0), (3, 2, 3), (2, 2, 2)])
def test_a_queue_reclaims_for_a_gang_in_one_domain_or_not_at_all(
    size: int, tier: int, count: int, action: str
) -> None:
    by = policies(
        (("priority", WHOLE, "conformance"), ("overcommit", "predicates", "proportion")),
        ("enqueue", "allocate", action, "backfill"),
    )
    gang = high(size, hard(tier), queue=QueueName("mine"))
    queues = [make_queue("mine"), make_queue("theirs")]
    outcome = plan(gang, running=one_each(queue="theirs"), queues=queues, by=by)
    assert len(victims(outcome)) == count
    if count:
        assert len(racks_of(outcome)) == (2 if size > 2 else 1)


@pytest.mark.parametrize(
    ("most", "switches", "taken"),
    [(1, {}, "b"), (2, {}, "a"), (0, {}, "a"), (1, {"enabledHyperNodeGradient": False}, "a")],
)
def test_so_many_domains_of_a_tier_are_tried_as_the_plugin_of_the_network_says(
    most: int, switches: dict[str, bool], taken: str
) -> None:
    """Those with the most room go first; the next one costs less."""
    arguments = {"hypernode.gradient.evict.max-hypernodes": most}
    network = PluginConf("network-topology-aware", arguments=arguments, switches=switches)
    by = policies((("priority", WHOLE, "conformance"), ("predicates", network)), ACTIONS)
    running = [running_gang(f"low{row}", [row], priority=5 * (row == 2)) for row in (0, 1, 2)]
    stays = [foreign_pod("stays", row) for row in (4, 5)]
    outcome = plan(high(2, hard(1)), running=running, foreign=stays, by=by)
    assert racks_of(outcome) == {taken}


def test_no_victim_is_looked_for_where_no_domain_could_be_empty_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(victim_search, "solve", None)
    outcome = plan(high(3, hard(1)), running=one_each())
    assert victims(outcome) == set()


def test_a_gang_that_collects_in_a_domain_may_evict_there() -> None:
    outcome = plan(high(2, hard(1)), running=one_each(5), now=1000.0)
    assert victims(outcome) == {"low4-0"}
    assert outcome.refusal("high").cause is Cause.PIPELINED


def test_of_equal_domains_one_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Problem] = []

    def solved(problem: Problem) -> Solution | NoSolution:
        searched.append(problem)
        return solve(problem)

    monkeypatch.setattr(victim_search, "solve", solved)
    outcome = plan(high(2, hard(1)), running=one_each())
    assert len(victims(outcome)) == 2
    assert len(searched) == 1
    assert len(searched[0].units) == 2, "those of other domains are no part of the problem"


def way(action: str, **arguments: object) -> Policies:
    """``gangpreempt`` or ``gangreclaim`` with these arguments."""
    tiers = ((PluginConf("priority"), PluginConf("gang")), (PluginConf("predicates"),))
    actions = ("enqueue", "allocate", action, "backfill")
    return build(SchedulerConf(actions=actions, tiers=tiers, action_arguments={action: arguments}))


@pytest.mark.parametrize(
    ("arguments", "evicted"),
    [
        ({}, {"cheap2-0", "cheap3-0"}),
        ({"maxDomains": 0}, {"cheap2-0", "cheap3-0"}),
        ({"maxDomains": 2}, {"cheap2-0", "cheap3-0"}),
        ({"maxDomains": 1}, {"dear-0"}),
        ({"maxDomains": "1"}, {"dear-0"}),
    ],
)
def test_victims_are_looked_for_in_so_many_domains_as_the_action_says(
    arguments: dict[str, object], evicted: set[str]
) -> None:
    """The first rack has most room without victims, the second one the cheapest victims."""
    dear = running_gang("dear", [0], priority=5)
    cheap = [running_gang(f"cheap{row}", [row], priority=1) for row in (2, 3)]
    kept = [running_gang(f"kept{row}", [row], priority=99) for row in (4, 5)]
    by = way("gangpreempt", **arguments)
    outcome = plan(high(2, hard(1)), running=[dear, *cheap, *kept], by=by)
    assert victims(outcome) == evicted


@pytest.mark.parametrize("value", [True, "true", "t"])
def test_a_gang_goes_whole_where_the_action_lets_it(value: object) -> None:
    outcome = plan(
        high(2, SOFT),
        running=[running_gang("low", range(6), minimum=5)],
        by=way("gangpreempt", allowWholeBundle=value),
    )
    assert len(victims(outcome)) == 6


@pytest.mark.parametrize("value", [False, "false"])
def test_only_members_beyond_a_minimum_go_where_gangs_may_not_go_whole(value: object) -> None:
    by = way("gangpreempt", allowWholeBundle=value)
    kept = plan(high(2, SOFT), running=[running_gang("low", range(6), minimum=5)], by=by)
    assert not kept.plan.evictions
    single = plan(high(1, SOFT), running=one_each(), by=by)
    assert not single.plan.evictions
    assert "6 of the minimum of their gang (allowWholeBundle is false)" in single.text("high")
    spare = plan(high(2, SOFT), running=[running_gang("low", range(6), minimum=4)], by=by)
    assert len(victims(spare)) == 2


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"maxDomains": "many"}, "argument maxDomains: 'many' is not a whole number"),
        ({"maxDomains": -1}, "argument maxDomains: -1 is less than 0"),
        ({"allowWholeBundle": 2}, "argument allowWholeBundle: 2 is not true or false"),
    ],
)
def test_bad_arguments_of_actions_are_refused(
    action: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfError) as caught:
        way(action, **arguments)
    assert str(caught.value) == f"action {action}: {message}"
