"""network-topology-aware: near to members that have places, and into domains that are full."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.conf_error import ConfError
from app.core.ledger import Ledger
from app.core.plugins import network_topology
from app.core.policy import NodeScore, NodesNow
from app.model.conf import PluginConf
from app.model.gang import Counts, Gang, Task
from app.model.ids import NodeName
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.snapshot import MemberPlace, Snapshot
from app.model.topology import HyperNode
from tests.builders import make_gang, make_pod, make_snapshot
from tests.core.actions.rigs import (
    Outcome,
    Tiers,
    cores,
    counts_of,
    cycle,
    gang_of,
    members,
    policies,
    used,
    vector,
)
from tests.core.plugins.sessions import open_plugin
from tests.running import Runs, make_running
from tests.scale import examples
from tests.topology import SOFT, hard, make_domains, node_names, racks, zone

NAME = "network-topology-aware"
RACKS = (*racks(a="n0 n1", b="n2 n3", c="n4 n5"), zone("z", "a", "b"))
"""Two racks in one zone, and a third that is in none."""


def asking(waiting: int = 1, *, running: int = 0, topology: Any = SOFT, **fields: Any) -> Gang:
    """A gang ``g`` of which so many run and so many wait, a core each."""
    tasks = members("g", waiting)
    return make_gang(
        "g",
        waiting=tasks,
        topology=topology,
        counts=counts_of(tasks, running=running),
        allocated=vector(cpu=running),
        **{"min_member": waiting + running, **fields},
    )


def places(gang: Gang, *nodes: str, sub_group: SubGroup | None = None) -> dict[Any, Any]:
    of = {} if sub_group is None else {"sub_group": sub_group}
    return {gang.key: tuple(MemberPlace(NodeName(node), "", vector(cpu=1), **of) for node in nodes)}


def snapshot_of(
    gang: Gang, tree: Sequence[HyperNode] = RACKS, sizes: Sequence[int] = (4,) * 6, **f: Any
) -> Snapshot:
    nodes = cores(*sizes)
    return make_snapshot(nodes=nodes, gangs=(gang,), domains=make_domains(nodes, tree), **f)


def scoring(snapshot: Snapshot, **arguments: object) -> tuple[NodeScore, Ledger]:
    hooks, ledger = open_plugin(NAME, snapshot, arguments=arguments)
    assert hooks.node_score is not None
    return hooks.node_score, ledger


def asked(score: NodeScore, ledger: Ledger, gang: Gang, task: Task) -> list[float] | None:
    """The score of each node; None: there is none."""
    if score.key(gang, task) is None:
        return None
    rows = np.arange(len(ledger.idle), dtype=np.intp)
    found = score.score(gang, task, NodesNow(rows, ledger.idle.T))
    return [round(float(each), 2) for each in found]


def scores(snapshot: Snapshot, gang: Gang, **arguments: object) -> list[float] | None:
    score, ledger = scoring(snapshot, **arguments)
    return asked(score, ledger, gang, gang.waiting[0])


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ((), None),
        (("n0",), [125, 125, 50, 50, 0, 0]),
        (("n0", "n1"), [140, 140, 50, 50, 0, 0]),
        (("n0", "n2"), [70, 70, 70, 70, 0, 0]),
        (("n0", "n0", "n2"), [83.33, 83.33, 66.67, 66.67, 0, 0]),
        (("n0", "n4"), [20, 20, 0, 0, 20, 20]),
        (("gone",), None),
    ],
    ids=str,
)
def test_nodes_near_to_members_are_better(
    there: tuple[str, ...], expected: list[float] | None
) -> None:
    """The zone, of three tiers, is worth half; members in the domain break ties."""
    gang = asking(3, running=len(there))
    assert scores(snapshot_of(gang, places=places(gang, *there)), gang) == expected


@pytest.mark.parametrize(
    ("tree", "there", "expected"),
    [
        ((), ("n0",), None),
        (racks(a="n0 n1", b="n2 n3"), ("n0",), [150, 150, 0, 0, 0, 0]),
        (racks(a="n0 n1", b="n1 n2"), ("n2",), [0, 100, 150, 0, 0, 0]),
        (racks(a="n0 n1", b="n1 n2"), ("n1",), [150, 150, 150, 0, 0, 0]),
        (
            (
                *racks(a="n0"),
                HyperNode("z", 3, members=(*node_names("n1", "n2"), *node_names("n0"))),
            ),
            ("n1",),
            [33.33, 150, 150, 0, 0, 0],
        ),
    ],
    ids=["no HyperNodes", "one tier", "overlap", "overlap, by name", "mixed depth"],
)
def test_trees_of_any_shape_are_scored(
    tree: Sequence[HyperNode], there: tuple[str, ...], expected: list[float] | None
) -> None:
    gang = asking(1, running=1)
    assert scores(snapshot_of(gang, tree, places=places(gang, *there)), gang) == expected


def test_the_weight_scales_and_none_turns_it_off() -> None:
    gang = asking(1, running=1)
    snapshot = snapshot_of(gang, places=places(gang, "n0"))
    assert scores(snapshot, gang, weight=10) == [1500, 1500, 500, 500, 0, 0]
    hooks, _ = open_plugin(NAME, snapshot, arguments={"weight": 0})
    assert hooks.node_score is None
    assert hooks.domain_score is None


def test_a_place_given_in_the_cycle_counts_until_it_is_taken_back() -> None:
    gang = asking(2)
    score, ledger = scoring(snapshot_of(gang))
    first, second = gang.waiting
    assert asked(score, ledger, gang, first) is None
    with ledger.trial():
        ledger.place(gang, first, node=2)
        assert asked(score, ledger, gang, second) == [50, 50, 150, 150, 0, 0]
    assert asked(score, ledger, gang, second) is None


@pytest.mark.parametrize(
    ("counted", "expected"),
    [(True, [125, 125, 50, 50, 0, 0]), (False, [100, 100, 75, 75, 0, 0])],
    ids=["counts", "left before"],
)
def test_a_member_that_is_to_go_draws_no_others(counted: bool, expected: list[float]) -> None:
    """A member that terminates has left the group, so its end takes nothing away."""
    gang = asking(1, running=3)
    there = ("n0", "n0", "n2") if not counted else ("n0", "n2")
    runs = Runs(make_pod("p", node=NodeName("n2")), 2, gang.key, counted=counted)
    snapshot = snapshot_of(gang, places=places(gang, *there), running=make_running([runs]))
    score, ledger = scoring(snapshot)
    before = asked(score, ledger, gang, gang.waiting[0])
    with ledger.trial():
        ledger.evict(0)
        found = asked(score, ledger, gang, gang.waiting[0])
    assert found == expected
    assert asked(score, ledger, gang, gang.waiting[0]) == before


def test_members_of_a_sub_group_are_near_to_their_own() -> None:
    first, second = SubGroup("p", "1"), SubGroup("p", "2")
    tasks = members("g", 2)
    gang = make_gang(
        "g",
        waiting=tasks,
        topology=SOFT,
        sub_groups=(SubGroupPolicy("p", topology=hard(1)),),
        sub_group_of={tasks[0].uid: first, tasks[1].uid: second},
        sub_group_valid={first: 2, second: 1},
        counts=Counts(pending=2, running=1),
        min_member=3,
    )
    score, ledger = scoring(snapshot_of(gang, places=places(gang, "n0", sub_group=first)))
    assert asked(score, ledger, gang, tasks[0]) == [150, 150, 50, 50, 0, 0]
    assert asked(score, ledger, gang, tasks[1]) == [133.33, 133.33, 50, 50, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [61.11, 61.11, 33.33, 33.33, 51.39, 51.39]),
        ({"hypernode.binpack.normal-pod.fading": 0}, [75, 75, 25, 25, 12.5, 12.5]),
        ({"hypernode.binpack.normal-pod.fading": 1}, [59.38, 59.38, 34.38, 34.38, 56.25, 56.25]),
        ({"hypernode.binpack.normal-pod.enable": False}, None),
        ({"hypernode.binpack.cpu": 0}, None),
    ],
    ids=str,
)
def test_other_pods_go_where_domains_are_full(
    arguments: dict[str, object], expected: list[float] | None
) -> None:
    """With the pod 6, 2 and 1 of the 8 cores of each rack are used, and 7 of the zone's 16.

    The third rack is in no zone, which counts as a full one.
    """
    gang = gang_of("g", 1)
    snapshot = snapshot_of(gang, used=used(cores(*(4,) * 6), n0=4, n1=1, n2=1))
    assert scores(snapshot, gang, **arguments) == expected


def test_a_domain_without_room_is_worth_nothing() -> None:
    gang = gang_of("g", 1, cpu=4)
    snapshot = snapshot_of(gang, racks(a="n0 n1"), used=used(cores(*(4,) * 6), n0=3, n1=2))
    assert scores(snapshot, gang) == [0, 0, 100, 100, 100, 100]


def test_domains_fill_as_places_are_given() -> None:
    gang = gang_of("g", 3)
    score, ledger = scoring(snapshot_of(gang, racks(a="n0 n1", b="n2 n3", c="n4 n5")))
    before = asked(score, ledger, gang, gang.waiting[0])
    with ledger.trial():
        ledger.place(gang, gang.waiting[0], node=3)
        assert asked(score, ledger, gang, gang.waiting[1]) == [12.5, 12.5, 25, 25, 12.5, 12.5]
    assert asked(score, ledger, gang, gang.waiting[0]) == before == [12.5] * 6


@given(st.data())
@examples(300)
def test_what_is_followed_equals_what_is_worked_out_anew(data: st.DataObject) -> None:
    gang = asking(6)
    other = gang_of("o", 6)
    nodes = cores(*(4,) * 6)
    snapshot = make_snapshot(nodes=nodes, gangs=(gang, other), domains=make_domains(nodes, RACKS))
    score, ledger = scoring(snapshot)
    tasks = [(gang, task) for task in gang.waiting[:5]] + [(other, t) for t in other.waiting[:5]]
    start = 0
    assert snapshot.domains is not None
    where = network_topology.Where(snapshot.domains)
    for step in data.draw(st.lists(st.integers(0, 6), max_size=12)):
        if step == 6:
            ledger.undo_since(start)
            tasks = [(gang, t) for t in gang.waiting[:5]] + [(other, t) for t in other.waiting[:5]]
        elif tasks:
            of, task = tasks.pop(data.draw(st.integers(0, len(tasks) - 1)))
            ledger.place(of, task, node=step)
        for of in (gang, other):
            fresh_hooks = network_topology.Network(ledger, _SETTING, where)
            fresh = NodeScore(fresh_hooks.key, fresh_hooks.score)
            last = of.waiting[-1]
            assert asked(score, ledger, of, last) == asked(fresh, ledger, of, last)


_SETTING = network_topology.Setting(1, {"cpu": 1, "memory": 1}, 0.8)


# --- whole cycles --------------------------------------------------------------------------------


def plan(
    *gangs: Gang, sizes: Sequence[int], tree: Sequence[HyperNode] = RACKS, **f: Any
) -> Outcome:
    nodes = cores(*sizes)
    conf = PluginConf(NAME, arguments=f.pop("arguments", {}), switches=f.pop("switches", {}))
    tiers: Tiers = (("priority", "gang"), ("predicates", conf))
    return cycle(*gangs, nodes=nodes, domains=make_domains(nodes, tree), by=policies(tiers), **f)


def racks_of(outcome: Outcome, gang: str = "g") -> list[str]:
    return sorted("aabbcc"[int(node[1:])] for node in outcome.nodes(gang).values())


def test_the_fuller_domain_goes_before_the_one_with_less_to_spare() -> None:
    sizes = (10, 10, 2, 2, 0, 0)
    taken = used(cores(*sizes), n0=10, n1=5)
    gang = asking(2, topology=hard(1))
    switches = {"enabledHyperNodeOrder": False}
    assert set(racks_of(plan(gang, sizes=sizes, used=taken))) == {"a"}
    assert set(racks_of(plan(gang, sizes=sizes, used=taken, switches=switches))) == {"b"}


def test_a_soft_gang_that_lies_apart_keeps_its_pieces_together() -> None:
    """Seven members do not fit the zone, whose racks fill up before the third one is used."""
    outcome = plan(asking(7), sizes=(2, 1, 2, 1, 2, 2))
    assert len(outcome.nodes("g")) == 7
    counts = [racks_of(outcome).count(rack) for rack in "abc"]
    assert sorted(counts) in ([0, 3, 4], [1, 3, 3])


def test_a_member_that_comes_back_goes_where_the_others_are() -> None:
    gang = asking(1, running=2)
    outcome = plan(gang, sizes=(4,) * 6, places=places(gang, "n3", "n3"), tree=RACKS)
    assert racks_of(outcome) == ["b"]


def test_members_beyond_the_minimum_are_near_as_well() -> None:
    gang = asking(4, min_member=2)
    assert len(set(racks_of(plan(gang, sizes=(4,) * 6)))) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"weight": "much"}, "weight: 'much' is not a whole number"),
        ({"hypernode.binpack.normal-pod.enable": 3}, "is not true or false"),
        ({"hypernode.tiers": "a, b, a"}, "hypernode.tiers: names a label twice"),
        ({"hypernode.gradient.evict.max-hypernodes": "all"}, "is not a whole number"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_are_refused(
    arguments: dict[str, object], problem: str
) -> None:
    with pytest.raises(ConfError, match=problem):
        network_topology.configure(PluginConf(NAME, arguments=arguments))
