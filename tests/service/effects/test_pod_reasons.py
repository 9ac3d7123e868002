"""The reason on pods behind our gate: once per cause, never on a pod in the scheduler's queue."""

from dataclasses import replace
from typing import Any

import pytest

from app.model.ids import NodeName
from app.model.pod import GATE, GROUP_ANNOTATION, PLACED_CONDITION, Owner
from app.model.reason import Cause
from app.service.effects.pod_reasons import MISSING_AFTER_S, TEXT_EVERY_S, TEXTS_PER_S
from app.service.effects.statuses import FIRST_EVENT_AFTER_S
from app.service.limits import Limits, PlacementHint
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.replicas import lead, replica
from tests.service.rig import FAILING, GONE, Rig, working
from tests.service.virtual_time import advance, clock


def said(rig: Rig, name: str) -> list[dict[str, Any]]:
    """The conditions written on a pod."""
    return [
        write.body["status"]["conditions"][0]
        for write in rig.api.of("pod-status")
        if write.target == f"default/{name}" and "conditions" in write.body["status"]
    ]


def too_big(rig: Rig, *, gated: bool = True) -> list[str]:
    """A gang of two that finds no room for one of them."""
    rig.node("n1")
    rig.node("small", cpu=4000)
    return rig.gang("g", size=2, gated=gated, shape=make_shape(cpu=5000))


async def test_gated_pods_say_why_they_wait_in_the_words_of_their_group() -> None:
    rig = Rig()
    names = too_big(rig)
    with working(rig):
        await advance(FIRST_EVENT_AFTER_S + 1)
    for name in names:
        [condition] = said(rig, name)
        refusal = rig.refusals[rig.key("g")]
        assert condition["type"] == PLACED_CONDITION
        assert (condition["status"], condition["reason"]) == ("False", refusal.cause.value)
        assert condition["message"] in rig.api.events[-1].message
        assert condition["lastTransitionTime"].endswith("Z")


async def test_pods_in_the_scheduler_s_queue_are_left_alone() -> None:
    """Any write would make the scheduler try them again, for ever."""

    rig = Rig()
    names = too_big(rig, gated=False)
    with working(rig):
        await advance(1)
        for name in names:
            rig.filter(name)
        await advance(60)
    assert rig.api.of("pod-status") == []
    assert rig.api.of("wake") == []


def holds_less(rig: Rig, cpu: int) -> None:
    rig.queue(make_queue("default", capability=make_amounts(cpu=cpu)))


async def test_numbers_that_are_wrong_are_put_right_after_a_few_seconds() -> None:
    rig = Rig()
    holds_less(rig, 1000)
    name = too_big(rig)[0]
    with working(rig):
        await advance(1)
        holds_less(rig, 2000)
        await advance(1)
        assert len(said(rig, name)) == 1
        await advance(TEXT_EVERY_S)
        assert ["free 1 of 1" in c["message"] for c in said(rig, name)] == [True, False]
        await advance(60)
        assert len(said(rig, name)) == 2, "what is right is not written again"


async def test_a_cause_that_comes_and_goes_is_not_written_each_time() -> None:
    rig = Rig()
    name = too_big(rig)[0]
    with working(rig):
        for _ in range(30):
            holds_less(rig, 1000)
            await advance(1)
            rig.queue(make_queue("default"))
            await advance(1)
    assert len(said(rig, name)) <= 60 / TEXT_EVERY_S + 1


async def test_a_backlog_of_any_length_costs_a_bounded_number_of_writes() -> None:
    rig = Rig()
    rig.node("n1")
    holds_less(rig, 1000)
    for number in range(20):
        rig.gang(f"g{number}", size=20, gated=True)
    with working(rig):
        await advance(45)
        before, events = len(rig.api.of("pod-status")), len(rig.api.events)
        for second in range(60):
            holds_less(rig, 1000 + second)
            await advance(1)
        written = len(rig.api.of("pod-status")) - before
        told = sum(event.about.startswith("Pod ") for event in rig.api.events[events:])
    assert written <= 60 * TEXTS_PER_S * 1.1, "of 400 pods, 3 a minute each"
    assert told == 0


async def test_members_that_come_later_are_told_too() -> None:
    rig = Rig()
    too_big(rig)
    with working(rig):
        await advance(1)
        rig.pod("late", group="g", gates=(GATE,), shape=make_shape(cpu=5000))
        await advance(1)
        assert len(said(rig, "late")) == 1
        assert len(said(rig, "g-0")) == 1


