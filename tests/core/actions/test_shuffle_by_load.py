"""shuffle with the plugin rescheduling where nodes tell how busy they are."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.certificates import check
from app.core.policy import Policies
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.ids import NodeName
from app.model.load import MetricsConf, MetricsType, NodeLoad, Unseen
from app.model.shape import PodShape, QosClass
from tests.builders import GIB, make_shape
from tests.core.actions.rigs import Outcome, cores
from tests.core.contended import RunningGang, contended, running_gang, victims
from tests.scale import examples

NOW = 10_000.0
WINDOW_S = 300.0
HALF = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}
ACTIONS = ("enqueue", "allocate", "backfill", "shuffle")


def by(
    *strategies: str,
    params: dict[str, Any] | None = None,
    measured: bool = True,
    prefers: bool = True,
) -> Policies:
    """Nodes above a half of their cores are too busy, those below three tenths are idle."""
    low = {"name": "lowNodeUtilization", "params": HALF if params is None else params}
    listed = [*({"name": name} for name in strategies), low]
    plugin = PluginConf("rescheduling", arguments={"strategies": listed})
    usage = [PluginConf("usage")] if prefers else []
    tiers = (
        (PluginConf("priority"), PluginConf("gang")),
        (PluginConf("predicates"), PluginConf("nodeorder"), *usage, plugin),
    )
    metrics = MetricsConf(MetricsType.PROMETHEUS) if measured else None
    return build(SchedulerConf(actions=ACTIONS, tiers=tiers, metrics=metrics))


def load(
    cpu: float, memory: float = 0.0, *, age_s: float = 0.0, unseen: Unseen | None = None
) -> NodeLoad:
    return NodeLoad(cpu, memory, at=NOW - age_s, window_s=WINDOW_S, unseen=unseen or Unseen())


def moved(
    *running: RunningGang, loads: Mapping[str, NodeLoad], nodes: int = 2, **fields: Any
) -> Outcome:
    """A cycle on nodes of ten cores, ``n0`` and on; all that is evicted is certified."""
    known = {NodeName(name): each for name, each in loads.items()}
    given: dict[str, Any] = {"by": by(), "now": NOW} | fields
    return contended(running=running, nodes=cores(*[10] * nodes), loads=known, **given)


def singles(count: int, *, row: int = 0, first: int = 0, **fields: Any) -> list[RunningGang]:
    """Single pods of one core on a node."""
    return [running_gang(f"p{first + n}", [row], solo=True, **fields) for n in range(count)]


def test_pods_move_from_a_busy_node_to_an_idle_one_until_it_is_busy_no_more() -> None:
    outcome = moved(*singles(4), loads={"n0": load(75), "n1": load(10)})
    assert len(victims(outcome)) == 3


def test_a_node_full_of_requests_that_is_idle_keeps_its_pods() -> None:
    assert victims(moved(*singles(9), loads={"n0": load(20), "n1": load(10)})) == set()


def test_without_metrics_requests_count() -> None:
    loads = {"n0": load(20), "n1": load(10)}
    assert len(victims(moved(*singles(8), loads=loads, by=by(measured=False)))) == 3


def test_no_node_is_made_busier_than_its_target() -> None:
    outcome = moved(*singles(8), loads={"n0": load(95), "n1": load(29)})
    assert len(victims(outcome)) == 2


def test_what_came_to_a_node_too_late_to_be_measured_counts_there() -> None:
    late = load(10, unseen=Unseen(cpu=1500))
    there = singles(1, row=1, first=8, cpu=1.5)
    outcome = moved(*singles(8), *there, loads={"n0": load(95), "n1": late})
    assert len(victims(outcome)) == 2
    late = load(10, unseen=Unseen(cpu=2500))
    assert victims(moved(*singles(8), loads={"n0": load(95), "n1": late})) == set()


@pytest.mark.parametrize(
    "loads",
    [
        {"n1": load(0)},
        {"n0": load(95)},
        {"n0": load(95, age_s=301), "n1": load(0)},
        {"n0": load(95), "n1": load(0, age_s=301)},
        {},
    ],
    ids=str,
)
def test_a_node_of_unknown_or_stale_load_neither_loses_pods_nor_gets_any(
    loads: dict[str, NodeLoad],
) -> None:
    assert victims(moved(*singles(8), loads=loads)) == set()


@pytest.mark.parametrize(("age_s", "count"), [(0.0, 3), (1.0, 0)])
def test_what_was_measured_before_the_last_round_ended_has_no_effect(
    age_s: float, count: int
) -> None:
    loads = {"n0": load(75, age_s=age_s), "n1": load(10)}
    assert len(victims(moved(*singles(4), loads=loads, shuffled=NOW - WINDOW_S))) == count


def test_memory_counts_as_cpu_does() -> None:
    params = {"thresholds": {"memory": 50}, "targetThresholds": {"memory": 70}}
    loads = {"n0": load(0, 71), "n1": load(0, 49)}
    there = singles(4)
    assert victims(moved(*there, loads=loads, by=by(params=params))) == set()
    there = [on_shape(each, make_shape(cpu=1000, memory=10 * GIB)) for each in there]
    assert len(victims(moved(*there, loads=loads, by=by(params=params)))) == 1


def on_shape(gang: RunningGang, shape: PodShape) -> RunningGang:
    runs = tuple(replace(one, pod=replace(one.pod, shape=shape)) for one in gang.runs)
    return RunningGang(gang.gang, runs)


def test_pods_stay_that_the_planner_would_put_where_they_are() -> None:
    """Scores of ``nodeorder`` are of requests; without ``usage`` no idle node is preferred."""
    loads = {"n0": load(75), "n1": load(10)}
    assert len(victims(moved(*singles(4), loads=loads, by=by(prefers=False)))) == 2


def test_the_number_of_pods_is_not_measured_and_counts_all_the_same() -> None:
    params = {"thresholds": {"pods": 1}, "targetThresholds": {"pods": 4}}
    outcome = moved(*singles(6), loads={"n0": load(5), "n1": load(5)}, by=by(params=params))
    assert len(victims(outcome)) == 2


def test_only_offline_pods_move_where_nothing_else_may() -> None:
    says = [
        {},
        {"volcano.sh/preemptable": "false"},
        {"volcano.sh/preemptable": "true"},
        {"volcano.sh/qos-level": "LS"},
        {"volcano.sh/qos-level": "BE"},
    ]
    there = [
        running_gang(f"p{number}", [0], solo=True, pod={"annotations": each})
        for number, each in enumerate(says)
    ]
    busy = {"n0": load(99), "n1": load(0)}
    assert victims(moved(*there, loads=busy, by=by("offlineOnly"))) == {"p2-0", "p4-0"}
    of_group = running_gang("g", [0], solo=True, preemptable=True)
    assert victims(moved(of_group, loads=busy, by=by("offlineOnly"))) == {"g-0"}


def test_offline_pods_move_before_online_ones_of_equal_priority_and_after_lower_ones() -> None:
    offline = {"annotations": {"volcano.sh/qos-level": "BE"}}
    there = [
        *singles(2, priority=5),
        *singles(1, first=2, priority=5, pod=offline),
        *singles(1, first=3, priority=1),
    ]
    for share, gone in ((51, {"p3-0"}), (61, {"p3-0", "p2-0"})):
        assert victims(moved(*there, loads={"n0": load(share), "n1": load(0)})) == gone


def test_pods_of_a_lower_class_move_before_others_of_their_priority() -> None:
    classes = (QosClass.GUARANTEED, QosClass.BURSTABLE, QosClass.BEST_EFFORT)
    there = [
        on_shape(each, make_shape(memory=0, qos=qos))
        for each, qos in zip(singles(3), classes, strict=True)
    ]
    for share, gone in ((51, {"p2-0"}), (61, {"p2-0", "p1-0"})):
        assert victims(moved(*there, loads={"n0": load(share), "n1": load(0)})) == gone


def test_the_certificate_tells_what_is_measured_and_the_checker_knows_a_wrong_one() -> None:
    [plan] = moved(*singles(4), loads={"n0": load(60), "n1": load(0)}).plan.evictions
    certificate = json.loads(json.dumps(plan.certificate))
    [unit] = [each for each in certificate["units"] if each["witness"]]
    said = {"kind": "excess", "node": "n0", "resource": "cpu", "most": 5000, "beyond": 2000}
    assert unit["witness"] == said
    assert check(certificate) == []
    unit["witness"]["beyond"] = 900
    [(_, text)] = check(certificate)
    assert text == "is not proven to be needed: cpu 4900 is taken of n0"


@given(
    shares=st.lists(st.integers(0, 100), min_size=2, max_size=5),
    counts=st.lists(st.integers(0, 9), min_size=5, max_size=5),
)
@examples(100)
def test_no_target_ends_above_its_threshold_and_no_source_is_emptied_further_than_needed(
    shares: list[int], counts: list[int]
) -> None:
    """Each pod is taken to use the core that it requests, whatever its node measures."""
    running = [
        each
        for row, count in enumerate(counts[: len(shares)])
        for each in singles(count, row=row, first=10 * row)
    ]
    loads = {f"n{row}": load(share) for row, share in enumerate(shares)}
    outcome = moved(*running, loads=loads, nodes=len(shares))
    after = [share * 100 for share in shares]
    for plan in outcome.plan.evictions:
        for victim in plan.victims:
            row = int(victim.node[1:])
            assert after[row] > 5000
            after[row] -= 1000
        preemptor: Any = plan.certificate["preemptor"]
        for place in preemptor["places"]:
            row = int(place["node"][1:])
            assert shares[row] < 30
            after[row] += 1000
            assert after[row] <= 5000
