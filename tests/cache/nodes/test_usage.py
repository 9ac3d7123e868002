"""Who takes how much where: one charge per holder, sums that follow, rows that are given back."""

import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from app.cache.nodes.usage import VECTORS_KEPT, NodeUsage
from app.model.amounts import Amounts
from app.model.ids import NodeName
from app.model.node import Taint
from app.model.shape import Toleration
from tests.builders import make_amounts, make_node, make_shape

ONE = make_amounts(cpu=1000, pods=1)
TWO = make_amounts(cpu=2000, pods=1)
GPU = make_amounts(cpu=1000, pods=1, **{"nvidia.com/gpu": 1})
N, M = NodeName("n"), NodeName("m")
ANYWHERE = make_shape(tolerations=(Toleration(exists=True),))


@pytest.fixture
def node_usage() -> NodeUsage:
    node_usage = NodeUsage()
    node_usage.set_node(make_node("n", cpu=4000))
    node_usage.set_node(make_node("m", cpu=2000))
    return node_usage


def charge(
    node_usage: NodeUsage,
    holder: str,
    node: NodeName = N,
    request: Amounts = ONE,
    *,
    reserved: bool = False,
    releasing: bool = False,
) -> bool:
    return node_usage.charge(holder, node, request, reserved=reserved, releasing=releasing)


def idle(node_usage: NodeUsage, node: NodeName = N) -> int:
    return int(node_usage.idle(node)[0])


def test_a_charge_takes_room_and_a_discharge_gives_it_back(node_usage: NodeUsage) -> None:
    assert charge(node_usage, "a")
    assert idle(node_usage) == 3000
    assert node_usage.discharge("a")
    assert idle(node_usage) == 4000
    assert not node_usage.discharge("a")


def test_charging_again_moves_or_resizes_and_never_counts_twice(node_usage: NodeUsage) -> None:
    charge(node_usage, "a")
    assert not charge(node_usage, "a")
    assert charge(node_usage, "a", request=TWO)
    assert idle(node_usage) == 2000
    assert charge(node_usage, "a", M)
    assert (idle(node_usage), idle(node_usage, M)) == (4000, 1000)
    assert node_usage.holders(M) == {"a"}
    assert node_usage.holders(N) == frozenset()


@pytest.mark.parametrize("where", [M, N], ids=["on two nodes", "on one"])
def test_equal_holders_change_nodes_and_no_sum_changes(
    node_usage: NodeUsage, where: NodeName
) -> None:
    charge(node_usage, "a", N, reserved=True)
    charge(node_usage, "b", where, reserved=True)
    before = idle(node_usage, N), idle(node_usage, M)
    node_usage.exchange("a", "b")
    assert (node_usage.charges["a"].node, node_usage.charges["b"].node) == (where, N)
    assert "a" in node_usage.holders(where)
    assert "b" in node_usage.holders(N)
    assert (idle(node_usage, N), idle(node_usage, M)) == before
    node_usage.discharge("a")
    node_usage.discharge("b")
    assert (idle(node_usage, N), idle(node_usage, M)) == (4000, 2000)
    assert not node_usage.reserved_nodes()


def test_a_reservation_that_is_used_changes_no_sum(node_usage: NodeUsage) -> None:
    charge(node_usage, "a", reserved=True)
    assert node_usage.reserved_nodes() == {N}
    assert not charge(node_usage, "a", reserved=False)
    assert node_usage.reserved_nodes() == frozenset()
    assert idle(node_usage) == 3000


def test_what_is_releasing_is_still_used(node_usage: NodeUsage) -> None:
    charge(node_usage, "a")
    assert charge(node_usage, "a", releasing=True)
    used, releasing = node_usage.sorted_used()
    assert (used[:, 0].tolist(), releasing[:, 0].tolist()) == ([0, 1000], [0, 1000])


def test_only_a_node_with_reservations_of_what_it_lacks_is_short(node_usage: NodeUsage) -> None:
    charge(node_usage, "a", M, TWO)
    charge(node_usage, "b", M, ONE)
    assert idle(node_usage, M) == -1000
    assert not node_usage.is_short(M)
    charge(node_usage, "c", M, ONE, reserved=True)
    assert node_usage.is_short(M)
    node_usage.discharge("a")
    assert not node_usage.is_short(M)


