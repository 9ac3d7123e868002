"""Queues are limited by the devices that their pods claim."""

import pytest

from app.model.device_slices import Capacity
from app.model.node import DeviceClass
from app.model.reason import Cause
from app.model.workload import GroupPhase
from app.service.calls.filtering import Wait
from tests.builders import make_amounts, make_queue
from tests.device_claims import asks, claim, claiming, on_node, pool, template
from tests.service.rig import Rig

GPU = "deviceclass/gpu"


def limited(count: int, *, dimension: str = "") -> Rig:
    """The queue may hold so many devices, though the nodes have more."""
    rig = Rig()
    rig.node("n1", "n2")
    rig.see("deviceclasses", DeviceClass("gpu", frozenset()))
    devices = [f"gpu-{number}" for number in range(8)]
    for node in ("n1", "n2"):
        each = pool(*devices, node=node, capacity=(("memory", Capacity(80)),))
        rig.see("resourceslices", each)
    name = f"{dimension}.{GPU}" if dimension else GPU
    rig.queue(make_queue("default", capability=make_amounts(**{name: count})))
    return rig


def add_gang(rig: Rig, name: str, *claims: str, count: int, of: str = "") -> list[str]:
    rig.group(name, minimum=count)
    names = [f"{name}-{number}" for number in range(count)]
    for each in names:
        rig.pod(each, group=name, shape=claiming(*claims, of=of))
    return names


async def test_a_gang_whose_claims_its_queue_may_not_hold_waits_whole() -> None:
    rig = limited(3)
    rig.see("resourceclaimtemplates", template("t", asks(2)))
    add_gang(rig, "g", count=2, of="t")
    await rig.cycle()
    assert rig.has_reservations() == 0
    refusal = rig.refusals[rig.key("g")]
    assert refusal.cause is Cause.QUEUE_QUOTA
    assert [(s.resource, s.asked, s.free) for s in refusal.shortfalls] == [(GPU, 4, 3)]


async def test_a_gang_that_its_queue_may_hold_gets_its_places() -> None:
    rig = limited(4)
    rig.see("resourceclaimtemplates", template("t", asks(2)))
    names = add_gang(rig, "g", count=2, of="t")
    await rig.cycle()
    assert all(rig.place(name) for name in names)


async def test_a_gang_shares_what_its_queue_may_hold_once() -> None:
    rig = limited(2)
    rig.see("resourceclaims", claim("c", asks(2)))
    names = add_gang(rig, "g", "c", count=4)
    await rig.cycle()
    assert all(rig.place(name) for name in names)


async def test_a_member_that_is_not_charged_gets_no_place_before_the_one_that_is() -> None:
    rig = limited(1)
    rig.see("resourceclaims", claim("c", asks(2)))
    rig.group("g", minimum=1)
    for name in ("g-0", "g-1"):
        rig.pod(name, group="g", shape=claiming("c"))
    await rig.cycle()
    assert rig.has_reservations() == 0
    assert rig.refusals[rig.key("g")].cause is Cause.QUEUE_QUOTA


async def test_single_pods_do_not_pass_the_limit_by_sharing_a_claim() -> None:
    rig = limited(1)
    rig.see("resourceclaims", claim("c", asks(2)))
    for name in ("a", "b"):
        rig.pod(name, shape=claiming("c"))
    await rig.cycle()
    await rig.cycle()
    assert rig.has_reservations() == 0


async def test_single_pods_that_share_a_claim_come_one_after_the_other() -> None:
    rig = limited(2)
    rig.see("resourceclaims", claim("c", asks(2)))
    for name in ("a", "b"):
        rig.pod(name, shape=claiming("c"))
    await rig.cycle()
    await rig.cycle()
    assert all(rig.place(name) for name in ("a", "b"))


async def test_devices_are_free_again_when_the_pods_with_them_are_over() -> None:
    rig = limited(2)
    rig.see("resourceclaimtemplates", template("t", asks(2)))
    rig.pod("runs", shape=claiming(of="t"))
    await rig.cycle()
    rig.pod("waits", shape=claiming(of="t"))
    await rig.cycle()
    assert (bool(rig.place("runs")), bool(rig.place("waits"))) == (True, False)
    rig.delete("runs")
    await rig.cycle()
    assert rig.place("waits")


