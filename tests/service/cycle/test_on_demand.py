"""Planning on demand, between two cycles."""

from app.model.ids import NodeName
from app.service.calls.filtering import Chosen
from app.service.cycle import on_demand
from tests.service.rig import Rig


async def test_asking_about_one_of_few_plans_them_all() -> None:
    """kube-scheduler asks for the others next; planned one by one each would open the books."""

    rig = Rig()
    rig.node("n1", cpu=20_000)
    names = [f"p{i}" for i in range(10)]
    for name in names:
        rig.pod(name)
    assert [rig.filter(name) for name in names] == [Chosen(NodeName("n1"))] * 10
    assert rig.planning.log.on_demand == 1


async def test_asking_about_one_of_many_plans_that_one() -> None:
    rig = Rig()
    rig.node("n1", cpu=1_000_000, pods=1000)
    for i in range(on_demand.AT_ONCE + 1):
        rig.pod(f"p{i}")
    assert rig.filter("p7") == Chosen(NodeName("n1"))
    assert rig.has_reservations() == 1


async def test_a_cycle_has_nothing_left_to_plan_after_all_were_planned_on_demand() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    rig.filter("g-0")
    assert not rig.cache.signals.dirty
    rig.gang("late", size=2)
    assert rig.cache.signals.dirty
    await rig.cycle()
    assert rig.has_reservations() == 4


async def test_a_pod_that_is_asked_about_before_the_first_cycle_is_planned() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p")
    assert rig.filter("p") == Chosen(NodeName("n1"))