def test_a_node_may_be_charged_before_it_is_seen_and_after_it_is_gone(
    node_usage: NodeUsage,
) -> None:
    late = NodeName("late")
    charge(node_usage, "a", late)
    assert not node_usage.is_short(late)
    node_usage.set_node(make_node("late", cpu=4000))
    assert idle(node_usage, late) == 3000
    node_usage.drop_node(late)
    node_usage.set_node(make_node("late", cpu=4000))
    assert idle(node_usage, late) == 3000


def test_rows_of_nodes_that_are_gone_are_used_again() -> None:
    node_usage = NodeUsage()
    for n in range(1000):
        name = f"n{n}"
        node_usage.set_node(make_node(name))
        charge(node_usage, "pod", NodeName(name))
        node_usage.discharge("pod")
        node_usage.drop_node(NodeName(name))
    node_usage.set_node(make_node("last", cpu=4000))
    assert node_usage.sorted_used()[0].tolist() == [[0, 0, 0]]
    assert idle(node_usage, NodeName("last")) == 4000


def test_a_node_that_is_not_ready_has_no_room_and_takes_nothing(node_usage: NodeUsage) -> None:
    node_usage.set_node(make_node("n", cpu=4000, ready=False))
    assert not node_usage.takes(N, ANYWHERE)
    assert idle(node_usage) == 0
    assert node_usage.table().allocatable[:, 0].tolist() == [2000, 0]
    assert node_usage.table().total[0] == 2000
    assert node_usage.table().away == (1,)


def test_a_cordoned_node_keeps_its_room_and_takes_only_who_bears_that(
    node_usage: NodeUsage,
) -> None:
    node_usage.set_node(make_node("n", cpu=4000, unschedulable=True))
    assert not node_usage.takes(N, make_shape())
    assert node_usage.takes(N, ANYWHERE)
    assert idle(node_usage) == 4000
    assert not node_usage.takes(NodeName("unknown"), ANYWHERE)


def test_of_a_cordoned_node_what_runs_there_and_what_is_asked_of_it_counts(
    node_usage: NodeUsage,
) -> None:
    node_usage.set_node(make_node("n", cpu=4000, unschedulable=True))
    assert node_usage.table().total[0] == 2000
    assert node_usage.table().cordoned == (1,)
    charge(node_usage, "a", N)
    assert node_usage.total()[0] == 3000
    for asked, total in ((2000, 5000), (9000, 6000)):
        asks = node_usage.vector(make_amounts(cpu=asked))
        assert node_usage.total(asked_of_cordoned=asks)[0] == total


def test_a_heartbeat_makes_no_new_table(node_usage: NodeUsage) -> None:
    before = node_usage.table()
    assert not node_usage.set_node(make_node("n", cpu=4000, resource_version="9"))
    charge(node_usage, "a")
    assert node_usage.table() is before
    assert node_usage.set_node(make_node("n", cpu=4000, taints=(Taint("k", "v", "NoSchedule"),)))
    assert node_usage.table() is not before


def test_the_table_is_sorted_by_name_and_read_only(node_usage: NodeUsage) -> None:
    table = node_usage.table()
    assert [node.name for node in table.nodes] == ["m", "n"]
    assert table.index == {"m": 0, "n": 1}
    assert table.total[0] == 6000
    with pytest.raises(ValueError, match="read-only"):
        table.allocatable[0] = 1


def test_what_was_handed_out_is_not_changed_later(node_usage: NodeUsage) -> None:
    used, _ = node_usage.sorted_used()
    charge(node_usage, "a")
    assert not used.any()


def test_a_new_resource_widens_everything_and_changes_nothing(node_usage: NodeUsage) -> None:
    told: list[int] = []
    node_usage.grown = lambda: told.append(len(node_usage.axis))
    charge(node_usage, "a")
    charge(node_usage, "g", M, GPU)
    assert told == [4]
    assert node_usage.idle(N).tolist()[0] == 3000
    assert node_usage.idle(M).tolist()[-1] == -1
    assert len(node_usage.charges["a"].vector) == 4
    assert node_usage.discharge("a")
    assert node_usage.discharge("g")
    assert not node_usage.sorted_used()[0].any()


def test_equal_amounts_share_one_read_only_vector(node_usage: NodeUsage) -> None:
    vector = node_usage.vector(ONE)
    assert node_usage.vector(make_amounts(cpu=1000, pods=1)) is vector
    with pytest.raises(ValueError, match="read-only"):
        vector += np.int64(1)