@pytest.mark.parametrize("hint", [PlacementHint.PIN, PlacementHint.NOMINATE, PlacementHint.GUIDE])
async def test_a_pod_that_gets_its_place_takes_the_reason_back_before_its_gate_opens(
    hint: PlacementHint,
) -> None:
    rig = Rig(Limits(hint=hint))
    names = too_big(rig)
    with working(rig):
        await advance(1)
        rig.node("n2")
        await advance(1)
    for name in names:
        first, last = said(rig, name)
        assert first["status"] == "False"
        assert (last["status"], last["reason"]) == ("True", "Planned")
        assert last["message"] == f"planned on {rig.place(name)}"
        verbs = [w.verb for w in rig.api.writes if w.target == f"default/{name}"]
        assert verbs == ["pod-status", "pod-status", "patch"]


async def test_a_pod_that_never_waited_costs_no_write() -> None:
    rig = Rig(Limits(hint=PlacementHint.PIN))
    rig.node("n1")
    rig.gang("g", size=2, gated=True)
    with working(rig):
        await advance(1)
    assert rig.api.of("pod-status") == []
    assert len(rig.api.of("patch")) == 2


async def test_taking_a_reason_back_is_tried_until_it_is_accepted() -> None:
    rig = Rig(Limits(hint=PlacementHint.PIN))
    names = too_big(rig)
    with working(rig):
        await advance(1)
        rig.api.fails["pod-status"] = [FAILING] * 3
        rig.node("n2")
        await advance(3)
    assert {said(rig, name)[-1]["status"] for name in names} == {"True"}


async def test_a_reason_that_could_not_be_written_comes_back() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", gates=(GATE,), shape=make_shape(cpu=50_000))
    rig.api.fails["pod-status"] = [FAILING] * 3
    with working(rig):
        await advance(5)
    assert len(said(rig, "p")) == 1


async def test_a_pod_that_is_gone_is_not_told_again() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", gates=(GATE,), shape=make_shape(cpu=50_000))
    rig.api.fails["pod-status"] = [GONE] * 100
    with working(rig):
        await advance(60)
    assert rig.api.tries.count(("pod-status", "default/p")) <= 2


async def test_a_place_that_comes_while_the_reason_is_on_its_way_takes_it_back() -> None:
    rig = Rig(Limits(hint=PlacementHint.PIN))
    names = too_big(rig)
    rig.api.fails["pod-status"] = [FAILING] * 100
    with working(rig):
        await advance(1)
        rig.api.fails.clear()
        rig.node("n2")
        await advance(30)
    for name in names:
        assert all(condition["status"] == "True" for condition in said(rig, name))


async def test_what_was_said_to_pods_that_are_gone_is_forgotten() -> None:
    rig = Rig()
    rig.node("n1")
    with working(rig):
        for number in range(5):
            rig.pod(f"p{number}", gates=(GATE,), shape=make_shape(cpu=50_000))
            await advance(1)
            rig.delete(f"p{number}")
        await advance(2)
    actuator: Any = rig.parts.actuator
    assert actuator._reasons._said == {}


async def test_gated_pods_whose_group_does_not_exist_say_so_when_it_does_not_come() -> None:
    rig = Rig()
    rig.node("n1")
    with working(rig):
        for name in ("late", "never"):
            rig.pod(f"{name}-0", group=name, gates=(GATE,), created=clock())
        await advance(1)
        rig.group("late", minimum=1)
        await advance(MISSING_AFTER_S)
    assert said(rig, "late-0") == []
    [condition] = said(rig, "never-0")
    assert (condition["status"], condition["reason"]) == ("False", "PodGroupMissing")
    assert condition["message"] == "default/never: waiting for the pod group to exist"


WEB = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
OF_WEB = "default/web-0: waiting for the pod group of ReplicaSet web to exist"


def waits_for_web(rig: Rig, **fields: Any) -> None:
    """A pod behind the gate whose owner wants a gang and has no PodGroup yet."""
    rig.api.owners["web"] = 3
    rig.pod("web-0", owner=WEB, gates=(GATE,), **fields)


async def test_gated_pods_that_wait_for_the_group_of_their_owner_say_so_when_it_does_not_come() -> (
    None
):
    rig = Rig()
    rig.node("n1")
    with working(rig):
        waits_for_web(rig, created=clock())
        await advance(MISSING_AFTER_S - 1)
        assert said(rig, "web-0") == []
        await advance(60)
    [condition] = said(rig, "web-0")
    assert (condition["status"], condition["reason"]) == ("False", "PodGroupMissing")
    assert condition["message"] == OF_WEB


