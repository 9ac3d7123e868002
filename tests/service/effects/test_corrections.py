"""What kube-scheduler tells of a pod that waits does not stay behind what holds."""

from dataclasses import replace

from app.core.texts import filter_text
from app.model.ids import NodeName
from app.model.reason import Cause
from app.service.calls.filtering import Wait
from app.service.effects.corrections import PATIENCE_S
from app.service.limits import Limits
from tests.service.rig import FAILING, GONE, Rig, working
from tests.service.virtual_time import advance

MISSING = Wait(filter_text(Cause.GROUP_MISSING))
NO_ROOM = Wait(filter_text(Cause.QUEUE_ROOM))


def lonely(rig: Rig, count: int = 2) -> list[str]:
    """Ungated pods that were told that their group does not exist, and then it does."""
    rig.node("n1", cpu=500)
    names = [f"g-{number}" for number in range(count)]
    for name in names:
        rig.pod(name, group="g")
        assert rig.filter(name) == MISSING
    rig.group("g", minimum=count)
    return names


def woken(rig: Rig) -> list[str]:
    return sorted(write.target for write in rig.api.of("wake"))


async def test_a_pod_that_waits_for_something_else_by_now_is_asked_for_again_once() -> None:
    rig = Rig()
    names = lonely(rig)
    with working(rig):
        await advance(PATIENCE_S - 2)
        assert woken(rig) == []
        await advance(4)
        assert woken(rig) == ["default/g-0", "default/g-1"]
        assert [rig.filter(name) for name in names] == [NO_ROOM, NO_ROOM]
        await advance(10 * PATIENCE_S)
        assert len(woken(rig)) == 2


async def test_it_is_woken_until_somebody_asks() -> None:
    rig = Rig()
    lonely(rig, 1)
    rig.api.fails["wake"] = [FAILING, GONE]
    with working(rig):
        await advance(10 * PATIENCE_S)
        assert len(woken(rig)) > 3


async def test_a_cause_that_passes_wakes_nobody() -> None:
    rig = Rig()
    lonely(rig, 1)
    group = rig.cache.groups[rig.key("g")].pod_group
    assert group is not None
    with working(rig):
        for _ in range(5):
            await advance(PATIENCE_S - 2)
            rig.unsee("podgroups", group)
            await advance(2)
            rig.see("podgroups", replace(group))
        assert woken(rig) == []


async def test_few_are_woken_at_a_time_and_none_of_a_crowd() -> None:
    rig = Rig(Limits(protect_above=20))
    lonely(rig, 20)
    with working(rig):
        await advance(PATIENCE_S + 1.5)
        assert 0 < len(woken(rig)) < 20
        await advance(PATIENCE_S)
        assert len(set(woken(rig))) == 20

    crowd = Rig(Limits(protect_above=3))
    crowd.node("n1", cpu=1000)
    for number in range(5):
        crowd.pod(f"g-{number}", group="g")
        crowd.filter(f"g-{number}")
    crowd.group("g", minimum=5)
    with working(crowd):
        await advance(5 * PATIENCE_S)
        assert woken(crowd) == []


async def test_pods_that_are_gone_or_bound_need_no_correction() -> None:
    rig = Rig()
    lonely(rig, 2)
    rig.delete("g-0")
    rig.store(replace(rig.api.pods["default/g-1"], node=NodeName("n1")))
    with working(rig):
        await advance(5 * PATIENCE_S)
        assert woken(rig) == []
