"""shuffle with the plugin rescheduling: pods of full nodes move to empty ones."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.certificates import check
from app.core.plugins.rescheduling import NodeUsage
from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.disruption import DisruptionBudget
from app.model.eviction import EvictionAction, EvictionPlan, VictimPod
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.parts import NO_SUB_GROUP, Part, SubGroup, SubGroupPolicy
from app.model.resources import Matrix
from app.model.running import Protection
from app.model.shape import LabelSelector, PodShape
from app.model.workload import QueueState
from tests.builders import make_queue
from tests.core.actions.rigs import Outcome, cores, gang_of, policies, sized
from tests.core.contended import RunningGang, contended, foreign_pod, running_gang, victims
from tests.scale import examples
from tests.topology import hard, make_domains, racks, zone

NOW = 10_000.0
ACTIONS = ("enqueue", "allocate", "backfill", "shuffle")
HALF = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}


def rescheduling(params: dict[str, Any] | None = None, **arguments: object) -> PluginConf:
    strategy = {"name": "lowNodeUtilization", "params": HALF if params is None else params}
    return PluginConf("rescheduling", arguments={"strategies": [strategy], **arguments})


def by(
    *more: str | PluginConf, plugin: PluginConf | None = None, score: str = "nodeorder"
) -> Policies:
    """Nodes above a half of their cores are too full, those below three tenths are empty."""
    tiers = (("priority", "gang", *more), ("predicates", score, plugin or rescheduling()))
    return policies(tiers, ACTIONS)


def moved(*running: RunningGang, **fields: Any) -> Outcome:
    """A cycle on two nodes of ten cores, unless told otherwise."""
    given: dict[str, Any] = {"nodes": cores(10, 10), "by": by(), "now": NOW} | fields
    return contended(running=running, **given)


def singles(count: int, *, row: int = 0, first: int = 0, **fields: Any) -> list[RunningGang]:
    """Single pods of one core on a node."""
    return [running_gang(f"p{first + n}", [row], solo=True, **fields) for n in range(count)]


def test_as_many_pods_move_as_the_full_node_has_too_many() -> None:
    outcome = moved(*singles(8))
    assert len(victims(outcome)) == 3


def test_no_pod_moves_from_a_node_at_its_target() -> None:
    assert victims(moved(*singles(5))) == set()


def test_no_pod_moves_where_no_node_is_empty() -> None:
    outcome = moved(*singles(8), *singles(3, row=1, first=8))
    assert victims(outcome) == set()


def test_no_node_is_filled_beyond_its_target() -> None:
    outcome = moved(*singles(10), *singles(2, row=1, first=10))
    assert len(victims(outcome)) == 3


@pytest.mark.parametrize("on_full_node", [0, 8])
def test_nodes_are_looked_at_as_often_for_many_pods_as_for_few(
    on_full_node: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, used = 0, NodeUsage._used

    def counted(usage: NodeUsage, *node: int) -> Matrix:
        nonlocal looks
        looks += 1
        return used(usage, *node)

    def looks_for(count: int) -> int:
        nonlocal looks
        looks = 0
        full = singles(on_full_node, row=1, first=count)
        outcome = moved(*singles(count), *full, nodes=cores(100, 10, 10))
        assert len(victims(outcome)) == (3 if full else 0)
        return looks

    monkeypatch.setattr(NodeUsage, "_used", counted)
    assert looks_for(49) == looks_for(31) > 0


def test_pods_of_low_priority_move_first_and_of_these_the_latest() -> None:
    low = [
        running_gang(name, [0], solo=True, priority=1, pod={"started": started, "created": 1.0})
        for name, started in (("old", 10.0), ("late", 90.0), ("later", 99.0))
    ]
    outcome = moved(*singles(4, priority=5), *low)
    assert victims(outcome) == {"late-0", "later-0"}


def test_a_shuffle_is_for_no_group_and_names_the_plugin() -> None:
    outcome = moved(*singles(6))
    [plan] = outcome.plan.evictions
    assert (plan.action, plan.preemptor, plan.places) == (EvictionAction.SHUFFLE, "", ())
    assert {victim.rule for victim in plan.victims} == {"rescheduling"}


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"most": 6000}, "cpu 6000 is taken of n0"),
        ({"node": "n1"}, "cpu 0 is taken of n1"),
        ({"kind": "planner"}, "planner is no witness of shuffle"),
    ],
)
def test_the_checker_refuses_a_wrong_witness(wrong: dict[str, object], text: str) -> None:
    [plan] = moved(*singles(6)).plan.evictions
    certificate = json.loads(json.dumps(plan.certificate))
    [unit] = certificate["units"]
    unit["witness"] |= wrong
    assert check(certificate) == [("units[0]", f"is not proven to be needed: {text}")]


def test_the_witness_of_a_shuffle_proves_no_other_eviction() -> None:
    [plan] = moved(*singles(6)).plan.evictions
    certificate = json.loads(json.dumps(plan.certificate)) | {"action": "preempt"}
    texts = [text for _, text in check(certificate)]
    assert "is not proven to be needed: excess is no witness of preempt" in texts


def test_pods_that_the_planner_would_place_where_they_are_stay() -> None:
    packs = PluginConf("binpack")
    outcome = moved(
        *singles(8), by=policies((("gang",), ("predicates", packs, rescheduling())), ACTIONS)
    )
    assert victims(outcome) == set()


def test_a_gang_at_its_minimum_stays_if_only_some_of_it_is_on_a_full_node() -> None:
    outcome = moved(running_gang("g", [0, 0, 0, 0, 0, 0, 0, 1]))
    assert victims(outcome) == set()


def test_a_gang_of_a_full_node_moves_whole_or_not_at_all() -> None:
    pair = running_gang("pair", [0, 0])
    outcome = moved(*singles(4, priority=5), pair)
    assert victims(outcome) == {"pair-0", "pair-1"}
    [plan] = outcome.plan.evictions
    assert len(plan.victims) == 2


def test_of_a_gang_beyond_its_minimum_only_the_surplus_moves() -> None:
    outcome = moved(running_gang("g", [0] * 8, minimum=6))
    assert len(victims(outcome)) == 2


def test_a_gang_that_ends_with_one_of_its_members_moves_only_whole() -> None:
    ends = running_gang("g", [0] * 8, minimum=6, ends_whole=True)
    assert victims(moved(ends)) == set()


@pytest.mark.parametrize("protection", [each for each in Protection if each is not Protection.NONE])
def test_protected_pods_stay(protection: Protection) -> None:
    if protection is Protection.FOREIGN:
        outcome = moved(foreign=[foreign_pod(f"f{n}", 0) for n in range(8)])
    else:
        outcome = moved(*singles(8, protected=protection))
    assert victims(outcome) == set()


def test_a_pod_disruption_budget_counts_all_pods_that_move_together() -> None:
    everything = LabelSelector()
    budget = DisruptionBudget("default", "pdb", everything, allowed=1)
    assert len(victims(moved(*singles(8), budgets=(budget,)))) == 1


def test_a_job_disruption_budget_holds() -> None:
    kept = running_gang(
        "g", [0] * 8, minimum=1, annotations={"volcano.sh/jdb-max-unavailable": "1"}
    )
    assert len(victims(moved(kept))) == 1


def test_pods_in_the_minimum_run_time_of_their_queue_stay() -> None:
    queue = make_queue("default", annotations={"pumice.sh/minimum-run-time": "100000"})
    assert victims(moved(*singles(8), queues=(queue,))) == set()


def test_pods_in_their_cooldown_time_stay() -> None:
    cool = {"labels": {"volcano.sh/cooldown-time": "10h"}}
    assert victims(moved(*singles(8, pod=cool), by=by("cdp"))) == set()


def test_pods_that_have_run_for_less_than_the_interval_stay() -> None:
    fresh = {"started": NOW - 299.0}
    assert victims(moved(*singles(8, pod=fresh))) == set()
    ripe = {"started": NOW - 300.0}
    assert len(victims(moved(*singles(8, pod=ripe)))) == 3


def test_pods_of_the_threshold_priority_stay() -> None:
    params = HALF | {"thresholdPriorityClassName": "high"}
    conf = by(plugin=rescheduling(params))
    outcome = moved(*singles(8, priority=7), by=conf, classes={"high": 7})
    assert victims(outcome) == set()
    outcome = moved(*singles(8, priority=6), by=conf, classes={"high": 7})
    assert len(victims(outcome)) == 3


def test_no_pod_moves_while_the_threshold_class_is_not_known() -> None:
    params = HALF | {"thresholdPriorityClassName": "high"}
    assert victims(moved(*singles(8), by=by(plugin=rescheduling(params)))) == set()


def test_there_is_one_round_in_each_interval() -> None:
    assert victims(moved(*singles(8), shuffled=NOW - 299.0)) == set()
    assert len(victims(moved(*singles(8), shuffled=NOW - 300.0))) == 3
    short = by(plugin=rescheduling(interval="1m"))
    assert len(victims(moved(*singles(8), shuffled=NOW - 60.0, by=short))) == 3


def test_no_round_begins_while_pods_of_an_earlier_one_are_to_go() -> None:
    goes = VictimPod(
        PodUid("uid-p0-0"),
        "default",
        "p0-0",
        NodeName("n0"),
        GroupKey("default/p0"),
        QueueName("default"),
        "rescheduling",
    )
    plan = EvictionPlan(EvictionAction.SHUFFLE, GroupKey(""), (goes,))
    assert victims(moved(*singles(8), begun=(plan,))) == set()


def test_members_of_groups_that_wait_stay() -> None:
    grows = running_gang("g", [0] * 8, minimum=1)
    waits = gang_of(
        "g",
        1,
        cpu=99,
        counts=grows.gang.counts,
        allocated=grows.gang.allocated,
        min_member=1,
        role_ready={"": 8},
    )
    outcome = contended(
        waits, running=[RunningGang(waits, grows.runs)], nodes=cores(10, 10), by=by(), now=NOW
    )
    assert victims(outcome) == set()


def test_pods_of_a_closed_queue_stay() -> None:
    closed = make_queue("default", state=QueueState.CLOSED)
    assert victims(moved(*singles(8), queues=(closed,))) == set()


def test_no_pod_moves_where_its_node_selector_excludes_the_empty_node() -> None:
    bound = sized(1, node_selector=(("zone", "a"),))
    there = [on_shape(each, bound) for each in singles(8)]
    zones = [
        replace(node, labels={"zone": zone}) for node, zone in zip(cores(10, 10), "ab", strict=True)
    ]
    assert victims(moved(*there, nodes=zones)) == set()
    same = [replace(node, labels={"zone": "a"}) for node in zones]
    assert len(victims(moved(*there, nodes=same))) == 3


def on_shape(gang: RunningGang, shape: PodShape) -> RunningGang:
    runs = tuple(replace(one, pod=replace(one.pod, shape=shape)) for one in gang.runs)
    return RunningGang(gang.gang, runs)


@given(
    sizes=st.lists(st.integers(4, 12), min_size=2, max_size=5),
    gangs=st.lists(
        st.tuples(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(1, 5)),
        max_size=8,
    ),
)
@examples(50)
def test_rounds_come_to_an_end_if_pods_come_where_the_planner_places_them(
    sizes: list[int], gangs: list[tuple[list[int], int]]
) -> None:
    """What is above the targets, summed over all nodes, falls with every pod that moves."""
    room = Counter(dict(enumerate(sizes)))
    running: list[RunningGang] = []
    for number, (rows, minimum) in enumerate(gangs):
        fits = [row % len(sizes) for row in rows]
        if all(room[row] >= count for row, count in Counter(fits).items()):
            room.subtract(fits)
            running.append(running_gang(f"g{number}", fits, minimum=min(minimum, len(fits))))
    before = _excess(running, sizes)
    for _ in range(len(sizes) * 12):
        outcome = moved(*running, nodes=cores(*sizes))
        if not outcome.plan.evictions:
            return
        running = [_after(each, outcome) for each in running]
        after = _excess(running, sizes)
        assert after < before
        before = after
    raise AssertionError("pods still move")


def _excess(running: list[RunningGang], sizes: list[int]) -> float:
    taken = Counter(one.node for each in running for one in each.runs)
    return sum(max(taken[row] - sizes[row] * 0.5, 0) for row in range(len(sizes)))


def _after(gang: RunningGang, outcome: Outcome) -> RunningGang:
    """The same once its pods have moved where the certificates say."""
    nodes = {
        place["uid"]: place["node"]
        for plan in outcome.plan.evictions
        for place in plan.certificate["preemptor"]["places"]  # type: ignore[index]
    }
    runs = tuple(
        replace(one, pod=replace(one.pod, node=NodeName(node)), node=int(node[1:]))
        if (node := nodes.get(one.pod.uid))
        else one
        for one in gang.runs
    )
    return RunningGang(gang.gang, runs)


@pytest.mark.parametrize("of_sub_group", [False, True], ids=["gang", "sub-group"])
@pytest.mark.parametrize(("tier", "count"), [(1, 0), (2, 3)])
def test_pods_of_a_gang_move_inside_the_domain_that_it_needs(
    tier: int, count: int, *, of_sub_group: bool
) -> None:
    nodes = cores(10, 10)
    tree = (*racks(a="n0", b="n1"), zone("z", "a", "b"))
    part = Part("", SubGroup("s", "x") if of_sub_group else NO_SUB_GROUP)
    policy = SubGroupPolicy("s", keys=("k",), topology=hard(tier))
    fields: dict[str, Any] = {"topology": hard(tier)}
    if of_sub_group:
        fields = {"sub_groups": (policy,), "sub_group_ready": {part.sub_group: 8}}
    low = running_gang("low", [0] * 8, minimum=1, **fields)
    low = replace(low, runs=tuple(replace(one, part=part) for one in low.runs))
    assert len(victims(moved(low, nodes=nodes, domains=make_domains(nodes, tree)))) == count