@pytest.mark.parametrize(("memory", "fits"), [(16, True), (15, False)])
async def test_a_capacity_of_devices_is_limited(memory: int, fits: bool) -> None:
    rig = limited(memory, dimension="memory")
    rig.see("resourceclaimtemplates", template("t", asks(2, capacity=(("memory", 4),))))
    add_gang(rig, "g", count=2, of="t")
    await rig.cycle()
    assert rig.has_reservations() == (2 if fits else 0)


async def test_a_group_is_not_admitted_whose_devices_its_queue_may_never_hold() -> None:
    rig = limited(3)
    rig.see("resourceclaimtemplates", template("t", asks(2)))
    rig.group("g", minimum=2, phase=GroupPhase.PENDING, min_resources=make_amounts(cpu=2000))
    for name in ("g-0", "g-1"):
        rig.pod(name, group="g", shape=claiming(of="t"))
    await rig.cycle()
    assert rig.refusals[rig.key("g")].cause is Cause.QUEUE_QUOTA


async def test_devices_that_a_queue_is_guaranteed_are_kept_from_others() -> None:
    rig = limited(100)
    rig.queue(make_queue("kept", guarantee=make_amounts(**{GPU: 10})))
    rig.see("resourceclaimtemplates", template("t", asks(4)))
    add_gang(rig, "big", count=2, of="t")
    add_gang(rig, "small", count=1, of="t")
    await rig.cycle()
    refusal = rig.refusals[rig.key("big")]
    assert (refusal.cause, rig.has_reservations()) == (Cause.QUEUE_ROOM, 1)
    assert [(s.resource, s.asked, s.free) for s in refusal.shortfalls] == [(GPU, 8, 6)]


# --- which devices there are ---------------------------------------------------------------------


async def test_a_gang_waits_for_devices_and_is_told_how_many_are_free() -> None:
    rig = limited(100)
    rig.see("resourceclaimtemplates", template("t", asks(9)))
    add_gang(rig, "g", count=1, of="t")
    await rig.cycle()
    refusal = rig.refusals[rig.key("g")]
    assert refusal.cause is Cause.DEVICE_CLAIMS
    assert refusal.note == "node n1: 8 devices of class gpu free; 9 asked"
    assert isinstance(rig.filter("g-0"), Wait)


async def test_a_gang_comes_once_a_driver_offers_devices() -> None:
    rig = limited(100)
    rig.see("resourceclaimtemplates", template("t", asks(9)))
    [name] = add_gang(rig, "g", count=1, of="t")
    await rig.cycle()
    assert not rig.place(name)
    rig.see("resourceslices", pool(*(f"gpu-{n}" for n in range(9)), node="n2"))
    await rig.cycle()
    assert rig.place(name) == "n2"


async def test_a_gang_comes_once_the_claim_of_another_pod_is_gone() -> None:
    rig = limited(100)
    every = [f"gpu-{number}" for number in range(8)]
    taken = [claim(node, asks(8), allocation=on_node(*every, node=node)) for node in ("n1", "n2")]
    rig.see("resourceclaims", *taken)
    rig.see("resourceclaimtemplates", template("t", asks(8)))
    [name] = add_gang(rig, "g", count=1, of="t")
    await rig.cycle()
    assert not rig.place(name)
    rig.unsee("resourceclaims", taken[0])
    await rig.cycle()
    assert rig.place(name) == "n1"


async def test_places_that_were_told_keep_their_devices() -> None:
    rig = limited(100)
    rig.see("resourceclaimtemplates", template("t", asks(8)))
    first = add_gang(rig, "f", count=2, of="t")
    await rig.cycle()
    assert all(rig.place(name) for name in first)
    [late] = add_gang(rig, "s", count=1, of="t")
    await rig.cycle()
    assert not rig.place(late)
    rig.land(first[0])
    rig.show_bindings()
    await rig.cycle()
    assert not rig.place(late)
