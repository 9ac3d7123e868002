"""Queues are limited by the devices that their pods claim."""

import pytest

from app.model.reason import Cause
from app.model.workload import GroupPhase
from tests.builders import make_amounts, make_queue
from tests.device_claims import asks, claim, claiming, template
from tests.service.rig import Rig

GPU = "deviceclass/gpu"


def limited(count: int, *, dimension: str = "") -> Rig:
    """The queue may hold so many devices; any number fits the nodes."""
    rig = Rig()
    rig.node("n1", "n2")
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
