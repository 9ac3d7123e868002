"""drf: the smaller dominant share first."""

from tests.builders import GIB, make_gang, make_node, make_snapshot
from tests.core.plugins.sessions import holding, open_plugin, sized_task

NODES = (make_node("n", cpu=10_000, memory=100 * GIB),)


def test_the_larger_fraction_of_any_resource_counts() -> None:
    by_cpu = holding("by-cpu", cpu=3, gib=1)
    by_memory = holding("by-memory", cpu=1, gib=40)
    little = holding("little", cpu=2, gib=20)
    gangs = (by_cpu, by_memory, little)
    hooks, _ = open_plugin("drf", make_snapshot(nodes=NODES, gangs=gangs))
    assert hooks.gang_order
    assert [hooks.gang_order(gang) for gang in gangs] == [0.3, 0.4, 0.2]
    assert sorted(gangs, key=hooks.gang_order) == [little, by_cpu, by_memory]


def test_the_share_follows_placements_of_the_cycle() -> None:
    gang = make_gang(waiting=(sized_task(cpu=5),))
    hooks, ledger = open_plugin("drf", make_snapshot(nodes=NODES, gangs=(gang,)))
    assert hooks.gang_order
    assert hooks.gang_order(gang) == 0.0
    ledger.place(gang, gang.waiting[0], node=0)
    assert hooks.gang_order(gang) == 0.5


def test_an_empty_cluster_gives_everybody_the_same_share() -> None:
    gang = holding("g", cpu=1)
    hooks, _ = open_plugin("drf", make_snapshot(gangs=(gang,)))
    assert hooks.gang_order
    assert hooks.gang_order(gang) == 0.0


def test_queues_are_ordered_only_with_hierarchy() -> None:
    plain, _ = open_plugin("drf", make_snapshot())
    tree, _ = open_plugin("drf", make_snapshot(), switches={"enableHierarchy": True})

    assert plain.queue_order is None
    assert tree.queue_order is not None