def test_amounts_that_nobody_asks_for_any_more_are_forgotten(node_usage: NodeUsage) -> None:
    held = make_amounts(cpu=1)
    charge(node_usage, "a", N, held)
    vectors = [weakref.ref(node_usage.vector(make_amounts(cpu=cpu))) for cpu in range(2, 5000)]
    assert sum(vector() is not None for vector in vectors) <= VECTORS_KEPT
    assert np.array_equal(node_usage.charges["a"].vector, node_usage.vector(held)), "it lives on"
    assert node_usage.discharge("a")
    assert not node_usage.sorted_used()[0].any()


@pytest.mark.parametrize(
    ("names", "request_", "pack", "chosen"),
    [
        (["n", "m"], ONE, True, "m"),
        (["n", "m"], ONE, False, "n"),
        (["n", "m"], make_amounts(cpu=3000), True, "n"),
        (["n", "m"], make_amounts(cpu=5000), True, None),
        (["unknown"], ONE, True, None),
        ([], ONE, True, None),
        (["b", "a"], ONE, True, "a"),
        (["full", "away"], ONE, True, None),
    ],
)
def test_the_best_of_the_offered_nodes(
    node_usage: NodeUsage,
    *,
    names: Sequence[str],
    request_: Amounts,
    pack: bool,
    chosen: str | None,
) -> None:
    for name in ("a", "b", "full"):
        node_usage.set_node(make_node(name, cpu=1000))
    node_usage.set_node(make_node("away", ready=False))
    charge(node_usage, "x", NodeName("full"))
    best = node_usage.best_of([NodeName(n) for n in names], node_usage.vector(request_), pack=pack)
    assert best == chosen


DEVICES = frozenset({"nvidia.com/gpu"})
"""What a DeviceClass maps."""


def has_gpu(node_usage: NodeUsage, node: NodeName = N) -> bool:
    return node_usage.has_room(node, node_usage.vector(GPU))


def test_what_no_node_lists_is_nowhere_unless_a_device_class_maps_it(node_usage: NodeUsage) -> None:
    assert not has_gpu(node_usage)
    assert node_usage.set_devices(DEVICES)
    assert has_gpu(node_usage)
    assert node_usage.best_of([N, M], node_usage.vector(GPU), pack=True) == "m"
    assert not node_usage.set_devices(DEVICES)
    assert node_usage.set_devices(frozenset())
    assert not has_gpu(node_usage)


def test_whatever_takes_devices_there_are_enough_and_the_rest_is_counted(
    node_usage: NodeUsage,
) -> None:
    node_usage.set_devices(DEVICES)
    charge(node_usage, "a", request=make_amounts(cpu=2000, **{"nvidia.com/gpu": 1000}))
    assert has_gpu(node_usage)
    charge(node_usage, "b", request=TWO)
    assert not has_gpu(node_usage)
    assert has_gpu(node_usage, M)


def test_where_a_node_lists_the_resource_it_is_there_alone(node_usage: NodeUsage) -> None:
    node_usage.set_devices(DEVICES)
    listing = make_node("m", cpu=2000, extra={"nvidia.com/gpu": 1})
    node_usage.set_node(listing)
    assert (has_gpu(node_usage), has_gpu(node_usage, M)) == (False, True)
    charge(node_usage, "a", M, request=GPU)
    assert not has_gpu(node_usage, M)
    node_usage.set_node(make_node("m", cpu=2000, ready=False, extra={"nvidia.com/gpu": 1}))
    assert not has_gpu(node_usage), "that node is only away"
    node_usage.set_node(make_node("m", cpu=2000, extra={"nvidia.com/gpu": 0}))
    assert (has_gpu(node_usage), has_gpu(node_usage, M)) == (True, True)
    node_usage.set_node(listing)
    assert not has_gpu(node_usage)
    node_usage.drop_node(M)
    assert has_gpu(node_usage)


def test_the_table_of_the_planner_has_the_devices_too(node_usage: NodeUsage) -> None:
    node_usage.vector(GPU)
    before = node_usage.table()
    at = node_usage.axis.index["nvidia.com/gpu"]
    assert before.total[at] == 0
    node_usage.set_devices(DEVICES)
    after = node_usage.table()
    assert (after.allocatable[:, at] > 0).all()
    assert after.total[at] == after.allocatable[:, at].sum()
    assert (after.allocatable[:, :at] == before.allocatable[:, :at]).all()
