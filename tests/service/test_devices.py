"""Extended resources that only a DeviceClass maps (KEP-5004): kube-scheduler counts the devices."""

from app.model.node import DeviceClass
from app.model.reason import Cause
from app.model.shape import PodShape
from app.service.calls.filtering import Chosen
from tests.builders import make_amounts, make_queue
from tests.service.rig import Rig

GPU = "example.com/gpu"
CLASS = DeviceClass("gpu", frozenset({GPU, "deviceclass.resource.kubernetes.io/gpu"}))
TWO_GPUS = PodShape(requests=make_amounts(cpu=1000, pods=1, **{GPU: 2}))


def gang(rig: Rig) -> list[str]:
    rig.node("n1", "n2")
    needs = make_amounts(cpu=2000, **{GPU: 4})
    rig.group("g", minimum=2, min_resources=needs)
    for name in ("g-0", "g-1"):
        rig.pod(name, group="g", shape=TWO_GPUS)
    return ["g-0", "g-1"]


async def test_a_gang_is_planned_on_nodes_that_do_not_list_its_devices() -> None:
    rig = Rig()
    names = gang(rig)
    await rig.cycle()
    assert [rig.place(name) for name in names] == ["", ""]
    rig.see("deviceclasses", CLASS)
    await rig.cycle()
    assert all(rig.place(name) for name in names)
    assert [type(rig.filter(name)) for name in names] == [Chosen, Chosen]


async def test_without_the_class_nobody_can_have_them() -> None:
    rig = Rig()
    rig.see("deviceclasses", CLASS)
    rig.unsee("deviceclasses", CLASS)
    names = gang(rig)
    await rig.cycle()
    assert [rig.place(name) for name in names] == ["", ""]


async def test_what_a_queue_may_hold_of_them_is_counted_all_the_same() -> None:
    rig = Rig()
    rig.see("deviceclasses", CLASS)
    rig.queue(make_queue("default", capability=make_amounts(**{GPU: 3})))
    gang(rig)
    await rig.cycle()
    assert rig.has_reservations() == 0
    assert rig.refusals[rig.key("g")].cause is Cause.QUEUE_QUOTA
