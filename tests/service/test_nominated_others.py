"""Room that a pod of another scheduler has evicted for is not taken from under it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.model.ids import NodeName
from app.model.pod import Pod
from app.service.calls.filtering import Chosen, Wait
from tests.builders import make_pod, make_shape
from tests.service.rig import Rig

STOCK = "default-scheduler"
TWO = make_shape(cpu=2000)


def evicted_for(rig: Rig, name: str, *, priority: int) -> Pod:
    """A pod of the stock scheduler for which somebody has left ``n1``."""
    rig.node("n1", cpu=2000)
    pod = rig.pod(name, scheduler=STOCK, priority=priority, shape=TWO, nominated=NodeName("n1"))
    rig.pod("mine", priority=100, shape=TWO)
    return pod


async def test_it_is_kept_for_a_pod_of_the_same_or_a_higher_priority() -> None:
    rig = Rig()
    evicted_for(rig, "web", priority=100)
    await rig.cycle()
    assert rig.place("mine") == ""
    assert isinstance(rig.filter("mine"), Wait)


async def test_a_pod_of_a_higher_priority_goes_before_it() -> None:
    rig = Rig()
    evicted_for(rig, "web", priority=99)
    await rig.cycle()
    assert rig.filter("mine") == Chosen(NodeName("n1"))


async def test_gangs_leave_it_free_too() -> None:
    rig = Rig()
    rig.node("n2", cpu=2000)
    evicted_for(rig, "web", priority=1000)
    rig.delete("mine")
    rig.gang("g", size=2, shape=TWO)
    await rig.cycle()
    assert not rig.has_reservations()
    rig.store(replace(rig.api.pods["default/web"], nominated=NodeName("")))
    await rig.cycle()
    assert {rig.place("g-0"), rig.place("g-1")} == {"n1", "n2"}


@pytest.mark.parametrize(
    "end",
    [
        lambda rig, pod: rig.store(replace(pod, node=NodeName("n2"), phase="Running")),
        lambda rig, pod: rig.store(replace(pod, phase="Failed")),
        lambda rig, pod: rig.store(replace(pod, deleting=True)),
        lambda rig, pod: rig.delete(pod.name),
    ],
    ids=["elsewhere", "over", "going", "gone"],
)
async def test_it_is_free_again_when_the_pod_does_not_come(end: Callable[[Rig, Pod], None]) -> None:
    rig = Rig()
    rig.node("n2", cpu=2000)
    pod = evicted_for(rig, "web", priority=1000)
    rig.delete("mine")
    rig.gang("g", size=1, shape=TWO, pinned=NodeName("n1"))
    await rig.cycle()
    assert rig.place("g-0") == ""
    end(rig, pod)
    await rig.cycle()
    assert rig.place("g-0") == "n1"


async def test_a_bound_pod_takes_its_room_once() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    pod = rig.pod("web", scheduler=STOCK, priority=1000, shape=TWO, nominated=NodeName("n1"))
    rig.store(replace(pod, node=NodeName("n1"), phase="Running"))
    rig.pod("mine", shape=TWO)
    await rig.cycle()
    assert rig.place("mine") == "n1"


async def test_it_does_so_when_the_watch_of_nominated_pods_is_late() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    late = make_pod("web", scheduler=STOCK, priority=1000, shape=TWO, nominated=NodeName("n1"))
    rig.see("nominated", late)
    rig.see("pods", replace(late, node=NodeName("n1"), phase="Running"))
    rig.see("nominated", replace(late, resource_version="2"))
    rig.pod("mine", shape=TWO)
    await rig.cycle()
    assert rig.place("mine") == "n1"
