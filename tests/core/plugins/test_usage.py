"""usage: busy nodes take no pods, and idle ones are better."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.conf_error import ConfError
from app.core.plugins import catalogue
from app.core.policy import NodesNow
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Gang
from app.model.ids import NodeName
from app.model.load import NodeLoad, Unseen
from app.model.reason import Cause
from app.wire.scheduler_conf import parse_scheduler_conf
from tests.builders import GIB, make_gang, make_node, make_shape, make_snapshot
from tests.core.actions.rigs import Outcome, cycle, gang_of, policies
from tests.core.plugins.sessions import open_plugin, sized_task
from tests.scale import examples

NOW = 1_000_000.0
CPU = "the CPU load of the node exceeds the upper limit."
ONLY_CPU = {"usage.weight": 1, "memory.weight": 0}
BURSTS = {"estimator": {"burst_ratio": "0.5"}}
RISKY = {"estimator": {"risk_factor": 100}}
MEMORY = "the memory load of the node exceeds the upper limit."


def load(
    cpu: float, memory: float = 0.0, unseen: Unseen | None = None, *, age_s: float = 0.0
) -> NodeLoad:
    return NodeLoad(cpu, memory, at=NOW - age_s, window_s=600.0, unseen=unseen or Unseen())


def loads(**by_node: NodeLoad) -> dict[NodeName, NodeLoad]:
    return {NodeName(name): each for name, each in by_node.items()}


def plan(gang: Gang, known: dict[NodeName, NodeLoad], **arguments: Any) -> Outcome:
    """On three nodes of 8 cores, ``n0`` to ``n2``."""
    plugin = PluginConf("usage", arguments=arguments)
    nodes = [make_node(f"n{number}", cpu=8000) for number in range(3)]
    by = policies((("priority", "gang"), ("predicates", plugin)))
    return cycle(gang, nodes=nodes, by=by, now=NOW, loads=known)


def scores(known: dict[NodeName, NodeLoad], **arguments: Any) -> list[float]:
    """Of nodes of 10 cores and 100 GiB that are named."""
    nodes = tuple(make_node(name, cpu=10_000, memory=100 * GIB) for name in sorted(known))
    snapshot = make_snapshot(nodes=nodes, loads=known)
    hooks, _ = open_plugin("usage", snapshot, now=NOW, arguments=arguments)
    assert hooks.node_score is not None
    rows = np.arange(len(nodes))
    now = NodesNow(rows, snapshot.table.allocatable.T)
    found: list[float] = hooks.node_score.score(make_gang("g"), sized_task(), now).tolist()
    return [round(each, 6) for each in found]


@pytest.mark.parametrize(
    ("known", "allowed"),
    [
        ({}, True),
        ({"n0": load(80, 80)}, True),
        ({"n0": load(80.1, 0)}, False),
        ({"n0": load(0, 80.1)}, False),
        ({"n0": load(100, 100, age_s=300)}, False),
        ({"n0": load(100, 100, age_s=301)}, True),
        ({"n0": load(100, 100, age_s=-301)}, True),
        ({"n1": load(100, 100)}, True),
    ],
    ids=str,
)
def test_a_node_that_is_busier_than_a_threshold_takes_no_pod(
    known: dict[str, NodeLoad], allowed: bool
) -> None:
    by = policies((("priority", "gang"), ("predicates", PluginConf("usage"))))
    outcome = cycle(gang_of("g", 1), nodes=[make_node("n0")], by=by, now=NOW, loads=loads(**known))
    assert bool(outcome.nodes("g")) is allowed


@pytest.mark.parametrize("value", [50, "50", 50.0, " 50 "])
def test_thresholds_may_be_text_and_each_counts_alone(value: object) -> None:
    known = loads(n0=load(51), n1=load(0, 51), n2=load(50, 50))
    placed = plan(gang_of("g", 1), known, thresholds={"cpu": value, "mem": value})
    assert placed.nodes("g") == {"g-0": "n2"}
    placed = plan(gang_of("g", 1), loads(n0=load(0, 90)), thresholds={"cpu": value})
    assert placed.nodes("g") != {"g-0": "n0"}


def test_a_gang_that_no_node_is_idle_enough_for_is_told_the_loads() -> None:
    known = loads(n0=load(95), n1=load(90.25), n2=load(10, 99))
    outcome = plan(gang_of("g", 1), known)
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.NODE_LOAD
    assert {count.text: count.nodes for count in refusal.nodes} == {CPU: 2, MEMORY: 1}
    assert "cpu load of at most 80 % allowed; the least is 90.2 %" in outcome.text("g")


def test_where_the_predicate_is_off_busy_nodes_are_only_worse() -> None:
    plugin = PluginConf("usage", switches={"enablePredicate": False})
    by = policies((("priority", "gang"), ("predicates", plugin)))
    nodes = [make_node("n0"), make_node("n1")]
    known = loads(n0=load(95), n1=load(90))
    assert cycle(gang_of("g", 1), nodes=nodes, by=by, now=NOW, loads=known).nodes("g") == {
        "g-0": "n1"
    }


@pytest.mark.parametrize(
    ("known", "arguments", "expected"),
    [
        (load(0, 0), {}, 500.0),
        (load(100, 100), {}, 0.0),
        (load(50, 0), {}, 375.0),
        (load(0, 50), {"usage.weight": 1}, 75.0),
        (load(40, 0), {"usage.weight": "1", "cpu.weight": "3", "memory.weight": 1}, 70.0),
        (load(40, 90), {"usage.weight": 1, "memory.weight": 0}, 60.0),
        (load(150, 0), {"usage.weight": 1}, 50.0),
        (load(0, 0, age_s=301), {}, 0.0),
        # A core asked of ten: 0.7 of it is expected, 7 %.
        (load(0, 0, Unseen(cpu=1000)), {"usage.weight": 1, "memory.weight": 0}, 93.0),
        (load(0, 0, Unseen(memory=10 * GIB)), {"usage.weight": 1, "cpu.weight": 0}, 93.0),
        (load(0, 0, Unseen(no_cpu=4)), {"usage.weight": 1, "memory.weight": 0}, 90.0),
        # From 60 % on what is expected counts 1.2 times.
        (load(53, 0, Unseen(cpu=1000)), {"usage.weight": 1, "memory.weight": 0}, 38.6),
        (load(52, 0, Unseen(cpu=1000)), {"usage.weight": 1, "memory.weight": 0}, 41.0),
        # A core more that limits allow: nothing of it is expected, unless the conf says so.
        (load(0, 0, Unseen(cpu=1000, cpu_burst=1000)), ONLY_CPU, 93.0),
        (load(0, 0, Unseen(cpu=1000, cpu_burst=1000)), ONLY_CPU | BURSTS, 88.0),
        (load(52, 0, Unseen(cpu=1000, cpu_burst=1000)), ONLY_CPU | BURSTS, 33.6),
        # At a high risk no more than limits allow, and without limits no more than requests.
        (load(90, 0, Unseen(cpu=500)), ONLY_CPU | RISKY, 5.0),
        (load(90, 0, Unseen(cpu=500, cpu_burst=200)), ONLY_CPU | RISKY, 3.0),
        (load(90, 0, Unseen(no_cpu=1)), ONLY_CPU | RISKY, 0.0),
        (
            load(0, 0, Unseen(memory=10 * GIB, memory_burst=10 * GIB)),
            {"usage.weight": 1, "cpu.weight": 0} | BURSTS,
            88.0,
        ),
        (
            load(0, 0, Unseen(cpu=1000, no_cpu=1)),
            {
                "usage.weight": 1,
                "memory.weight": 0,
                "estimator": {"request_ratio": "0.5", "be_cpu": "500m", "risk_threshold": 1},
            },
            90.0,
        ),
        (
            load(0, 0, Unseen(no_memory=1)),
            {"usage.weight": 1, "cpu.weight": 0, "estimator": {"be_mem": "10Gi"}},
            90.0,
        ),
    ],
    ids=str,
)
def test_the_score_is_what_is_idle(
    known: NodeLoad, arguments: dict[str, Any], expected: float
) -> None:
    assert scores(loads(n=known), **arguments) == [expected]


def test_a_node_of_unknown_load_scores_nothing() -> None:
    assert scores(loads(a=load(90), b=load(0, age_s=999))) == [275.0, 0.0]


def test_what_the_cycle_decided_counts_before_it_is_measured() -> None:
    known = loads(n0=load(10), n1=load(11), n2=load(90))
    placed = plan(gang_of("g", 4), known)
    assert sorted(placed.nodes("g").values()) == ["n0", "n0", "n1", "n1"]


@pytest.mark.parametrize(("ratio", "nodes"), [(0, ["n0", "n0"]), ("1", ["n0", "n1"])])
def test_limits_count_of_what_the_cycle_decided(ratio: object, nodes: list[str]) -> None:
    gang = gang_of("g", 2, cpu=0.1)
    shape = make_shape(cpu=100, memory=0, burst=(("cpu", 3900),))
    gang = replace(gang, waiting=tuple(replace(each, shape=shape) for each in gang.waiting))
    known = loads(n0=load(10), n1=load(15), n2=load(90))
    placed = plan(gang, known, estimator={"burst_ratio": ratio})
    assert sorted(placed.nodes("g").values()) == nodes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"thresholds": 80}, "argument thresholds: 80 is not a mapping"),
        ({"thresholds": {"cpu": "much"}}, "argument thresholds.cpu: 'much' is not a number"),
        ({"thresholds": {"mem": -1}}, "argument thresholds.mem: -1 is less than nothing"),
        ({"thresholds": {"memory": 1}}, "thresholds.memory: unknown, known are cpu, mem"),
        ({"usage.weight": "5.5"}, "argument usage.weight: '5.5' is not a whole number"),
        ({"cpu.weight": -1}, "argument cpu.weight: -1 is less than nothing"),
        ({"estimator": []}, r"argument estimator: \[\] is not a mapping"),
        ({"estimator": {"be_cpu": "much"}}, "estimator.be_cpu: 'much' is not a quantity"),
        ({"estimator": {"risk_factor": [1]}}, r"estimator.risk_factor: \[1\] is not a number"),
        ({"estimator": {"burst_ratio": "-0.5"}}, "burst_ratio: -0.5 is less than nothing"),
        ({"estimator": {"burst_ratio": 1.5}}, "burst_ratio: 1.5 is more than all"),
        ({"estimator": {"request_ratio": 2}}, "request_ratio: 2 is more than all"),
        ({"estimator": {"ratio": 1}}, "argument estimator.ratio: unknown, known are request"),
    ],
    ids=str,
)
def test_a_bad_argument_is_refused_with_its_key(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfError, match=f"plugin usage: .*{said}|plugin usage: {said}"):
        catalogue.PLUGINS["usage"](PluginConf("usage", arguments=arguments))


def test_nothing_is_odd_about_volcanos_example() -> None:
    conf = parse_scheduler_conf("""
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: usage
    enablePredicate: false
    arguments:
      usage.weight: 5
      cpu.weight: 1
      memory.weight: 1
      thresholds:
        cpu: 80
        mem: 80
