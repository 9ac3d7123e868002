"""kube-scheduler comes for the room of its victims before the watch, or a cycle, has shown it."""

import asyncio
from dataclasses import replace

import pytest

from app.core.texts import filter_text
from app.model.exchange import ANY_EQUAL, NO_EXCHANGE
from app.model.ids import NodeName
from app.model.reason import Cause
from app.model.workload import GroupPhase, PriorityClass
from app.service.calls.catching_up import GROUP_S
from app.service.calls.filtering import CATCH_UP_S, Answer, Behind, Chosen, Question, Wait
from app.service.cycle.allowed_victims import KEPT_S
from tests.builders import make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import advance, clock

FULL = filter_text(Cause.QUEUE_ROOM)
NO_GROUP = filter_text(Cause.GROUP_MISSING)
TWO = make_shape(cpu=2000)


async def after_preemption(rig: Rig) -> None:
    """One pod on either of two nodes, and ``urgent``, that may evict ``low-1`` from ``n1``."""
    rig.node("n1", "n2", cpu=2000)
    for number in (1, 2):
        node = NodeName(f"n{number}")
        rig.pod(f"low-{number}", node=node, phase="Running", shape=TWO)
    rig.pod("urgent", priority=1000, shape=TWO)
    await rig.cycle()
    assert rig.preempt("urgent", n1=["low-1"]) is None


async def after_eviction_before_the_group_shows(rig: Rig) -> None:
    """``low-1`` is gone, ``older`` waits too, and the controller gave ``urgent`` a group."""
    await after_preemption(rig)
    rig.pod("older", priority=1000, shape=TWO, created=-1.0)
    rig.pod("urgent", group="made", priority=1000, shape=TWO)
    rig.delete("low-1")


async def kept_call(rig: Rig, name: str = "urgent") -> Answer:
    pod = rig.api.pods[f"default/{name}"]
    return await rig.parts.filtering.answer_in_time(
        Question(pod.uid, lambda: pod, [NodeName("n1")])
    )


async def test_room_that_was_made_is_given_before_the_next_cycle() -> None:
    rig = Rig()
    await after_preemption(rig)
    rig.delete("low-1")
    assert rig.filter("urgent", ["n1"]) == Chosen(NodeName("n1"))


async def test_room_that_was_made_is_exchanged_for_no_other() -> None:
    rig = Rig()
    await after_preemption(rig)
    rig.delete("low-1")
    rig.node("n3", cpu=2000)
    rig.pod("another", priority=1000, shape=TWO)
    await rig.cycle()
    assert (rig.place("urgent"), rig.place("another")) == ("n1", "n3")
    urgent, another = map(rig.member, ("urgent", "another"))
    assert (urgent.exchange_class, another.exchange_class) == (NO_EXCHANGE, ANY_EQUAL)
    reservations = rig.cache.reservations
    assert not reservations.change_places(another.pod.uid, urgent.pod.uid, now=clock())


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
async def test_a_victim_that_has_ended_has_left_its_room(phase: str) -> None:
    """Its kubelet says so before it takes the pod away, which a finalizer can put off."""

    rig = Rig()
    await after_preemption(rig)
    rig.store(replace(rig.api.pods["default/low-1"], deleting=True, phase=phase))
    assert rig.filter("urgent", ["n1"]) == Chosen(NodeName("n1"))


async def test_room_that_the_watch_does_not_show_yet_is_an_error_for_nothing_is_evicted_then() -> (
    None
):
    rig = Rig()
    await after_preemption(rig)
    assert rig.filter("urgent", ["n1"]) == Behind(FULL)
    assert not rig.has_reservations(), "it is not free for us"
    rig.delete("low-1")
    assert rig.filter("urgent", ["n1"]) == Chosen(NodeName("n1"))


async def test_a_call_is_kept_until_the_watch_shows_the_victim_gone() -> None:
    rig = Rig()
    await after_preemption(rig)
    answer = asyncio.create_task(kept_call(rig))
    await advance(CATCH_UP_S / 2)
    assert not answer.done()
    rig.delete("low-1")
    assert await answer == Chosen(NodeName("n1"))


