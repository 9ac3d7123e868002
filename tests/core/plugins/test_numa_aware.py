"""numa-aware: no pod goes where its kubelet would refuse it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.policy import NodesNow
from app.model.conf import PluginConf
from app.model.exchange import ANY_EQUAL
from app.model.gang import Gang, Task
from app.model.node import Node
from app.model.numa import Cpus, NumaLayout, NumaNeed, NumaNode, NumaPolicy
from app.model.reason import Cause
from app.model.shape import PodShape
from app.model.snapshot import Snapshot
from tests.builders import GIB, make_gang, make_node, make_pod, make_shape, make_snapshot
from tests.core.actions.rigs import Outcome, cycle, members, policies, used
from tests.core.plugins.sessions import open_plugin
from tests.running import Runs, make_running
from tests.scale import examples

UNSET, NONE, BEST, RESTRICTED, SINGLE = NumaPolicy
EMPTY = "numa info is empty"
NOT_STATIC = "cpu manager policy isn't static"
OTHER = "task topology policy is different with node"
REFUSED = "container cannot be assigned by numa"


def numa(
    *free: int,
    policy: NumaPolicy = SINGLE,
    static: bool = True,
    size: int = 8,
    coming: Cpus | None = None,
) -> NumaNode:
    """A node with NUMA nodes of ``size`` cpus, so many of them free."""
    ids = tuple(range(len(free)))
    layout = NumaLayout(policy, static, ids, (size,) * len(free))
    return NumaNode(layout, free, coming or (0,) * len(free))


def pod_shape(*cpus: int, policy: NumaPolicy = SINGLE) -> PodShape:
    return make_shape(cpu=sum(cpus) * 1000, memory=0, numa=NumaNeed(policy, cpus))


def gang(name: str, count: int, shape: PodShape, **fields: Any) -> Gang:
    return make_gang(name, waiting=members(name, count, shape=shape), **fields)


def machines(count: int, cpu: int = 16) -> tuple[Node, ...]:
    return tuple(make_node(f"n{i}", cpu=cpu * 1000, memory=1000 * GIB) for i in range(count))


def plan(*gangs: Gang, on: tuple[NumaNode | None, ...], **snapshot: Any) -> Outcome:
    nodes = machines(len(on))
    known = {node.name: found for node, found in zip(nodes, on, strict=True) if found is not None}
    by = policies((("priority", "gang"), ("predicates", PluginConf("numa-aware"))))
    return cycle(*gangs, nodes=nodes, by=by, numa=known, **snapshot)


@pytest.mark.parametrize(
    ("shape", "node", "text"),
    [
        (pod_shape(4), numa(8, 8), ""),
        (pod_shape(4), numa(3, 4), ""),
        (pod_shape(4), numa(3, 3), REFUSED),
        (pod_shape(4), None, EMPTY),
        (pod_shape(4), numa(8, 8, static=False), NOT_STATIC),
        (pod_shape(4), numa(8, 8, policy=BEST), OTHER),
        (pod_shape(4, policy=BEST), numa(3, 3, policy=BEST), ""),
        (pod_shape(4, policy=RESTRICTED), numa(3, 3, policy=RESTRICTED), REFUSED),
        (pod_shape(9, policy=RESTRICTED), numa(5, 5, policy=RESTRICTED), ""),
        # without a policy of its own it may go anywhere, and obeys the node's
        (pod_shape(4, policy=UNSET), None, ""),
        (pod_shape(4, policy=UNSET), numa(3, 3), REFUSED),
        (pod_shape(4, policy=NONE), numa(3, 3), REFUSED),
        (pod_shape(4, policy=UNSET), numa(3, 3, static=False), ""),
        (pod_shape(4, policy=UNSET), numa(3, 3, policy=NONE), ""),
        (pod_shape(4, policy=UNSET), numa(3, 3, policy=UNSET), ""),
        # not of the class Guaranteed, or without whole cpus
        (make_shape(cpu=4000), numa(0, 0), ""),
        # containers one after the other
        (pod_shape(5, 5), numa(8, 8), ""),
        (pod_shape(5, 5, 5), numa(8, 8), REFUSED),
    ],
    ids=str,
)
def test_where_a_pod_may_go(shape: PodShape, node: NumaNode | None, text: str) -> None:
    outcome = plan(gang("g", 1, shape), on=(node,))
    if not text:
        assert outcome.nodes("g") == {"g-0": "n0"}
        return
    assert [count.text for count in outcome.refusal("g").nodes] == [text]
    assert outcome.refusal("g").cause is Cause.NUMA


def test_a_refusal_has_the_numbers_of_the_best_numa_node() -> None:
    outcome = plan(gang("g", 1, pod_shape(8)), on=(numa(6, 5), numa(2, 7), numa(1, 1)))
    assert outcome.text("g") == (
        f"0/3 nodes are available: 3 {REFUSED}; no NUMA node with 8 free cpus; largest has 7"
    )


def test_a_refusal_of_several_numa_nodes_has_their_number() -> None:
    shape = pod_shape(16, policy=RESTRICTED)
    outcome = plan(gang("g", 1, shape), on=(numa(6, 5, 6, 5, policy=RESTRICTED),))
    assert outcome.text("g").endswith("no 2 NUMA nodes with 16 free cpus; the largest 2 have 12")


def test_a_refusal_for_policies_names_them() -> None:
    on = (numa(8, 8, policy=BEST), None, numa(8, 8, static=False))
    text = plan(gang("g", 1, pod_shape(4)), on=on).text("g")
    assert text == (
        f"0/3 nodes are available: 1 {NOT_STATIC}, 1 {EMPTY}, 1 {OTHER}; "
        "topology policy single-numa-node asked, nodes have best-effort"
    )


def test_where_cpus_are_short_that_is_said() -> None:
    nodes = machines(1)
    outcome = plan(gang("g", 1, pod_shape(8)), on=(numa(2, 2),), used=used(nodes, n0=12))
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_RESOURCES


def test_a_pod_for_which_memory_is_short_tells_nothing_of_one_that_needs_as_many_cpus() -> None:
    need = NumaNeed(SINGLE, (4,))
    large, small = (make_shape(cpu=4000, memory=m * GIB, numa=need) for m in (2000, 1))
    outcome = plan(gang("large", 1, large), gang("small", 1, small), on=(numa(3, 3),))
    assert outcome.nodes("small") == {}
    assert REFUSED in outcome.text("small")


def test_members_of_a_gang_share_out_the_numa_nodes() -> None:
    """A node of two NUMA nodes takes two members of five cpus, though it has cpus for three."""
    outcome = plan(gang("g", 5, pod_shape(5)), on=(numa(8, 8), numa(8, 8), numa(8, 8)))
    found = sorted(outcome.nodes("g").values())
    assert len(found) == 5
    assert all(found.count(node) <= 2 for node in found)
    assert not plan(gang("g", 5, pod_shape(5)), on=(numa(8, 8), numa(8, 8))).nodes("g")


def test_what_one_gang_gave_up_another_has() -> None:
    big, small = gang("big", 3, pod_shape(5)), gang("small", 2, pod_shape(5), created=1.0)
    outcome = plan(big, small, on=(numa(8, 8),))
    assert (outcome.nodes("big"), len(outcome.nodes("small"))) == ({}, 2)


def test_a_node_where_the_cpus_are_of_fewer_numa_nodes_is_better() -> None:
    shape = pod_shape(8, policy=BEST)
    on = (numa(4, 4, policy=BEST), numa(1, 8, policy=BEST), numa(5, 5, policy=BEST))
    assert plan(gang("g", 1, shape), on=on).nodes("g") == {"g-0": "n1"}


def scores(shape: PodShape, *on: NumaNode | None, weight: int = 1) -> list[float] | None:
    hooks, snapshot = opened(*on, weight=weight)
    of = gang("g", 1, shape)
    [task] = of.waiting
    score = hooks.node_score
    if score is None or score.key(of, task) is None:
        return None
    nodes = NodesNow(np.arange(len(on)), snapshot.table.allocatable.T)
    return [round(each, 3) for each in score.score(of, task, nodes).tolist()]


def opened(*on: NumaNode | None, weight: int = 1) -> tuple[Any, Snapshot]:
    nodes = machines(len(on), cpu=64)
    known = {node.name: found for node, found in zip(nodes, on, strict=True) if found is not None}
    snapshot = make_snapshot(nodes=nodes, numa=known)
    hooks, _ = open_plugin("numa-aware", snapshot, arguments={"weight": weight})
    return hooks, snapshot


def test_scores_count_numa_nodes() -> None:
    on = (
        numa(8, 8, 8, 8, policy=BEST),
        numa(4, 4, 4, 4, policy=BEST),
        numa(3, 3, 3, 3, policy=BEST),
        numa(1, 1, 1, 1, policy=BEST),
        None,
    )
    shape = pod_shape(8, policy=BEST)
    assert scores(shape, *on) == [100, 66.667, 33.333, 0, 0]
    assert scores(shape, *on, weight=3) == [300, 200, 100, 0, 0]
    assert scores(shape, *on, weight=0) is None
    assert scores(pod_shape(8, policy=UNSET), *on) is None


def test_equal_pods_exchange_places_and_free_room_does_not_do() -> None:
    outcome = plan(gang("g", 2, pod_shape(5)), on=(numa(8, 8),))
    classes = {p.exchange for d in outcome.decisions("g") for p in d.placements}
    assert classes == {ANY_EQUAL.within("NUMA nodes")}
    plain = plan(gang("g", 1, pod_shape(5, policy=UNSET)), on=(None,))
    assert [p.exchange for d in plain.decisions("g") for p in d.placements] == [ANY_EQUAL]


# --- the ledger ----------------------------------------------------------------------------------


class OnLedger:
    """One node of two NUMA nodes, and what is allowed there as the ledger moves."""

    def __init__(self, *free: int, **fields: Any) -> None:
        nodes = machines(1, cpu=64)
        self.runs = make_pod("runs", node=nodes[0].name, phase="Running", shape=pod_shape(5))
        self.gang = make_gang("old")
        self.snapshot = make_snapshot(
            nodes=nodes,
            numa={nodes[0].name: numa(*free, **fields)},
            numa_taken={self.runs.uid: (5, 0)},
            gangs=(self.gang,),
            running=make_running([Runs(self.runs, 0, self.gang.key)]),
        )
        hooks, self.ledger = open_plugin("numa-aware", self.snapshot)
        assert hooks.node_rules is not None
        self._rule = hooks.node_rules[-1]

    def takes(self, *cpus: int, ahead: bool = False) -> bool:
        of = gang("g", 1, pod_shape(*cpus))
        now = NodesNow(np.arange(1), self.snapshot.table.allocatable.T, ahead)
        return bool(self._rule.allows(of, of.waiting[0], now)[0])

    def place(self, *cpus: int, pipelined: bool = False) -> None:
        of = gang("g", 1, pod_shape(*cpus))
        put = self.ledger.pipeline if pipelined else self.ledger.place
        put(of, of.waiting[0], node=0)


def test_evicted_pods_give_back_what_is_about_to_be_free() -> None:
    rig = OnLedger(3, 2)
    assert not rig.takes(6, ahead=True)
    with rig.ledger.trial():
        rig.ledger.evict(0)
        assert rig.takes(6, ahead=True)
        assert not rig.takes(6)
    assert not rig.takes(6, ahead=True)


def test_pipelined_places_take_what_is_about_to_be_free() -> None:
    rig = OnLedger(3, 2)
    rig.ledger.evict(0)
    with rig.ledger.trial():
        rig.place(6, pipelined=True)
        assert not rig.takes(3, ahead=True)
        assert rig.takes(3)
    assert rig.takes(8, ahead=True)


def test_terminating_pods_give_back_what_they_have() -> None:
    rig = OnLedger(3, 2, coming=(4, 0))
    assert (rig.takes(7), rig.takes(7, ahead=True)) == (False, True)


def test_an_undone_place_gives_its_cpus_back() -> None:
    rig = OnLedger(8, 8)
    with rig.ledger.trial():
        rig.place(5)
        rig.place(5)
        assert not rig.takes(4)
    assert rig.takes(8)


@examples(200)
@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=8))
def test_what_is_left_is_what_a_fresh_look_finds(steps: list[tuple[int, bool]]) -> None:
    """After any places and roll-backs the node takes what it takes with only the kept ones."""
    rig, fresh = OnLedger(8, 8), OnLedger(8, 8)
    for cpus, keeps in steps:
        with rig.ledger.trial() as trial:
            if rig.takes(cpus):
                rig.place(cpus)
            rig.takes(1)
            if keeps:
                trial.keep()
        if keeps and fresh.takes(cpus):
            fresh.place(cpus)
    sizes = range(1, 9)
    assert [rig.takes(cpus) for cpus in sizes] == [fresh.takes(cpus) for cpus in sizes]


def test_tasks_without_needs_are_no_concern_of_the_rules() -> None:
    hooks, _ = opened(numa(8, 8))
    of = gang("g", 1, make_shape())
    task: Task = of.waiting[0]
    assert [rule.key(of, task) for rule in hooks.node_rules] == [None] * 4
    assert hooks.place_class(of, task, 0) == ANY_EQUAL
