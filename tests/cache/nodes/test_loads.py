"""Loads of nodes, and what came to them too late to be measured."""

from app.cache.snapshots.snapshotter import Snapshotter
from app.model.ids import NodeName
from app.model.load import NodeLoad, Unseen
from app.model.shape import PodShape
from tests.builders import make_shape
from tests.cache.rig import Rig as Small

N, M = NodeName("n"), NodeName("m")


class Rig(Small):
    """Only the node ``n`` is measured."""

    def measured(self, at: float, *, window_s: float = 10.0) -> NodeLoad:
        """It is measured now, and then it was that busy."""
        load = NodeLoad(50.0, 50.0, at=at, window_s=window_s)
        self.cache.set_loads({N: load})
        return load

    def unseen(self) -> Unseen:
        return Snapshotter(self.cache).snapshot().loads[N].unseen


def test_pods_that_were_there_before_are_measured() -> None:
    rig = Rig()
    rig.pod("old", node="n", shape=make_shape(cpu=500))
    rig.measured(at=100.0)
    assert rig.unseen() == Unseen()


def test_a_pod_that_came_later_is_unseen_until_it_is_measured() -> None:
    rig = Rig()
    rig.measured(at=100.0)
    rig.pod("new", node="n", shape=make_shape(cpu=500, memory=7))
    assert rig.unseen() == Unseen(cpu=500, memory=7)
    rig.measured(at=109.0)
    assert rig.unseen() == Unseen(cpu=500, memory=7)
    rig.measured(at=110.0)
    assert rig.unseen() == Unseen()


def test_reservations_are_unseen_too_and_those_without_requests_are_counted() -> None:
    rig = Rig()
    rig.measured(at=100.0)
    rig.pod("a", shape=make_shape(cpu=0, memory=0))
    rig.pod("b", shape=make_shape(cpu=300, memory=0))
    assert rig.place(a="n", b="n")
    assert rig.unseen() == Unseen(cpu=300, no_cpu=1, no_memory=2)
    rig.cache.drop_pod(rig.uid("a"))
    assert rig.unseen() == Unseen(cpu=300, no_memory=1)


def test_what_limits_and_offline_resources_let_unseen_pods_use_is_told() -> None:
    rig = Rig()
    rig.measured(at=100.0)
    burst = (("cpu", 200), ("memory", 5))
    rig.pod("a", node="n", shape=make_shape(cpu=500, memory=7, burst=burst))
    rig.pod("b", shape=make_shape(cpu=100, memory=7, burst=burst))
    assert rig.place(b="n")
    assert rig.unseen() == Unseen(cpu=600, memory=14, cpu_burst=400, memory_burst=10)
    batch = PodShape((("kubernetes.io/batch-cpu", 50), ("kubernetes.io/batch-memory", 3)))
    rig.pod("c", node="n", shape=batch)
    assert rig.unseen() == Unseen(cpu=650, memory=17, cpu_burst=400, memory_burst=10)


def test_what_is_on_another_node_is_not_unseen() -> None:
    rig = Rig()
    rig.measured(at=100.0)
    rig.pod("new", node="m", shape=make_shape(cpu=500))
    assert rig.unseen() == Unseen()
    assert M not in Snapshotter(rig.cache).snapshot().loads


def test_groups_are_planned_again_when_loads_change_and_only_then() -> None:
    rig = Rig()
    before = rig.cache.registry.outlook
    rig.measured(at=100.0)
    changed = rig.cache.registry.outlook
    assert changed != before
    rig.measured(at=100.0)
    assert rig.cache.registry.outlook == changed


def test_without_loads_nothing_is_followed() -> None:
    rig = Rig()
    rig.pod("a", node="n")
    assert Snapshotter(rig.cache).snapshot().loads == {}
    rig.measured(at=100.0)
    rig.cache.set_loads({})
    rig.pod("b", node="n")
    rig.measured(at=100.0)
    assert rig.unseen() == Unseen()
