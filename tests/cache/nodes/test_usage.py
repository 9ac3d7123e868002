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
def rooms() -> NodeUsage:
    rooms = NodeUsage()
    rooms.set_node(make_node("n", cpu=4000))
    rooms.set_node(make_node("m", cpu=2000))
    return rooms


def charge(
    rooms: NodeUsage,
    holder: str,
    node: NodeName = N,
    request: Amounts = ONE,
    *,
    promised: bool = False,
    releasing: bool = False,
) -> bool:
    return rooms.charge(holder, node, request, promised=promised, releasing=releasing)


def idle(rooms: NodeUsage, node: NodeName = N) -> int:
    return int(rooms.idle(node)[0])


def test_a_charge_takes_room_and_a_discharge_gives_it_back(rooms: NodeUsage) -> None:
    assert charge(rooms, "a")
    assert idle(rooms) == 3000
    assert rooms.discharge("a")
    assert idle(rooms) == 4000
    assert not rooms.discharge("a")


def test_charging_again_moves_or_resizes_and_never_counts_twice(rooms: NodeUsage) -> None:
    charge(rooms, "a")
    assert not charge(rooms, "a")
    assert charge(rooms, "a", request=TWO)
    assert idle(rooms) == 2000
    assert charge(rooms, "a", M)
    assert (idle(rooms), idle(rooms, M)) == (4000, 1000)
    assert rooms.holders(M) == {"a"}
    assert rooms.holders(N) == frozenset()


@pytest.mark.parametrize("where", [M, N], ids=["on two nodes", "on one"])
def test_equal_holders_change_nodes_and_no_sum_changes(rooms: NodeUsage, where: NodeName) -> None:
    charge(rooms, "a", N, promised=True)
    charge(rooms, "b", where, promised=True)
    before = idle(rooms, N), idle(rooms, M)
    rooms.exchange("a", "b")
    assert (rooms.charges["a"].node, rooms.charges["b"].node) == (where, N)
    assert "a" in rooms.holders(where)
    assert "b" in rooms.holders(N)
    assert (idle(rooms, N), idle(rooms, M)) == before
    rooms.discharge("a")
    rooms.discharge("b")
    assert (idle(rooms, N), idle(rooms, M)) == (4000, 2000)
    assert not rooms.promised_nodes()


def test_a_promise_that_is_kept_changes_no_sum(rooms: NodeUsage) -> None:
    charge(rooms, "a", promised=True)
    assert rooms.promised_nodes() == {N}
    assert not charge(rooms, "a", promised=False)
    assert rooms.promised_nodes() == frozenset()
    assert idle(rooms) == 3000


def test_what_is_releasing_is_still_used(rooms: NodeUsage) -> None:
    charge(rooms, "a")
    assert charge(rooms, "a", releasing=True)
    used, releasing = rooms.sorted_used()
    assert (used[:, 0].tolist(), releasing[:, 0].tolist()) == ([0, 1000], [0, 1000])


def test_only_a_node_that_promised_what_it_lacks_is_short(rooms: NodeUsage) -> None:
    charge(rooms, "a", M, TWO)
    charge(rooms, "b", M, ONE)
    assert idle(rooms, M) == -1000
    assert not rooms.is_short(M)
    charge(rooms, "c", M, ONE, promised=True)
    assert rooms.is_short(M)
    rooms.discharge("a")
    assert not rooms.is_short(M)


def test_a_node_may_be_charged_before_it_is_seen_and_after_it_is_gone(rooms: NodeUsage) -> None:
    late = NodeName("late")
    charge(rooms, "a", late)
    assert not rooms.is_short(late)
    rooms.set_node(make_node("late", cpu=4000))
    assert idle(rooms, late) == 3000
    rooms.drop_node(late)
    rooms.set_node(make_node("late", cpu=4000))
    assert idle(rooms, late) == 3000


def test_rows_of_nodes_that_are_gone_are_used_again() -> None:
    rooms = NodeUsage()
    for n in range(1000):
        name = f"n{n}"
        rooms.set_node(make_node(name))
        charge(rooms, "pod", NodeName(name))
        rooms.discharge("pod")
        rooms.drop_node(NodeName(name))
    rooms.set_node(make_node("last", cpu=4000))
    assert rooms.sorted_used()[0].tolist() == [[0, 0, 0]]
    assert idle(rooms, NodeName("last")) == 4000


def test_a_node_that_is_not_ready_has_no_room_and_takes_nothing(rooms: NodeUsage) -> None:
    rooms.set_node(make_node("n", cpu=4000, ready=False))
    assert not rooms.takes(N, ANYWHERE)
    assert idle(rooms) == 0
    assert rooms.table().allocatable[:, 0].tolist() == [2000, 0]
    assert rooms.table().total[0] == 2000
    assert rooms.table().away == (1,)


def test_a_cordoned_node_keeps_its_room_and_takes_only_who_bears_that(rooms: NodeUsage) -> None:
    rooms.set_node(make_node("n", cpu=4000, unschedulable=True))
    assert not rooms.takes(N, make_shape())
    assert rooms.takes(N, ANYWHERE)
    assert idle(rooms) == 4000
    assert not rooms.takes(NodeName("unknown"), ANYWHERE)


def test_of_a_cordoned_node_what_runs_there_and_what_is_asked_of_it_counts(
    rooms: NodeUsage,
) -> None:
    rooms.set_node(make_node("n", cpu=4000, unschedulable=True))
    assert rooms.table().total[0] == 2000
    assert rooms.table().cordoned == (1,)
    charge(rooms, "a", N)
    assert rooms.total()[0] == 3000
    for asked, total in ((2000, 5000), (9000, 6000)):
        asks = rooms.vector(make_amounts(cpu=asked))
        assert rooms.total(asked_of_cordoned=asks)[0] == total


