"""What queues hold and deserve, as it is told to people."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given

from app.core.figures import QueueFigures, queue_figures
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.resources import Vector
from app.model.workload import Queue
from tests.builders import GIB, make_node, make_queue, make_snapshot
from tests.core.actions.rigs import Tiers, policies
from tests.core.placement.strategies import Theme
from tests.core.plugins.sessions import amounts_of, holding
from tests.core.worlds import NOW, World, worlds
from tests.scale import examples

NODES = (make_node("n", cpu=10_000, memory=100 * GIB, pods=1000),)
TREE: Tiers = ((PluginConf("capacity", switches={"enableHierarchy": True}),),)


def figures(
    tiers: Tiers, *queues: Queue, gangs: tuple[Gang, ...] = (), **fields: Any
) -> dict[str, QueueFigures]:
    snapshot = make_snapshot(nodes=NODES, queues=queues, gangs=gangs, **fields)
    found = queue_figures(snapshot, policies(tiers), now=0.0)
    return {str(name): each for name, each in found.items()}


def cpu(vector: Vector | None) -> float | None:
    return None if vector is None else float(vector[0]) / 1000


def child(name: str, parent: str, **fields: Any) -> Queue:
    return make_queue(name, parent=QueueName(parent), **fields)


def test_by_weight_a_queue_deserves_its_part_of_what_is_asked() -> None:
    found = figures(
        (("proportion",),),
        make_queue("a", weight=3),
        make_queue("b", weight=1, capability=amounts_of(cpu=4)),
        gangs=(
            holding("a", cpu=6, wants=6, queue="a"),
            holding("b", cpu=2.5, gib=100, wants=6, queue="b"),
        ),
    )
    a, b = found["a"], found["b"]
    assert (cpu(a.allocated), cpu(a.request), cpu(a.deserved)) == (6, 12, 7.5)
    assert (cpu(b.allocated), cpu(b.request), cpu(b.deserved)) == (2.5, 8.5, 2.5)
    assert (cpu(a.real_capability), cpu(b.real_capability)) == (10, 4)
    assert (a.share, b.share) == (0.8, 1.0)
    assert (a.overused, b.overused) == (False, True)


def test_a_queue_that_holds_nothing_is_not_overused() -> None:
    empty = figures((("proportion",),), make_queue("a"))["a"]
    assert (cpu(empty.deserved), empty.share, empty.overused) == (0, 0, False)


def test_by_capacity_a_queue_deserves_what_it_says_within_its_limits() -> None:
    found = figures(
        (("capacity",),),
        make_queue("a", deserved=amounts_of(cpu=8), capability=amounts_of(cpu=4)),
        make_queue("b", guarantee=amounts_of(cpu=1)),
        make_queue("c"),
        gangs=(holding("a", cpu=1, queue="a"), holding("c", cpu=1, queue="c")),
    )
    assert [cpu(found[name].deserved) for name in "abc"] == [4, 1, 0]
    assert [cpu(found[name].real_capability) for name in "abc"] == [4, 10, 9]
    assert [found[name].share for name in "abc"] == [0.25, 0, 1]


def test_in_a_tree_a_queue_has_the_groups_of_its_children() -> None:
    found = figures(
        TREE,
        child("eng", "root", capability=amounts_of(cpu=6), deserved=amounts_of(cpu=4)),
        child("dev", "eng", deserved=amounts_of(cpu=4)),
        child("prod", "eng"),
        gangs=(holding("d", cpu=1, wants=2, queue="dev"), holding("p", cpu=2, queue="prod")),
    )
    assert [cpu(found[name].allocated) for name in ("root", "eng", "dev", "prod")] == [3, 3, 1, 2]
    assert [cpu(found[name].request) for name in ("root", "eng", "dev", "prod")] == [5, 5, 3, 2]
    assert cpu(found["eng"].real_capability) == 6
    assert cpu(found["root"].real_capability) == 10, "unlimited, and no more than there is"
    assert (found["eng"].share, found["dev"].share) == (0.75, 0.25)


def test_without_a_tree_a_queue_has_only_its_own() -> None:
    found = figures(
        (("capacity",),),
        child("eng", "root"),
        child("dev", "eng"),
        gangs=(holding("d", cpu=1, queue="dev"),),
    )
    assert (cpu(found["eng"].allocated), cpu(found["dev"].allocated)) == (0, 1)


def test_nothing_is_deserved_where_nobody_shares_out() -> None:
    broken = figures(TREE, child("stray", "nowhere"))["stray"]
    bare = figures((("gang",),), make_queue("a"), gangs=(holding("a", cpu=1, queue="a"),))["a"]
    for each in (broken, bare):
        assert (each.deserved, each.real_capability, each.share) == (None, None, None)
    assert cpu(bare.allocated) == 1


@examples(50, suppress_health_check=(HealthCheck.too_slow,))
@given(world=worlds(Theme.ROOM))
def test_every_queue_of_any_cluster_has_figures(world: World) -> None:
    held: Counter[QueueName] = Counter()
    for gang in world.snapshot.gangs.values():
        held[gang.queue] += int(gang.allocated[0])
    found = queue_figures(world.snapshot, world.by, now=NOW)
    assert found.keys() == world.snapshot.queues.keys()
    for name, each in found.items():
        of_children = int(each.allocated[0]) - held[name]
        assert of_children >= 0 if world.name == "tree" else of_children == 0
        assert each.allocated[0] <= each.request[0]
        assert each.share is None or each.share >= 0
        if each.real_capability is not None:
            assert (each.real_capability <= world.snapshot.total).all()
