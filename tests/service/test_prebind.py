"""Members that kube-scheduler gets ready for their nodes before it calls Bind for them.

Virtual time; the test is kube-scheduler, which nominates a pod before it waits for its volumes.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.cache.gangs.prebind import longest_in_prebind
from app.model.ids import NodeName
from app.model.pod import GATE
from app.model.reason import Cause
from app.service.calls.filtering import Chosen
from app.service.effects.nominations import PATIENCE_S
from app.service.limits import Limits
from app.service.telling.explanations import Story, explain_group
from app.wire.times import seconds
from tests.service.replicas import lead, replica
from tests.service.rig import Rig, running, working
from tests.service.statuses import TOLD_S, conditions
from tests.service.virtual_time import advance, clock, settle

KEPT = "volumes or devices of other members are not ready; the places of the gang are kept"
LATE = "gang did not complete in time"
LIMITS = Limits(barrier_s=20.0, barrier_limit_s=45.0, planned_s=30.0, prebind_s=100.0)


async def planned_gang(*, size: int = 2, limits: Limits = LIMITS) -> Rig:
    """A gang ``g`` with a place for each of its members."""
    rig = Rig(limits)
    rig.node("n1", "n2")
    rig.gang("g", size=size)
    await rig.cycle()
    return rig


def nominate(rig: Rig, name: str, node: str) -> None:
    """kube-scheduler notes the node it has chosen, or none."""
    rig.store(replace(rig.api.pods[f"default/{name}"], nominated=NodeName(node)))


def begin_prebind(rig: Rig, name: str) -> None:
    """kube-scheduler asks, is told a node, and waits for what the pod needs there."""
    answer = rig.filter(name)
    assert isinstance(answer, Chosen)
    nominate(rig, name, answer.node)


async def come_to_bind(rig: Rig, name: str) -> None:
    """kube-scheduler tries it a second after each failure, as long as it has a place."""
    while True:
        if rig.place(name):
            await rig.bind(name).task
        await advance(1)


def story(rig: Rig) -> Story:
    found = explain_group(rig.cache, rig.parts.reasons, rig.key("g"), queries=rig.planning.queries)
    assert found is not None
    return found


async def test_no_other_has_the_place_that_one_was_prepared_for_by_a_process_before() -> None:
    rig = Rig(LIMITS)
    rig.node("n1", "n2", cpu=1000)
    rig.gang("g", size=2)
    nominate(rig, "g-0", "n2")
    await rig.cycle()
    assert rig.place("g-0") == "n2"
    uid = rig.member("g-1").pod.uid
    assert not rig.cache.reservations.exchange(uid, [NodeName("n2")], now=clock())
    assert rig.place("g-0") == "n2"


async def test_a_call_is_held_as_long_as_may_be_and_then_its_place_is_kept() -> None:
    rig = await planned_gang()
    begin_prebind(rig, "g-1")
    held = rig.bind("g-0")
    await advance(44.9)
    assert not held.done
    await advance(0.2)
    assert held.answer == KEPT
    assert rig.has_reservations() == 2

    again = rig.bind("g-0")
    await advance(30)
    last = rig.bind("g-1")
    await settle()
    assert (again.answer, last.answer) == ("", "")


async def test_nobody_waits_for_members_that_are_not_in_prebind() -> None:
    """One of two that lack is."""

    rig = await planned_gang(size=3)
    begin_prebind(rig, "g-2")
    held = rig.bind("g-0")
    await advance(20.1)
    assert held.answer == LATE
    assert rig.has_reservations() == 0


def fails(rig: Rig) -> None:
    """It takes the nomination back."""
    nominate(rig, "g-1", "")


def is_refused(rig: Rig) -> None:
    """By kube-scheduler's own filters, which lets the nomination stand."""
    rig.store(replace(rig.api.pods["default/g-1"], complaint="0/2 nodes are available"))


@pytest.mark.parametrize("ends", [fails, is_refused])
async def test_nobody_waits_when_it_failed(ends: Callable[[Rig], None]) -> None:
    rig = await planned_gang()
    begin_prebind(rig, "g-1")
    held = rig.bind("g-0")
    await advance(10)
    ends(rig)
    await advance(30.1)
    assert held.done
    assert held.answer == LATE