def test_a_heartbeat_makes_no_new_table(rooms: NodeUsage) -> None:
    before = rooms.table()
    assert not rooms.set_node(make_node("n", cpu=4000, resource_version="9"))
    charge(rooms, "a")
    assert rooms.table() is before
    assert rooms.set_node(make_node("n", cpu=4000, taints=(Taint("k", "v", "NoSchedule"),)))
    assert rooms.table() is not before


def test_the_table_is_sorted_by_name_and_read_only(rooms: NodeUsage) -> None:
    table = rooms.table()
    assert [node.name for node in table.nodes] == ["m", "n"]
    assert table.index == {"m": 0, "n": 1}
    assert table.total[0] == 6000
    with pytest.raises(ValueError, match="read-only"):
        table.allocatable[0] = 1


def test_what_was_handed_out_is_not_changed_later(rooms: NodeUsage) -> None:
    used, _ = rooms.sorted_used()
    charge(rooms, "a")
    assert not used.any()


def test_a_new_resource_widens_everything_and_changes_nothing(rooms: NodeUsage) -> None:
    told: list[int] = []
    rooms.grown = lambda: told.append(len(rooms.axis))
    charge(rooms, "a")
    charge(rooms, "g", M, GPU)
    assert told == [4]
    assert rooms.idle(N).tolist()[0] == 3000
    assert rooms.idle(M).tolist()[-1] == -1
    assert len(rooms.charges["a"].vector) == 4
    assert rooms.discharge("a")
    assert rooms.discharge("g")
    assert not rooms.sorted_used()[0].any()


def test_equal_amounts_share_one_read_only_vector(rooms: NodeUsage) -> None:
    vector = rooms.vector(ONE)
    assert rooms.vector(make_amounts(cpu=1000, pods=1)) is vector
    with pytest.raises(ValueError, match="read-only"):
        vector += np.int64(1)


def test_amounts_that_nobody_asks_for_any_more_are_forgotten(rooms: NodeUsage) -> None:
    held = make_amounts(cpu=1)
    charge(rooms, "a", N, held)
    vectors = [weakref.ref(rooms.vector(make_amounts(cpu=cpu))) for cpu in range(2, 5000)]
    assert sum(vector() is not None for vector in vectors) <= VECTORS_KEPT
    assert np.array_equal(rooms.charges["a"].vector, rooms.vector(held)), "it lives on"
    assert rooms.discharge("a")
    assert not rooms.sorted_used()[0].any()


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
    rooms: NodeUsage, *, names: Sequence[str], request_: Amounts, pack: bool, chosen: str | None
) -> None:
    for name in ("a", "b", "full"):
        rooms.set_node(make_node(name, cpu=1000))
    rooms.set_node(make_node("away", ready=False))
    charge(rooms, "x", NodeName("full"))
    best = rooms.best_of([NodeName(n) for n in names], rooms.vector(request_), pack=pack)
    assert best == chosen


DEVICES = frozenset({"nvidia.com/gpu"})
"""What a DeviceClass maps."""


def has_gpu(rooms: NodeUsage, node: NodeName = N) -> bool:
    return rooms.has_room(node, rooms.vector(GPU))


def test_what_no_node_lists_is_nowhere_unless_a_device_class_maps_it(rooms: NodeUsage) -> None:
    assert not has_gpu(rooms)
    assert rooms.set_devices(DEVICES)
    assert has_gpu(rooms)
    assert rooms.best_of([N, M], rooms.vector(GPU), pack=True) == "m"
    assert not rooms.set_devices(DEVICES)
    assert rooms.set_devices(frozenset())
    assert not has_gpu(rooms)


def test_whatever_takes_devices_there_are_enough_and_the_rest_is_counted(rooms: NodeUsage) -> None:
    rooms.set_devices(DEVICES)
    charge(rooms, "a", request=make_amounts(cpu=2000, **{"nvidia.com/gpu": 1000}))
    assert has_gpu(rooms)
    charge(rooms, "b", request=TWO)
    assert not has_gpu(rooms)
    assert has_gpu(rooms, M)


def test_where_a_node_lists_the_resource_it_is_there_alone(rooms: NodeUsage) -> None:
    rooms.set_devices(DEVICES)
    listing = make_node("m", cpu=2000, extra={"nvidia.com/gpu": 1})
    rooms.set_node(listing)
    assert (has_gpu(rooms), has_gpu(rooms, M)) == (False, True)
    charge(rooms, "a", M, request=GPU)
    assert not has_gpu(rooms, M)
    rooms.set_node(make_node("m", cpu=2000, ready=False, extra={"nvidia.com/gpu": 1}))
    assert not has_gpu(rooms), "that node is only away"
    rooms.set_node(make_node("m", cpu=2000, extra={"nvidia.com/gpu": 0}))
    assert (has_gpu(rooms), has_gpu(rooms, M)) == (True, True)
    rooms.set_node(listing)
    assert not has_gpu(rooms)
    rooms.drop_node(M)
    assert has_gpu(rooms)


def test_the_table_of_the_planner_has_the_devices_too(rooms: NodeUsage) -> None:
    rooms.vector(GPU)
    before = rooms.table()
    at = rooms.axis.index["nvidia.com/gpu"]
    assert before.total[at] == 0
    rooms.set_devices(DEVICES)
    after = rooms.table()
    assert (after.allocatable[:, at] > 0).all()
    assert after.total[at] == after.allocatable[:, at].sum()
    assert (after.allocatable[:, :at] == before.allocatable[:, :at]).all()
