"""Pods that are gone stay gone, though kube-scheduler still calls for them: its watch is behind."""

import pytest

from app.core.texts import filter_text
from app.model.ids import NodeName
from app.model.pod import Pod
from app.model.reason import Cause
from app.service.calls.binding import BindCall
from app.service.calls.filtering import Answer, Question, Wait
from tests.service.rig import Call, Rig, working
from tests.service.virtual_time import advance, settle

N1 = NodeName("n1")


def lose(rig: Rig, name: str, *, listed: bool = False) -> Pod:
    """The watch shows that a pod is gone, or a listing lacks it."""
    gone = rig.api.pods[f"default/{name}"]
    if not listed:
        rig.delete(name)
        return gone
    del rig.api.pods[gone.key]
    rig.parts.feed.begin_listing("pods")
    for pod in rig.api.pods.values():
        rig.parts.feed.upsert("pods", pod)
    rig.parts.feed.end_listing("pods")
    rig.parts.feed.batch_done()
    return gone


def late_filter(rig: Rig, gone: Pod) -> Answer:
    return rig.parts.filtering.answer(Question(gone.uid, lambda: gone, [N1]))


@pytest.mark.parametrize("listed", [False, True])
async def test_a_late_call_does_not_bring_a_pod_back(listed: bool) -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p")
    await rig.cycle()
    gone = lose(rig, "p", listed=listed)
    assert late_filter(rig, gone) == Wait(filter_text(Cause.GROUP_MISSING))
    assert not rig.cache.members
    assert rig.has_reservations() == 0


async def test_a_pod_that_only_filter_had_shown_does_not_come_back_either() -> None:
    rig = Rig()
    rig.node("n1")
    seen = rig.pod("p")
    rig.delete("p")
    fresh = Rig()  # a process that has not heard of it
    fresh.node("n1")
    late_filter(fresh, seen)
    assert fresh.place("p") == N1
    fresh.parts.feed.begin_listing("pods")
    fresh.parts.feed.end_listing("pods")
    late_filter(fresh, seen)
    assert not fresh.cache.members


async def test_a_gang_waits_for_the_successor_whoever_calls_for_a_member_that_is_gone() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=3)
    await rig.cycle()
    gone = lose(rig, "g-1")
    late_filter(rig, gone)
    late = Call(rig, BindCall(gone.uid, "default", "g-1", N1))
    others = [rig.bind("g-0", N1), rig.bind("g-2", N1)]
    await settle()
    assert late.answer == "pod does not exist any more"
    assert not any(call.done for call in others)
    assert rig.api.bound() == {}
    rig.pod("g-1", group="g", uid="uid-g-1-again")
    await rig.cycle()
    Call(rig, BindCall(rig.api.pods["default/g-1"].uid, "default", "g-1", N1))
    await settle()
    assert set(rig.api.bound()) == {"g-0", "g-1", "g-2"}


async def test_a_pod_that_is_gone_takes_no_room_from_others() -> None:
    rig = Rig()
    rig.node("n1", cpu=1000)
    rig.pod("p")
    late_filter(rig, lose(rig, "p"))
    rig.pod("other")
    with working(rig):
        await advance(1)
        assert rig.place("other") == N1


async def test_a_pod_nobody_confirmed_in_time_is_taken_in_again() -> None:
    rig = Rig()
    rig.node("n1")
    seen = rig.pod("p")
    fresh = Rig()
    fresh.node("n1")
    late_filter(fresh, seen)
    fresh.cache.pods.forget_observed(before=float("inf"))
    assert not fresh.cache.members
    late_filter(fresh, seen)
    assert fresh.place("p") == N1, "the watch is late; that says nothing about the pod"
