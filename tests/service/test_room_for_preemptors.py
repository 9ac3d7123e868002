"""What was evicted for a pod is for that pod: else it evicts once more, to feed others."""

from dataclasses import replace

import pytest

from app.model.ids import NodeName
from app.model.pod import GATE, QUEUE_ANNOTATION
from app.model.reason import Cause
from app.model.workload import GroupPhase, PriorityClass
from app.service.calls.filtering import Chosen, Wait
from app.service.cycle import on_demand
from app.service.cycle.allowed_victims import KEPT_S
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.cycle.test_planning_cycle import ALWAYS_YIELD, during_a_cycle
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance

STOCK = "default-scheduler"
TWO, TEN = make_shape(cpu=2000), make_shape(cpu=10_000)


async def urgent_after_others(*, queue: str = "default", **older: int) -> Rig:
    """Two full nodes, ``older`` waiting pods by priority, and ``urgent`` that may evict."""
    rig = Rig()
    rig.queue(make_queue("another"))
    rig.node("n1", "n2", cpu=2000)
    for number in (1, 2):
        node = NodeName(f"n{number}")
        rig.pod(f"low-{number}", scheduler=STOCK, node=node, phase="Running", shape=TWO)
    for name, priority in older.items():
        place = {QUEUE_ANNOTATION: queue}
        rig.pod(name, priority=priority, shape=TWO, annotations=place, created=1.0)
    rig.pod("urgent", priority=1000, shape=TWO, created=2.0)
    await rig.cycle()
    assert rig.preempt("urgent", n1=["low-1"]) is None
    return rig


@pytest.mark.parametrize("queue", ["default", "another"])
async def test_older_pods_of_no_higher_priority_do_not_get_it(queue: str) -> None:
    rig = await urgent_after_others(queue=queue, equal=1000, lower=10)
    rig.delete("low-1")
    await rig.cycle()
    assert rig.place("urgent") == "n1"


async def test_it_is_for_the_pod_as_long_as_its_victims_take_to_go() -> None:
    rig = await urgent_after_others(equal=1000)
    rig.nominate("urgent", "n1")
    rig.store(replace(rig.api.pods["default/low-1"], deleting=True))
    await advance(2 * KEPT_S)
    rig.delete("low-1")
    await rig.cycle()
    assert rig.place("urgent") == "n1"


async def test_a_pod_that_did_not_evict_after_all_waits_for_its_turn() -> None:
    rig = await urgent_after_others(equal=1000)
    await advance(2 * KEPT_S)
    rig.delete("low-1")
    await rig.cycle()
    assert (rig.place("equal"), rig.place("urgent")) == ("n1", "")


async def test_a_more_important_pod_goes_before_it() -> None:
    rig = await urgent_after_others()
    rig.see("priorityclasses", PriorityClass("more", 2000, False))
    rig.group("more", minimum=1, priority_class="more")
    rig.pod("higher", group="more", priority=2000, shape=TWO)
    rig.delete("low-1")
    await rig.cycle()
    assert rig.place("higher") == "n1"
    rig.delete("low-2")
    await rig.cycle()
    assert rig.place("urgent") == "n2"


async def test_it_is_admitted_before_others_can_claim_the_room() -> None:
    """While its victims are there another could be let in, as more is let in than there is room."""

    rig = Rig()
    rig.node("n1", "n2", cpu=10_000)
    for number in (1, 2):
        node = NodeName(f"n{number}")
        rig.pod(f"low-{number}", scheduler=STOCK, node=node, phase="Running", shape=TEN)
    rig.pod("urgent", priority=1000, shape=TEN, created=2.0)
    await rig.cycle()
    assert rig.refusals[rig.member("urgent").group].cause is Cause.CLUSTER_OVERUSED
    assert rig.preempt("urgent", n1=["low-1"]) is None
    for number in range(2):
        rig.pod(f"older-{number}", priority=1000, shape=TWO, created=1.0)
    await rig.cycle()
    rig.delete("low-1")
    await rig.cycle()
    assert rig.place("urgent") == "n1"


async def test_it_stays_admitted_when_limits_change_while_that_is_planned() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1", cpu=10_000)
    rig.pod("low-1", scheduler=STOCK, node=NodeName("n1"), phase="Running", shape=TEN)
    rig.pod("urgent", priority=1000, shape=TEN)
    await rig.cycle()
    assert rig.preempt("urgent", n1=["low-1"]) is None
    rig.pod("another", shape=TWO)
    limit = make_amounts(cpu=100_000)
    await during_a_cycle(rig, lambda: rig.queue(make_queue("default", capability=limit)))
    assert rig.cache.groups[rig.member("urgent").group].phase is GroupPhase.INQUEUE


async def test_one_that_we_nominated_evicted_nobody_and_is_voted_on() -> None:
    """It lost the place that it was told of, as its group was not shown when it moved there."""

    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.pod("moving", gates=(GATE,), shape=TWO)
    with working(rig):
        await advance(1)
        assert nominated(rig) == {"default/moving"}
        node = NodeName("n1")
        rig.pod("moving", group="made", nominated=node, shape=TWO)
        rig.pod("other", shape=TWO)
        await advance(1)
        assert rig.place("other") == "n1"
        wish = {"phase": GroupPhase.PENDING, "min_resources": make_amounts(cpu=2000)}
        rig.group("made", minimum=1, **wish)
        await advance(1)
        assert rig.cache.groups[rig.key("made")].phase is GroupPhase.PENDING


def nominated(rig: Rig) -> set[str]:
    """The pods that we nominated."""
    return {
        write.target
        for write in rig.api.of("pod-status")
        if write.body["status"].get("nominatedNodeName")
    }


async def test_two_that_evict_get_the_room_of_their_own_victims() -> None:
    rig = await urgent_after_others()
    rig.pod("another", priority=1000, shape=TWO, created=1.0)
    assert rig.preempt("another", n2=["low-2"]) is None
    rig.delete("low-1")
    await rig.cycle()
    assert (rig.place("urgent"), rig.place("another")) == ("n1", "")


async def test_one_that_comes_before_the_next_cycle_does_not_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_demand, "AT_ONCE", 0)  # one gang is planned on demand, not all
    rig = await urgent_after_others(equal=1000)
    rig.delete("low-1")
    rig.pod("late", priority=1000, shape=TWO)
    assert isinstance(rig.filter("late"), Wait)
    assert rig.filter("urgent") == Chosen(NodeName("n1"))


async def test_of_a_group_of_several_the_member_that_evicted_gets_it() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.pod("low", node=NodeName("n1"), phase="Running", shape=TWO)
    rig.gang("g", size=3, minimum=1, priority=1000, shape=TWO)
    await rig.cycle()
    assert rig.preempt("g-2", n1=["low"]) is None
    rig.delete("low")
    await rig.cycle()
    assert [rig.place(f"g-{i}") for i in range(3)] == ["", "", "n1"]


async def test_it_gets_no_more_than_its_queue_may_hold() -> None:
    rig = await urgent_after_others()
    rig.queue(make_queue("default", capability=make_amounts(cpu=1000)))
    rig.delete("low-1")
    await rig.cycle()
    assert rig.place("urgent") == ""
