"""The reason on pods behind our gate: once per cause, never on a pod in the scheduler's queue."""

from typing import Any

import pytest

from app.model.pod import GATE
from app.model.reason import Cause
from app.service.limits import Hint, Limits
from app.service.pod_reasons import CONDITION, MISSING_AFTER_S
from app.service.status import FIRST_EVENT_AFTER_S
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import FAILING, GONE, Rig, working
from tests.service.virtual_time import advance, clock, run


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


def test_gated_pods_say_why_they_wait_in_the_words_of_their_group() -> None:
    async def scenario() -> None:
        rig = Rig()
        names = too_big(rig)
        with working(rig):
            await advance(FIRST_EVENT_AFTER_S + 1)
        for name in names:
            [condition] = said(rig, name)
            refusal = rig.planning.refusals[rig.key("g")]
            assert condition["type"] == CONDITION
            assert (condition["status"], condition["reason"]) == ("False", refusal.cause.value)
            assert condition["message"] in rig.api.events[-1].message
            assert condition["lastTransitionTime"].endswith("Z")

    run(scenario())


def test_pods_in_the_scheduler_s_queue_are_left_alone() -> None:
    """Any write would make the scheduler try them again, for ever."""

    async def scenario() -> None:
        rig = Rig()
        names = too_big(rig, gated=False)
        with working(rig):
            await advance(1)
            for name in names:
                rig.filter(name)
            await advance(60)
        assert rig.api.of("pod-status") == []
        assert rig.api.of("wake") == []

    run(scenario())


def test_numbers_that_change_are_not_written_a_new_cause_is() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.queue(make_queue("default", capability=make_amounts(cpu=1000)))
        names = too_big(rig)
        with working(rig):
            await advance(1)
            assert [c["reason"] for c in said(rig, names[0])] == [Cause.QUEUE_QUOTA]
            rig.queue(make_queue("default", capability=make_amounts(cpu=2000)))
            await advance(10)
            assert len(said(rig, names[0])) == 1
            rig.queue(make_queue("default"))
            await advance(10)
            assert len(said(rig, names[0])) == 2

    run(scenario())


def test_members_that_come_later_are_told_too() -> None:
    async def scenario() -> None:
        rig = Rig()
        too_big(rig)
        with working(rig):
            await advance(1)
            rig.pod("late", group="g", gates=(GATE,), shape=make_shape(cpu=5000))
            await advance(1)
            assert len(said(rig, "late")) == 1
            assert len(said(rig, "g-0")) == 1

    run(scenario())


@pytest.mark.parametrize("hint", [Hint.PIN, Hint.NOMINATE, Hint.GUIDE])
def test_a_pod_that_gets_its_place_takes_the_reason_back_before_its_gate_opens(hint: Hint) -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_a_pod_that_never_waited_costs_no_write() -> None:
    async def scenario() -> None:
        rig = Rig(Limits(hint=Hint.PIN))
        rig.node("n1")
        rig.gang("g", size=2, gated=True)
        with working(rig):
            await advance(1)
        assert rig.api.of("pod-status") == []
        assert len(rig.api.of("patch")) == 2

    run(scenario())


def test_taking_a_reason_back_is_tried_until_it_is_accepted() -> None:
    async def scenario() -> None:
        rig = Rig(Limits(hint=Hint.PIN))
        names = too_big(rig)
        with working(rig):
            await advance(1)
            rig.api.fails["pod-status"] = [FAILING] * 3
            rig.node("n2")
            await advance(3)
        assert {said(rig, name)[-1]["status"] for name in names} == {"True"}

    run(scenario())


def test_a_reason_that_could_not_be_written_comes_back() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1")
        rig.pod("p", gates=(GATE,), shape=make_shape(cpu=50_000))
        rig.api.fails["pod-status"] = [FAILING] * 3
        with working(rig):
            await advance(5)
        assert len(said(rig, "p")) == 1

    run(scenario())


def test_a_pod_that_is_gone_is_not_told_again() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1")
        rig.pod("p", gates=(GATE,), shape=make_shape(cpu=50_000))
        rig.api.fails["pod-status"] = [GONE] * 100
        with working(rig):
            await advance(60)
        assert rig.api.tries.count(("pod-status", "default/p")) <= 2

    run(scenario())


def test_a_place_that_comes_while_the_reason_is_on_its_way_takes_it_back() -> None:
    async def scenario() -> None:
        rig = Rig(Limits(hint=Hint.PIN))
        names = too_big(rig)
        rig.api.fails["pod-status"] = [FAILING] * 100
        with working(rig):
            await advance(1)
            rig.api.fails.clear()
            rig.node("n2")
            await advance(30)
        for name in names:
            assert all(condition["status"] == "True" for condition in said(rig, name))

    run(scenario())


def test_what_was_said_to_pods_that_are_gone_is_forgotten() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_gated_pods_whose_group_does_not_exist_say_so_when_it_does_not_come() -> None:
    async def scenario() -> None:
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

    run(scenario())
