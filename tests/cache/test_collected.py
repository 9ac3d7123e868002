"""Free room that is kept for groups which wait for more of it."""

from app.model.ids import NodeName
from app.model.plan import Collected
from app.model.resources import Vector
from tests.builders import make_amounts, make_node
from tests.cache.rig import KEY, Rig

N = NodeName("n")


def kept(rig: Rig, amount: Vector) -> None:
    rig.cache.collect((Collected(KEY, ((N, amount),)),), now=rig.now)


def cpu(rig: Rig) -> Vector:
    return rig.cache.node_usage.vector(make_amounts(cpu=1000))


def test_the_time_is_that_of_the_first_cycle_that_kept_room() -> None:
    rig = Rig()
    kept(rig, cpu(rig))
    rig.now += 5
    kept(rig, cpu(rig))
    assert rig.cache.groups[KEY].collecting_since == 100.0
    view = rig.cache.registry.view(KEY)
    assert view is not None
    assert view.collecting_since == 100.0


def test_what_no_cycle_keeps_any_more_is_free() -> None:
    rig = Rig()
    kept(rig, cpu(rig))
    rig.cache.collect((), now=rig.now)
    assert rig.cache.collected == ()


def test_what_was_kept_before_a_resource_became_known_is_left_to_the_next_cycle() -> None:
    rig = Rig()
    kept(rig, cpu(rig))
    before = list(rig.cache.collected)
    rig.cache.set_node(make_node("gpu", extra={"nvidia.com/gpu": 8}))
    between = list(rig.cache.collected)
    kept(rig, cpu(rig))
    after = list(rig.cache.collected)
    assert (len(before), len(between), len(after)) == (1, 0, 1)


def test_a_group_that_asks_for_something_else_collects_anew() -> None:
    rig = Rig()
    kept(rig, cpu(rig))
    rig.see(min_member=3)
    assert rig.cache.groups[KEY].collecting_since == 0.0