async def test_the_group_of_its_owner_may_still_come_to_a_pod_of_long_ago() -> None:
    """After a restart its owner is not asked yet, nor all is seen."""

    rig = Rig()
    rig.node("n1")
    with working(rig):
        waits_for_web(rig, created=clock() - 3600)
        await advance(MISSING_AFTER_S - 1)
        assert said(rig, "web-0") == []
        await advance(2)
        assert len(said(rig, "web-0")) == 1


async def test_a_pod_that_gets_the_group_of_its_owner_takes_back_that_it_was_missing() -> None:
    rig = Rig(Limits(hint=PlacementHint.PIN))
    rig.node("n1")
    with working(rig):
        waits_for_web(rig)
        await advance(MISSING_AFTER_S + 1)
        rig.group("auto", minimum=1)
        told = {GROUP_ANNOTATION: "auto"}
        rig.store(replace(rig.api.pods["default/web-0"], annotations=told))
        await advance(1)
    assert [condition["status"] for condition in said(rig, "web-0")] == ["False", "True"]


async def test_a_pod_whose_owner_wants_no_gang_never_says_that_its_group_is_missing() -> None:
    rig = Rig()
    rig.node("n1")
    with working(rig):
        rig.pod("web-0", owner=WEB, gates=(GATE,), shape=make_shape(cpu=50_000))
        await advance(60)
    assert [c["reason"] for c in said(rig, "web-0")] == [Cause.CLUSTER_OVERUSED]


WAS_TOLD: dict[str, Any] = {"gates": (GATE,), "refused_for": Cause.NOT_ENOUGH_RESOURCES.value}
"""A pod to which an extender before this one said why it waits."""


@pytest.mark.parametrize("hint", [PlacementHint.PIN, PlacementHint.NOMINATE, PlacementHint.GUIDE])
async def test_what_was_said_before_a_restart_is_taken_back_before_the_gate_opens(
    hint: PlacementHint,
) -> None:
    rig = Rig(Limits(hint=hint))
    rig.node("n1")
    rig.pod("p", **WAS_TOLD)
    with working(rig):
        await advance(1)
    [condition] = said(rig, "p")
    assert (condition["status"], condition["reason"]) == ("True", "Planned")
    verbs = [w.verb for w in rig.api.writes if w.target == "default/p"]
    assert verbs == ["pod-status", "patch"]


async def test_what_was_said_before_a_restart_is_said_again_only_when_it_is_another_cause() -> None:
    rig = Rig()
    rig.node("n1")
    too_large = make_shape(cpu=50_000)
    rig.pod("unknown", gates=(GATE,), shape=too_large)
    with working(rig):
        await advance(1)
        [told] = said(rig, "unknown")
        rig.pod("same", gates=(GATE,), refused_for=told["reason"], shape=too_large)
        rig.pod("other", gates=(GATE,), refused_for="QueueQuota", shape=too_large)
        await advance(1)
    assert said(rig, "same") == []
    assert [condition["reason"] for condition in said(rig, "other")] == [told["reason"]]


async def test_a_pod_that_loses_its_place_is_told_again_though_the_watch_shows_the_old_word() -> (
    None
):
    rig = Rig()
    rig.node("n1")
    rig.pod("p", shape=make_shape(cpu=6000), **WAS_TOLD)
    with working(rig):
        await advance(1)
        assert [condition["status"] for condition in said(rig, "p")] == ["True"]
        rig.unsee("nodes", rig.cache.node_usage.nodes[NodeName("n1")])
        rig.node("small", cpu=4000)
        await advance(5)
    assert [condition["status"] for condition in said(rig, "p")] == ["True", "False"]


async def test_a_replica_that_leads_again_goes_by_what_the_other_said() -> None:
    rig = replica()
    lead(rig, "host-a")
    pod = rig.pod("p", gates=(GATE,), shape=make_shape(cpu=50_000))
    with working(rig):
        await advance(1)
        [first] = said(rig, "p")
        lead(rig, "host-b")
        await advance(2)
        rig.store(replace(pod, refused_for="QueueQuota"))
        lead(rig, "host-a")
        await advance(2)
        assert [c["reason"] for c in said(rig, "p")] == [first["reason"]] * 2


async def test_a_replica_that_stands_by_says_nothing() -> None:
    rig = replica()
    lead(rig, "host-a")
    with working(rig):
        rig.pod("p", group="none", gates=(GATE,), created=clock())
        await advance(1)
        lead(rig, "host-b")
        await advance(2 * MISSING_AFTER_S)
    assert said(rig, "p") == []