metrics:
  type: prometheus
  address: http://prometheus:9090
  interval: 30s
""")
    assert build(conf).conf.warnings == ()


@given(
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 120)), min_size=1, max_size=6),
    st.tuples(st.integers(0, 5), st.integers(1, 5)),
)
@examples(100)
def test_the_score_is_volcanos_formula(
    shares: list[tuple[int, int]], weights: tuple[int, int]
) -> None:
    known = loads(**{f"n{at}": load(*each) for at, each in enumerate(shares)})
    cpu, memory = weights
    expected = [
        ((1 - min(a / 100, 1)) * cpu + (1 - min(b / 100, 1)) * memory) / (cpu + memory) * 500
        for a, b in shares
    ]
    found = scores(known, **{"cpu.weight": cpu, "memory.weight": memory})
    assert found == pytest.approx(expected, abs=1e-5)


def test_without_weights_there_is_no_score() -> None:
    snapshot = make_snapshot(nodes=(make_node("n"),))
    nothing: list[dict[str, object]] = [
        {"usage.weight": 0},
        {"cpu.weight": 0, "memory.weight": 0},
    ]
    for zero in nothing:
        hooks, _ = open_plugin("usage", snapshot, arguments=zero)
        assert hooks.node_score is None
    build(SchedulerConf(actions=("allocate",), tiers=((PluginConf("usage"),),)))
