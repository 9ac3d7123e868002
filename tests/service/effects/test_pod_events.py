"""The event on a pod behind our gate: what ``kubectl describe pod`` shows of the reason."""

from __future__ import annotations

import asyncio

from app.model.pod import GATE
from app.model.reason import Cause, Refusal
from app.service.effects.pod_events import (
    AGAIN_EVERY_S,
    CHANGED_EVERY_S,
    FAILED,
    FIRST_AFTER_S,
    NEXT_MEMBER_S,
    PER_S,
    PodEvents,
)
from app.service.effects.pod_reasons import MISSING_AFTER_S
from app.service.telling.hiding import Wording
from tests.builders import make_amounts, make_pod, make_queue, make_shape
from tests.service.replicas import lead, replica
from tests.service.rig import FAILING, FakeApi, Rig, working
from tests.service.virtual_time import advance, clock

TOLD_S = FIRST_AFTER_S + 0.5


def told(rig: Rig, name: str = "") -> list[str]:
    """What events of pods say, of one or of all."""
    about = f"Pod default/{name}"
    found = [event for event in rig.api.events if event.about.startswith(about)]
    assert {(event.event_type, event.reason) for event in found} <= {("Warning", FAILED)}
    return [event.message for event in found]


def small(rig: Rig, cpu: int = 1000) -> None:
    """The queue may hold no more."""
    rig.queue(make_queue("default", capability=make_amounts(cpu=cpu)))


def waits(rig: Rig, size: int = 2, name: str = "g") -> None:
    rig.gang(name, size=size, gated=True)


async def test_a_pod_that_waits_has_one_event_in_the_words_of_its_group() -> None:
    rig = Rig()
    rig.node("n1")
    small(rig)
    waits(rig)
    with working(rig):
        await advance(TOLD_S)
        sentence = "queue default: cpu asked 2, free 1 of 1; never: more than the queue may hold"
        assert told(rig, "g-0") == told(rig, "g-1") == [sentence]
        assert sentence in next(e.message for e in rig.api.events if e.event_type == "Warning")
        await advance(600)
        assert len(told(rig)) == 2


async def test_a_pod_that_waits_for_a_moment_only_has_none() -> None:
    rig = Rig()
    rig.node("n1")
    small(rig)
    waits(rig)
    with working(rig):
        await advance(FIRST_AFTER_S / 2)
        rig.queue(make_queue("default"))
        await advance(60)
    assert told(rig) == []


async def test_a_new_cause_is_told_and_new_numbers_are_not() -> None:
    rig = Rig()
    rig.node("n1")
    small(rig)
    rig.gang("g", size=2, gated=True, shape=make_shape(cpu=5000))
    with working(rig):
        await advance(TOLD_S)
        small(rig, 2000)
        await advance(CHANGED_EVERY_S)
        assert len(told(rig, "g-0")) == 1
        rig.queue(make_queue("default"))
        await advance(CHANGED_EVERY_S)
    first, second = told(rig, "g-0")
    assert first.startswith("queue default: cpu asked 10, free 1 of 1")
    assert "free 8 of 8" in second or "free 3 of 8" in second


async def test_a_cause_that_comes_and_goes_is_told_now_and_then() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2, gated=True, shape=make_shape(cpu=5000))
    with working(rig):
        for _ in range(30):
            small(rig)
            await advance(1)
            rig.queue(make_queue("default"))
            await advance(1)
    assert len(told(rig, "g-0")) <= 60 / CHANGED_EVERY_S + 1


async def test_it_is_told_again_before_the_api_server_has_forgotten_it() -> None:
    api, pod = FakeApi(), make_pod("p")
    refusal = Refusal(Cause.NO_NODE_FITS)
    wording = Wording(Rig().cache, hides=False)
    events = PodEvents(
        lambda _uid: (pod, refusal),
        wording=wording,
        events=api,
        clock=clock,
        failed=lambda *_: None,
        namespace_of=lambda _uid: pod.namespace,
    )
    work = asyncio.create_task(events.run())
    events.ask(pod.uid, rank=0)
    await advance(AGAIN_EVERY_S)
    assert len(api.events) == 1
    await advance(TOLD_S + 1)
    assert len(api.events) == 2
    work.cancel()


async def test_the_members_of_a_gang_are_told_one_after_another_and_the_first_of_each_at_once() -> (
    None
):
    rig = Rig()
    rig.node("n1")
    small(rig)
    waits(rig, 60, "a")
    waits(rig, 60, "b")
    with working(rig):
        await advance(TOLD_S)
        assert len(told(rig, "a-0")) == len(told(rig, "b-0")) == 1
        assert len(told(rig)) <= (0.5 + 1 / PER_S) * PER_S + 2
        await advance(60 * NEXT_MEMBER_S + 3)
        assert len(told(rig)) == 120


async def test_a_pod_in_the_scheduler_s_queue_has_none_of_ours() -> None:
    rig = Rig()
    rig.node("n1")
    small(rig)
    rig.gang("g", size=2, gated=False)
    with working(rig):
        await advance(60)
    assert told(rig) == []


async def test_a_pod_whose_group_is_missing_is_told_when_it_does_not_come() -> None:
    rig = Rig()
    rig.node("n1")
    with working(rig):
        for name in ("late", "never"):
            rig.pod(f"{name}-0", group=name, gates=(GATE,), created=clock())
        await advance(1)
        rig.group("late", minimum=1)
        await advance(MISSING_AFTER_S + 1)
    assert told(rig) == ["default/never: waiting for the pod group to exist"]


async def test_an_event_that_could_not_be_written_comes_back() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", gates=(GATE,), shape=make_shape(cpu=50_000))
    rig.api.fails["event"] = [FAILING] * 3
    with working(rig):
        await advance(10)
    assert len(told(rig, "p")) == 1


async def test_a_replica_that_stands_by_tells_nothing() -> None:
    rig = replica()
    lead(rig, "host-a")
    with working(rig):
        rig.pod("p", gates=(GATE,), shape=make_shape(cpu=50_000))
        await advance(1)
        lead(rig, "host-b")
        await advance(60)
    assert told(rig) == []