async def test_a_call_is_kept_for_a_moment_only() -> None:
    rig = Rig()
    await after_preemption(rig)
    answer = asyncio.create_task(kept_call(rig))
    await advance(2 * CATCH_UP_S)
    assert answer.done()
    assert answer.result() == Behind(FULL)


async def test_victims_may_take_their_time_to_go() -> None:
    rig = Rig()
    await after_preemption(rig)
    rig.nominate("urgent", "n1")
    rig.store(replace(rig.api.pods["default/low-1"], deleting=True))
    await advance(KEPT_S)
    await rig.cycle()
    assert isinstance(rig.filter("urgent", ["n1"]), Behind)
    rig.delete("low-1")
    assert rig.filter("urgent", ["n1"]) == Chosen(NodeName("n1"))


async def test_room_that_was_made_and_is_lost_to_another_is_worth_another_eviction() -> None:
    rig = Rig()
    await after_preemption(rig)
    rig.delete("low-1")
    rig.see("priorityclasses", PriorityClass("more", 2000, False))
    rig.group("more", minimum=1, priority_class="more")
    rig.pod("more-urgent", group="more", priority=2000, shape=TWO)
    assert rig.filter("more-urgent", ["n1"]) == Chosen(NodeName("n1"))
    assert isinstance(rig.filter("urgent", ["n1"]), Wait)


async def test_another_node_is_not_what_was_made_free() -> None:
    rig = Rig()
    await after_preemption(rig)
    assert isinstance(rig.filter("urgent", ["n2"]), Wait)


async def test_a_nominated_member_of_a_gang_waits_as_it_never_preempts() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.gang("g", size=2, shape=TWO)
    rig.nominate("g-0", "n1")
    assert isinstance(rig.filter("g-0", ["n1"]), Wait)


async def test_a_group_that_it_is_given_meanwhile_is_waited_for_and_nobody_else_evicted() -> None:
    rig = Rig()
    await after_preemption(rig)
    rig.pod("urgent", group="made", priority=1000, shape=TWO)  # the controller gave it one
    rig.delete("low-1")
    assert rig.filter("urgent", ["n1"]) == Behind(NO_GROUP)
    answer = asyncio.create_task(kept_call(rig))
    await advance(GROUP_S / 2)
    rig.group("made", minimum=1, phase=GroupPhase.PENDING)
    assert await answer == Chosen(NodeName("n1"))


async def test_its_room_is_not_given_away_before_that_group_shows() -> None:
    rig = Rig()
    await after_eviction_before_the_group_shows(rig)
    await rig.cycle()
    assert rig.place("older") == ""
    rig.see("priorityclasses", PriorityClass("urgent", 1000, False))
    rig.group("made", minimum=1, phase=GroupPhase.PENDING, priority_class="urgent")
    await rig.cycle()
    assert (rig.place("older"), rig.place("urgent")) == ("", "n1")


async def test_a_pod_whose_group_does_not_come_keeps_its_room_for_a_while_only() -> None:
    rig = Rig()
    await after_eviction_before_the_group_shows(rig)
    await advance(KEPT_S)
    await rig.cycle()
    assert rig.place("older") == "n1"


async def test_a_pod_that_has_room_is_not_refused_for_a_group_that_is_about_to_show() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.pod("late", group="g", shape=TWO)
    answer = asyncio.create_task(kept_call(rig, "late"))
    await advance(GROUP_S / 2)
    assert not answer.done()
    rig.group("g", minimum=1)
    assert await answer == Chosen(NodeName("n1"))


async def test_calls_are_not_kept_for_a_group_that_does_not_come() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    loop = asyncio.get_running_loop()
    for number, seconds in enumerate((GROUP_S, 0)):
        rig.pod(f"lost-{number}", group="nowhere", shape=TWO)
        before = loop.time()
        assert await kept_call(rig, f"lost-{number}") == Wait(NO_GROUP)
        assert round(loop.time() - before, 2) == seconds
