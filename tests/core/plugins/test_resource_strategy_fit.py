"""resource-strategy-fit: scores and rules about nodes, in Volcano's numbers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.conf_error import ConfError
from app.core.policy import Hooks, NodesNow
from app.core.tiers import build
from app.model.gang import Task
from app.model.node import Node
from app.model.resources import ResourceAxis
from app.model.snapshot import Snapshot
from app.wire.scheduler_conf import parse_scheduler_conf
from tests.builders import (
    GIB,
    make_amounts,
    make_gang,
    make_node,
    make_shape,
    make_snapshot,
    make_task,
)
from tests.core.actions.rigs import cycle
from tests.core.plugins.sessions import open_plugin
from tests.scale import examples

GPU, OTHER = "nvidia.com/gpu", "example.com/npu"
AXIS = ResourceAxis(("cpu", "memory", "pods", GPU, OTHER))
GANG = make_gang(axis=AXIS)
GB = 10**9


def node(name: str, *, cpu: int = 8000, gib: int = 8, **extra: int) -> Node:
    named = {GPU if key == "gpu" else OTHER: amount for key, amount in extra.items()}
    return make_node(name, cpu=cpu, memory=gib * GIB, extra=named)


def task(*, cpu: int = 0, gib: int = 0, gpu: int = 0) -> Task:
    requests = make_amounts(cpu=cpu, memory=gib * GIB, pods=1, **{GPU: gpu})
    return make_task("t", shape=replace(make_shape(), requests=requests), axis=AXIS)


def opened(*nodes: Node, **arguments: object) -> tuple[Hooks, Snapshot]:
    snapshot = make_snapshot(nodes=nodes, axis=AXIS)
    hooks, _ = open_plugin("resource-strategy-fit", snapshot, arguments=arguments)
    return hooks, snapshot


def nodes_of(snapshot: Snapshot, *used: dict[str, int]) -> NodesNow:
    """All nodes, with that much of each in use."""
    free = snapshot.table.allocatable.T.copy()
    for row, amounts in enumerate(used):
        for name, amount in amounts.items():
            free[AXIS.index[name], row] -= amount
    return NodesNow(np.arange(len(snapshot.table.nodes), dtype=np.intp), free)


def scores(hooks: Hooks, wanted: Task, nodes: NodesNow) -> list[float]:
    assert hooks.node_score is not None
    return [round(s, 6) for s in hooks.node_score.score(GANG, wanted, nodes).tolist()]


def test_by_default_empty_nodes_are_preferred_ten_times() -> None:
    """cpu: 6 of 8 and 4 of 8 are left, memory: 4 of 8 GiB; 1000 * (0.75 + 0.5) / 2."""
    hooks, snapshot = opened(node("a"), node("b"))
    nodes = nodes_of(snapshot, {}, {"cpu": 2000})
    assert scores(hooks, task(cpu=2000, gib=4), nodes) == [625.0, 500.0]


def test_each_resource_has_its_strategy_and_weight() -> None:
    """gpu: 3 of 4 used, twice; cpu: 6 of 8 left, once; memory is not counted."""
    resources = {
        GPU: {"type": "MostAllocated", "weight": 2},
        "cpu": {"type": "LeastAllocated", "weight": "1"},
    }
    hooks, snapshot = opened(node("a", gpu=4), resourceStrategyFitWeight="1", resources=resources)
    nodes = nodes_of(snapshot, {GPU: 2})
    assert scores(hooks, task(cpu=2000, gib=4, gpu=1), nodes) == [75.0]


def test_a_resource_that_is_not_asked_for_does_not_count_but_cpu_and_memory_do() -> None:
    resources = {GPU: {"type": "MostAllocated"}, "cpu": {"type": "MostAllocated"}}
    hooks, snapshot = opened(node("a", gpu=4), resourceStrategyFitWeight=1, resources=resources)
    assert scores(hooks, task(gib=1), nodes_of(snapshot, {GPU: 2, "cpu": 4000})) == [50.0]


def test_a_node_on_which_a_counted_resource_overflows_gets_nothing() -> None:
    hooks, snapshot = opened(node("a"), node("b"))
    assert scores(hooks, task(cpu=2000), nodes_of(snapshot, {"cpu": 7000})) == [0.0, 875.0]


def test_a_node_without_the_resource_gets_no_part_for_it() -> None:
    resources: dict[str, object] = {"cpu": {}, GPU: {}}
    hooks, snapshot = opened(node("a"), resourceStrategyFitWeight=1, resources=resources)
    assert scores(hooks, task(cpu=4000, gpu=1), nodes_of(snapshot)) == [25.0]


@pytest.mark.parametrize(
    ("names", "counts"),
    [
        (("nvidia.com/*",), True),
        (("nvidia.com/gpu*", "nvidia.*"), True),
        (("*",), False),
        (("nvidia.com/*/x",), False),
        (("example.com/*",), False),
    ],
)
def test_a_name_may_stand_for_all_that_begin_so(names: tuple[str, ...], counts: bool) -> None:
    resources = {name: {"type": "MostAllocated"} for name in names}
    hooks, snapshot = opened(node("a", gpu=4), resourceStrategyFitWeight=1, resources=resources)
    assert scores(hooks, task(gpu=1), nodes_of(snapshot)) == [25.0 if counts else 0.0]


def test_an_exact_name_goes_before_the_longest_beginning() -> None:
    most, least = {"type": "MostAllocated"}, {"type": "LeastAllocated"}

    def score(resources: dict[str, Any]) -> list[float]:
        hooks, snapshot = opened(node("a", gpu=4), resourceStrategyFitWeight=1, resources=resources)
        return scores(hooks, task(gpu=1), nodes_of(snapshot))

    assert score({"nvidia.com/gpu*": most, GPU: least}) == [75.0]
    assert score({"nvidia.com/*": most, "nvidia.*": least}) == [25.0]


def test_scarce_resources_repel_tasks_that_do_without() -> None:
    sra = {
        "enable": True,
        "resources": f"{GPU}, {OTHER}",
        "weight": 2,
        "resourceWeight": {GPU: 3},
    }
    hooks, snapshot = opened(
        node("a"), node("b", gpu=1), node("c", npu=1), resourceStrategyFitWeight=0, sra=sra
    )
    nodes = nodes_of(snapshot)
    assert scores(hooks, task(cpu=1), nodes) == [200.0, 50.0, 150.0]
    assert scores(hooks, task(gpu=1), nodes) == [0.0, 50.0, 0.0]


@pytest.mark.parametrize("sra", [None, {"enable": False, "weight": 5}, {"enable": "true"}])
def test_without_weights_it_scores_nothing(sra: object) -> None:
    hooks, _ = opened(node("a"), resourceStrategyFitWeight=0, sra=sra)
    assert hooks.node_score is None


SHARES = {
    "enable": True,
    "resources": GPU,
    "resourceProportion": {f"{GPU}.cpu": 4, f"{GPU}.memory": "8"},
}


class TestProportional:
    def allowed(self, wanted: Task, *used: dict[str, int]) -> list[bool] | None:
        machine = make_node("a", cpu=10_000, memory=20 * GB, extra={GPU: 2})
        hooks, snapshot = opened(machine, proportional=SHARES)
        assert hooks.node_rules is not None
        [rule] = hooks.node_rules
        assert rule.text == "proportional of resource nvidia.com/gpu check failed"
        if rule.key(GANG, wanted) is None:
            return None
        return [bool(each) for each in rule.allows(GANG, wanted, nodes_of(snapshot, *used))]

    def plain(self, *, cpu: int, memory: int) -> Task:
        return make_task("t", shape=make_shape(cpu=cpu, memory=memory), axis=AXIS)

    @pytest.mark.parametrize(
        ("cpu", "memory", "expected"),
        [
            (2000, 4 * GB, True),
            (2001, 4 * GB, False),
            (2000, 4 * GB + 1, False),
            (0, 0, True),
        ],
    )
    def test_a_task_leaves_what_belongs_to_the_idle_gpus(
        self, cpu: int, memory: int, expected: bool
    ) -> None:
        assert self.allowed(self.plain(cpu=cpu, memory=memory)) == [expected]

    def test_used_gpus_keep_nothing(self) -> None:
        used = {GPU: 2, "cpu": 8000}
        assert self.allowed(self.plain(cpu=2000, memory=GB), used) == [True]

    def test_a_task_that_asks_for_a_gpu_may_have_all(self) -> None:
        assert self.allowed(task(cpu=10_000, gpu=1)) is None

    def test_it_is_off_by_default(self) -> None:
        hooks, _ = opened(node("a"), proportional={**SHARES, "enable": False})
        assert hooks.node_rules is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"resourceStrategyFitWeight": "x"}, "resourceStrategyFitWeight: 'x' is not a whole"),
        ({"resources": "cpu"}, "resources: 'cpu' is not a mapping"),
        ({"resources": {"cpu": {"weight": "x"}}}, "resources.cpu.weight: 'x' is not a whole"),
        ({"sra": {"enable": "perhaps"}}, "sra.enable: 'perhaps' is not true or false"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(ConfError, match=f"plugin resource-strategy-fit: argument {text}"):
        opened(node("a"), **arguments)


STRATEGIES = st.fixed_dictionaries(
    {"type": st.sampled_from(["MostAllocated", "LeastAllocated"]), "weight": st.integers(1, 5)}
)


def formula(
    wanted: Task, free: list[int], sizes: list[int], resources: dict[str, dict[str, Any]]
) -> float:
    """Volcano's loop over what the task asks for, on one node."""
    score, weights = 0.0, 0
    for column, name in enumerate(AXIS.names):
        asked, size = int(wanted.request[column]), sizes[column]
        if name not in resources or not (asked or name in ("cpu", "memory")):
            continue
        weight = resources[name]["weight"]
        weights += weight
        if not size:
            continue
        used = size - free[column] + asked
        if used > size:
            return 0.0
        packs = resources[name]["type"] == "MostAllocated"
        score += weight * (used if packs else size - used) / size
    return score / weights * 300 if weights else 0.0