async def test_the_room_is_kept_for_a_bounded_time_only_though_it_begins_anew() -> None:
    rig = await planned_gang()
    with running(come_to_bind(rig, "g-0")):
        for _ in range(6):
            begin_prebind(rig, "g-1")
            await advance(16)
            assert rig.has_reservations() == 2
            nominate(rig, "g-1", "")
        begin_prebind(rig, "g-1")
        await advance(30)
        assert rig.has_reservations() == 0


async def test_who_is_in_prebind_alone_keeps_its_place() -> None:
    rig = Rig(LIMITS)
    rig.node("n1")
    rig.pod("alone")
    await rig.cycle()
    with working(rig):
        begin_prebind(rig, "alone")
        await advance(90)
        call = rig.bind("alone")
        await settle()
    assert call.answer == ""


@pytest.mark.parametrize(("told", "kept"), [(None, True), (40.0, False)])
async def test_the_configuration_may_say_how_long_volumes_take(
    told: float | None, kept: bool
) -> None:
    """As a member of a gang, and alone."""

    rig = await planned_gang()
    rig.pod("alone")
    await rig.cycle()
    rig.cache.bind_timeout_s = told
    with working(rig), running(come_to_bind(rig, "g-0")):
        begin_prebind(rig, "g-1")
        begin_prebind(rig, "alone")
        least = rig.has_reservations()
        for _ in range(90):
            await advance(1)
            least = min(least, rig.has_reservations())
        assert least == (3 if kept else 0)


async def test_the_gang_that_lost_its_places_says_what_it_waits_for() -> None:
    rig = await planned_gang()
    waits = "kube-scheduler waits for volumes or devices of pod default/g-1"
    says = f"{waits} on node {rig.place('g-1')} since {seconds(int(clock()))}"
    with working(rig), running(come_to_bind(rig, "g-0")):
        begin_prebind(rig, "g-1")
        await advance(10)
        assert story(rig).summary == f"has its places; {says}"
        assert story(rig).reason is None
        while rig.has_reservations():
            await advance(1)
        await advance(TOLD_S + 1)
    reason = story(rig).reason
    assert reason is not None
    assert (reason.cause, story(rig).summary) == (Cause.IN_PREBIND, says)
    assert conditions(rig, "g")["Unschedulable"][2].endswith(says)


async def test_its_nomination_stands_when_its_place_is_lost() -> None:
    """kube-scheduler keeps the room anyway until it is done, and plans are best made there."""

    rig = await planned_gang()
    with working(rig):
        begin_prebind(rig, "g-1")
        rig.cache.reservations.release(rig.key("g"), why="test")
        rig.cache.decisions.cool_down(rig.key("g"), until=clock() + 60)
        await advance(3 * PATIENCE_S)
    assert rig.api.of("pod-status") == []


@pytest.mark.parametrize("complaint", ["", "0/2 nodes are available"])
async def test_a_new_process_knows_who_may_be_in_prebind(complaint: str) -> None:
    rig = Rig(LIMITS)
    rig.node("n1", "n2")
    rig.group("g", minimum=2)
    rig.pod("g-0", group="g")
    rig.pod("g-1", group="g", nominated=NodeName("n2"), complaint=complaint)
    await rig.cycle()
    assert rig.place("g-1") == "n2"
    assert bool(longest_in_prebind(rig.cache.groups[rig.key("g")])) is not bool(complaint)
    rig.filter("g-0")
    held = rig.bind("g-0")
    await advance(40)
    assert held.done is bool(complaint)


async def test_so_does_another_replica() -> None:
    rig = replica(LIMITS)
    lead(rig, "host-b")
    rig.gang("g", size=2)
    with working(rig):
        nominate(rig, "g-1", "n2")
        await advance(1)
        lead(rig, "host-a")
        await advance(1)
    assert rig.place("g-1") == "n2"
    assert longest_in_prebind(rig.cache.groups[rig.key("g")])


async def test_a_pod_behind_a_gate_is_not_in_prebind() -> None:
    rig = Rig(LIMITS)
    rig.node("n1")
    rig.group("g", minimum=1)
    rig.pod("g-0", group="g", nominated=NodeName("n1"), gates=(GATE,))
    assert longest_in_prebind(rig.cache.groups[rig.key("g")]) is None
