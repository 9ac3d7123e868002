"""A gang changes while its Bindings are under way: nobody goes who counted on one that fails."""

import asyncio
from dataclasses import replace

from app.model.ids import NodeName
from app.model.pod import GROUP_ANNOTATION
from tests.service.rig import Rig
from tests.service.virtual_time import settle


async def two_under_way() -> Rig:
    """A gang ``a`` of two is let go, and the API server takes its time."""
    rig = Rig()
    rig.node("n1")
    rig.gang("a", size=2)
    await rig.cycle()
    rig.api.slow = asyncio.Event()
    rig.bind("a-0")
    rig.bind("a-1")
    await settle()
    return rig


async def api_goes_on(rig: Rig) -> None:
    assert rig.api.slow is not None
    rig.api.slow.set()
    await settle()


async def move_to_b(rig: Rig) -> None:
    """a-0 is given to a group ``b`` of two, which has one member so far, and that comes to Bind."""
    rig.group("b", minimum=2)
    rig.pod("b-0", group="b")
    rig.store(replace(rig.api.pods["default/a-0"], annotations={GROUP_ANNOTATION: "b"}))
    await rig.cycle()
    rig.bind("b-0")
    await settle()


async def test_a_member_that_moved_does_not_count_for_its_new_group_before_it_is_bound() -> None:
    rig = await two_under_way()
    await move_to_b(rig)
    assert rig.parts.barrier.held() == {rig.key("b"): 1}
    rig.delete("a-0")  # its Binding is answered 404
    await api_goes_on(rig)
    assert set(rig.api.bound()) == {"a-1"}


async def test_a_member_that_moved_counts_for_its_new_group_when_it_is_bound() -> None:
    rig = await two_under_way()
    await move_to_b(rig)
    await api_goes_on(rig)
    rig.show_bindings()
    await settle()
    assert set(rig.api.bound()) == {"a-0", "a-1", "b-0"}


async def test_bindings_for_a_group_that_is_gone_do_not_count_for_the_next_of_its_name() -> None:
    rig = await two_under_way()
    rig.unsee("podgroups", rig.cache.groups[rig.key("a")].pod_group)
    rig.group("a", minimum=3, uid="second")
    rig.pod("a-2", group="a")
    await rig.cycle()
    rig.bind("a-2")
    await settle()
    rig.delete("a-0", "a-1")
    await api_goes_on(rig)
    assert rig.api.bound() == {}


async def test_a_binding_to_a_node_that_is_gone_does_not_count() -> None:
    rig = await two_under_way()
    rig.node("n2")
    rig.unsee("nodes", rig.cache.node_usage.nodes[NodeName("n1")])
    assert rig.cache.groups[rig.key("a")].counted.arrivals.at_bind.total() == 0