@examples(100)
@given(
    resources=st.dictionaries(
        st.sampled_from(["cpu", "memory", GPU, OTHER]), STRATEGIES, min_size=1
    ),
    sizes=st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 4)), min_size=1, max_size=5
    ),
    used=st.integers(0, 9),
    asked=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2)),
)
def test_scores_are_those_of_the_formula_for_one_node(
    resources: dict[str, dict[str, Any]],
    sizes: list[tuple[int, int, int]],
    used: int,
    asked: tuple[int, int, int],
) -> None:
    machines = (
        node(f"n{at}", cpu=cpu * 1000, gib=gib, gpu=gpu) for at, (cpu, gib, gpu) in enumerate(sizes)
    )
    hooks, snapshot = opened(*machines, resourceStrategyFitWeight=3, resources=resources)
    wanted = task(cpu=asked[0] * 1000, gib=asked[1], gpu=asked[2])
    nodes = nodes_of(
        snapshot, *({"cpu": min(used, cpu) * 500, GPU: min(used, gpu)} for cpu, _, gpu in sizes)
    )
    expected = [
        formula(wanted, nodes.free[:, row].tolist(), node_sizes, resources)
        for row, node_sizes in enumerate(snapshot.table.allocatable.tolist())
    ]
    assert scores(hooks, wanted, nodes) == pytest.approx(expected, abs=1e-5)


CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: resource-strategy-fit
    arguments:
      resources: {cpu: {type: MostAllocated}}
      proportional:
        enable: true
        resources: nvidia.com/gpu
        resourceProportion: {nvidia.com/gpu.cpu: 3}
"""


def test_a_plan_goes_by_the_configuration() -> None:
    """The tightest node is taken, and room for the GPU of another one is left."""
    conf = parse_scheduler_conf(CONF)
    machines = (node("large"), node("small", cpu=4000), node("kept", cpu=4000, gpu=1))
    waiting = tuple(
        make_task(f"g-{at}", shape=make_shape(cpu=2000, memory=0), axis=AXIS) for at in range(7)
    )
    gang = make_gang(waiting=waiting, min_member=6, axis=AXIS)
    outcome = cycle(gang, nodes=machines, by=build(conf), axis=AXIS)
    nodes = [p.node for each in outcome.plan.placed for p in each.placements]
    assert conf.warnings == ()
    assert nodes == ["small", "small", "large", "large", "large", "large"]
    assert outcome.text("g").count("proportional of resource nvidia.com/gpu check failed") == 1
