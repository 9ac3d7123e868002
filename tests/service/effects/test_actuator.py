"""Pods are told their places in the cheapest way that reaches them, until they have heard."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from app.model.ids import NodeName
from app.model.pod import EXCHANGE, GATE, GROUP_ANNOTATION, SECOND_TRY, TASK_SPEC, Owner
from app.model.shape import LabelSelector, Spread
from app.model.workload import GroupPhase
from app.service.calls.filtering import Chosen, Wait
from app.service.effects.placement_hints import VCJOB
from app.service.limits import Limits, PlacementHint
from app.service.ports import Reaction, WriteError
from tests.builders import GIB, make_amounts, make_shape, make_spread_shape
from tests.service.rig import FAILING, GONE, REFUSED, Rig, working
from tests.service.virtual_time import advance, settle

JOB = Owner(VCJOB, "Job", "job-1", "uid-job")


def opened(rig: Rig, name: str) -> list[Any]:
    """The gate patches of a pod."""
    return [w.body for w in rig.api.of("patch") if w.target == f"default/{name}"]


def nominated(rig: Rig, name: str) -> list[str]:
    """The nominations of a pod."""
    return [
        w.body["status"]["nominatedNodeName"]
        for w in rig.api.of("pod-status")
        if w.target == f"default/{name}" and "nominatedNodeName" in w.body["status"]
    ]


def ungate(rig: Rig, name: str) -> None:
    """The watch shows that the gate is gone."""
    rig.store(replace(rig.api.pods[f"default/{name}"], gates=()))


async def test_a_pod_that_brings_its_place_into_a_group_is_told_of_it_there() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("moving", gates=(GATE,))
    await rig.cycle()
    assert rig.place("moving") == "n1"
    rig.api.slow_status = asyncio.Event()
    with working(rig):
        await settle()
        rig.group("made", minimum=1, phase=GroupPhase.PENDING)
        rig.pod("moving", group="made", gates=(GATE,))
        rig.api.slow_status.set()
        await settle()
        assert opened(rig, "moving")


@pytest.mark.parametrize(
    ("hint", "owner", "pinned", "nominations"),
    [
        (PlacementHint.PIN, None, True, 0),
        (PlacementHint.NOMINATE, JOB, False, 1),
        (PlacementHint.GUIDE, JOB, False, 0),
        (PlacementHint.AUTO, JOB, True, 0),
        (PlacementHint.AUTO, None, False, 1),
        (PlacementHint.AUTO, Owner("kubeflow.org/v1", "PyTorchJob", "j", "u"), False, 1),
        (PlacementHint.AUTO, Owner("batch/v1", "Job", "j", "u"), False, 1),
    ],
)
async def test_the_gate_opens_with_a_pin_or_after_a_nomination(
    hint: PlacementHint, owner: Owner | None, pinned: bool, nominations: int
) -> None:
    rig = Rig(Limits(hint=hint))
    rig.node("n1")
    rig.pod("p", gates=(GATE,), owner=owner)
    with working(rig):
        await advance(1)
    [patch] = opened(rig, "p")
    assert patch[0] == {"op": "test", "path": "/metadata/uid", "value": "uid-p"}
    assert patch[-1] == {"op": "remove", "path": "/spec/schedulingGates/0"}
    assert any("matchFields" in str(step) for step in patch) is pinned
    assert nominated(rig, "p") == ["n1"] * nominations
    verbs = [w.verb for w in rig.api.writes if w.target == "default/p"]
    assert verbs == ["pod-status"] * nominations + ["patch"]


@pytest.mark.parametrize("hint", [PlacementHint.AUTO, PlacementHint.PIN])
async def test_a_pod_made_in_place_of_a_refused_one_is_not_pinned_again(
    hint: PlacementHint,
) -> None:
    """Where others take reserved room it would lose one place after the other."""

    rig = Rig(Limits(hint=hint))
    rig.node("n1")
    rig.pod("p", gates=(GATE,), owner=JOB, annotations={SECOND_TRY: "true"})
    with working(rig):
        await advance(1)
    [patch] = opened(rig, "p")
    assert "matchFields" not in str(patch)
    assert nominated(rig, "p") == ["n1"]


SETTLED = {EXCHANGE: "false"}


async def test_a_pod_without_a_gate_whose_place_is_not_exchanged_is_nominated() -> None:
    """Before kube-scheduler asks for it, and with other nodes than its own after that."""

    rig = Rig()
    rig.node(*(f"n{number:03}" for number in range(300)), cpu=2000)
    rig.node("best", cpu=8000)
    rig.pod("p", annotations=SETTLED)
    rig.pod("q")
    with working(rig):
        await advance(1)
        assert (nominated(rig, "p"), nominated(rig, "q")) == (["best"], [])
        sample = [f"n{number:03}" for number in range(100)]
        assert isinstance(rig.filter("p", sample), Wait)
        assert isinstance(rig.filter("q", sample), Chosen)
        assert rig.place("p") == "best"
        rig.store(replace(rig.api.pods["default/p"], nominated=NodeName("best")))
        assert rig.filter("p", ["best"]) == Chosen(NodeName("best"))


async def test_a_pod_that_was_told_its_node_is_not_nominated() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", annotations=SETTLED)
    assert rig.filter("p") == Chosen(NodeName("n1"))
    with working(rig):
        await advance(1)
    assert not nominated(rig, "p")


async def test_a_nomination_is_written_again_when_kube_scheduler_dropped_it() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", annotations=SETTLED)
    with working(rig):
        await advance(1)
        rig.store(replace(rig.api.pods["default/p"], nominated=NodeName("n1")))
        await advance(8)
        assert nominated(rig, "p") == ["n1"]
        rig.store(replace(rig.api.pods["default/p"], nominated=NodeName("")))
        await advance(3)
        assert nominated(rig, "p") == ["n1", "n1"]


async def test_a_place_that_is_not_exchanged_is_nominated_where_others_are_guided() -> None:
    rig = Rig(Limits(hint=PlacementHint.GUIDE))
    rig.node("n1", "n2")
    for name, annotations in (("p", SETTLED), ("q", {})):
        rig.pod(name, gates=(GATE,), annotations=annotations)
    with working(rig):
        await advance(1)
    assert nominated(rig, "p") == [rig.place("p")]
    assert nominated(rig, "q") == []
    assert opened(rig, "p")


async def test_room_that_was_made_is_told_again_when_the_nomination_is_gone() -> None:
    """kube-scheduler clears its own after an error; from then on it would look anywhere."""

    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.pod("low", node=NodeName("n1"), phase="Running", shape=make_shape(cpu=2000))
    rig.pod("urgent", priority=1000, shape=make_shape(cpu=2000))
    with working(rig):
        await advance(1)
        assert rig.preempt("urgent", n1=["low"]) is None
        rig.delete("low")
        await advance(1)
        assert rig.place("urgent") == "n1"
        assert nominated(rig, "urgent") == ["n1"]


SPREAD = Spread(1, "zone", hard=True, selector=LabelSelector())


@pytest.mark.parametrize(
    ("hint", "owner", "rule", "expected"),
    [
        (PlacementHint.AUTO, None, SPREAD, "guided"),
        (PlacementHint.NOMINATE, None, SPREAD, "guided"),
        (PlacementHint.AUTO, None, replace(SPREAD, hard=False), "nominated"),
        (PlacementHint.AUTO, JOB, SPREAD, "pinned"),
        (PlacementHint.PIN, None, SPREAD, "pinned"),
        (PlacementHint.AUTO, JOB, replace(SPREAD, min_domains=2), "guided"),
        (PlacementHint.PIN, None, replace(SPREAD, honor_affinity=False), "guided"),
        (PlacementHint.AUTO, JOB, replace(SPREAD, min_domains=2, hard=False), "pinned"),
    ],
)
async def test_a_pod_that_must_be_spread_is_told_only_what_kube_scheduler_bears(
    hint: PlacementHint, owner: Owner | None, rule: Spread, expected: str
) -> None:
    rig = Rig(Limits(hint=hint))
    rig.node("n1", labels={"zone": "east"})
    rig.node("n2", labels={"zone": "west"})
    rig.pod("p", gates=(GATE,), owner=owner, shape=make_spread_shape(rule))
    with working(rig):
        await advance(1)
    [patch] = opened(rig, "p")
    pinned = any("matchFields" in str(step) for step in patch)
    how = "pinned" if pinned else "nominated" if nominated(rig, "p") else "guided"
    assert how == expected


async def test_all_members_are_guided_when_some_must_be_spread() -> None:
    """A launcher that is nominated would count where the workers look, and nowhere else."""

    rig = Rig()
    rig.node("n1", labels={"zone": "east"})
    rig.group("g", minimum=2)
    rig.pod("launcher", group="g", gates=(GATE,), annotations={TASK_SPEC: "launcher"})
    rig.pod("worker", group="g", gates=(GATE,), shape=make_spread_shape(SPREAD))
    with working(rig):
        await advance(1)
    assert opened(rig, "launcher")
    assert nominated(rig, "launcher") == []


async def test_a_pod_that_comes_into_a_slot_is_told_at_once() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=2, min_resources=make_amounts(cpu=2000, memory=2 * GIB, pods=2))
    with working(rig):
        await advance(1.3)
        assert rig.has_reservations() == 2
        rig.pod("g-0", group="g", gates=(GATE,))
        await advance(0.1)
        assert nominated(rig, "g-0") == ["n1"]
        assert len(opened(rig, "g-0")) == 1


async def test_a_pod_that_is_pinned_or_nominated_already_is_not_told_again() -> None:
    rig = Rig(Limits(hint=PlacementHint.NOMINATE))
    rig.node("n1")
    rig.pod("pinned", gates=(GATE,), pinned=NodeName("n1"))
    rig.pod("nominated", gates=(GATE,), nominated=NodeName("n1"))
    with working(rig):
        await advance(1)
    assert rig.api.of("pod-status") == []
    assert len(opened(rig, "pinned")) == len(opened(rig, "nominated")) == 1


async def test_a_gang_behind_gates_is_opened_whole() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=5, gated=True)
    waiting = rig.gang("big", size=5, gated=True, shape=make_shape(cpu=3000))
    with working(rig):
        await advance(1)
    assert all(len(opened(rig, name)) == 1 for name in names)
    assert not any(opened(rig, name) for name in waiting)


async def test_a_gate_of_somebody_else_keeps_ours_closed() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", gates=(GATE, "example.com/other"))
    with working(rig):
        await advance(3)
        assert opened(rig, "p") == []
        rig.store(replace(rig.api.pods["default/p"], gates=(GATE,)))
        await advance(1)
        assert len(opened(rig, "p")) == 1


async def test_a_pod_that_was_refused_is_woken_once_when_it_has_a_place() -> None:
    rig = Rig()
    rig.node("n1", cpu=500)
    rig.pod("p")
    with working(rig):
        await advance(1)
        assert isinstance(rig.filter("p"), Wait)
        assert rig.api.of("wake") == []
        rig.node("n2")
        await advance(1)
        [wake] = rig.api.of("wake")
        assert wake.target == "default/p"
        assert rig.filter("p") == Chosen(NodeName("n2"))
        await advance(20)
        assert len(rig.api.of("wake")) == 1


async def test_a_wake_that_fails_is_tried_again() -> None:
    rig = Rig()
    rig.node("n1", cpu=500)
    rig.pod("p")
    rig.api.fails["wake"] = [FAILING, FAILING]
    with working(rig):
        await advance(1)
        rig.filter("p")
        rig.node("n2")
        await advance(2)
    assert len(rig.api.of("wake")) == 1


async def test_two_wakes_have_different_tokens() -> None:
    rig = Rig()
    rig.node("n1", cpu=500)
    rig.pod("p")
    with working(rig):
        await advance(1)
        for name in ("n2", "n3"):
            rig.filter("p")
            rig.node(name)
            await advance(1)
            rig.unsee("nodes", rig.cache.node_usage.nodes[NodeName(name)])
            await advance(1)
    tokens = [wake.body for wake in rig.api.of("wake")]
    assert len(tokens) == len(set(tokens)) == 2


async def test_a_pod_that_nobody_refused_is_left_to_the_scheduler() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=3)
    with working(rig):
        await advance(10)
    assert rig.api.of("wake") == rig.api.of("patch") == rig.api.of("pod-status") == []


async def test_a_pod_that_lost_its_place_meanwhile_is_not_told() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", gates=(GATE,))
    await rig.cycle()
    assert rig.place("p") == "n1"
    rig.unsee("nodes", rig.cache.node_usage.nodes[NodeName("n1")])
    task = asyncio.create_task(rig.parts.actuator.run())
    await settle()
    assert opened(rig, "p") == []
    task.cancel()


@pytest.mark.parametrize("other_node", [True, False])
async def test_a_place_that_is_lost_while_it_is_told_opens_no_gate(other_node: bool) -> None:
    """The node is cordoned between the nomination and the opening of the gate."""

    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2, gated=True)
    rig.api.slow_status = asyncio.Event()
    with working(rig):
        await advance(0.5)
        if other_node:
            rig.node("n2")
        rig.node("n1", unschedulable=True)
        await advance(0.5)
        assert rig.place("g-0") == ("n2" if other_node else "")
        rig.api.slow_status.set()
        await advance(1)
        assert nominated(rig, "g-0") == ["n1", "n2"][: 1 + other_node]
        assert len(opened(rig, "g-0")) == other_node


async def test_a_failure_comes_back_until_it_is_accepted() -> None:
    rig = Rig(Limits(hint=PlacementHint.PIN))
    rig.node("n1")
    rig.pod("p", gates=(GATE,))
    rig.api.fails["patch"] = [FAILING, REFUSED, FAILING]
    with working(rig):
        await advance(3)
    assert len(opened(rig, "p")) == 1
    assert [v for v, _ in rig.api.tries if v == "patch"] == ["patch"] * 4


async def test_the_pause_that_the_api_server_asks_for_is_kept() -> None:
    rig = Rig(Limits(hint=PlacementHint.PIN))
    rig.node("n1")
    rig.pod("p", gates=(GATE,))
    rig.api.fails["patch"] = [WriteError(Reaction.RETRY, "429", retry_after_s=3.0)]
    with working(rig):
        await advance(2)
        assert opened(rig, "p") == []
        await advance(2)
        assert len(opened(rig, "p")) == 1


async def test_a_pod_that_is_gone_needs_nothing() -> None:
    rig = Rig(Limits(hint=PlacementHint.PIN))
    rig.node("n1")
    rig.pod("p", gates=(GATE,))
    rig.api.fails["patch"] = [GONE]
    with working(rig):
        await advance(2)
    assert [v for v, _ in rig.api.tries if v == "patch"] == ["patch"]


async def test_a_gate_that_is_still_there_is_opened_again() -> None:
    """The PATCH was accepted, and somebody put the old version back (or it was lost)."""

    rig = Rig(Limits(hint=PlacementHint.PIN))
    rig.node("n1")
    rig.pod("p", gates=(GATE,))
    with working(rig):
        await advance(1)
        assert len(opened(rig, "p")) == 1
        await advance(12)
        assert 2 <= len(opened(rig, "p")) <= 3
        ungate(rig, "p")
        before = len(opened(rig, "p"))
        await advance(12)
        assert len(opened(rig, "p")) == before


@pytest.mark.parametrize("refused", [False, True])
async def test_a_gate_that_is_open_is_not_opened_again_because_the_watch_is_late(
    refused: bool,
) -> None:
    """Its PodGroup is shown before that, so that the pod is placed once more."""

    rig = Rig(Limits(hint=PlacementHint.GUIDE))
    rig.node("n1")
    rig.pod("p", gates=(GATE,))
    with working(rig):
        await advance(1)
        assert len(opened(rig, "p")) == 1
        rig.group("g", minimum=1)
        named = replace(rig.api.pods["default/p"], annotations={GROUP_ANNOTATION: "g"})
        rig.see("pods", replace(named, gates=(GATE,)))
        rig.member("p").refused = refused
        await advance(0.5)
        assert rig.place("p") == "n1"
        rig.store(replace(named, gates=()))
        await advance(12)
    assert [verb for verb, target in rig.api.tries if target == "default/p"] == [
        "patch",
        *(["wake"] if refused else []),
    ]


async def test_opening_the_gate_starts_the_time_to_be_bound_anew() -> None:
    rig = Rig(Limits(hint=PlacementHint.PIN, planned_s=30.0))
    rig.node("n1")
    rig.pod("p", gates=(GATE,))
    rig.api.fails["patch"] = [WriteError(Reaction.RETRY, "429", retry_after_s=4.0)] * 4
    with working(rig):
        await advance(20)
        assert len(opened(rig, "p")) == 1
        ungate(rig, "p")
        await advance(15)
        assert rig.place("p") == "n1"


async def test_an_effect_that_breaks_in_an_unforeseen_way_is_logged_and_comes_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(Limits(hint=PlacementHint.PIN))
    rig.node("n1")
    rig.pod("p", gates=(GATE,))
    rig.api.fails["patch"] = [ZeroDivisionError("oh")]  # type: ignore[list-item]
    with working(rig), caplog.at_level(logging.ERROR):
        await advance(2)
    assert len(opened(rig, "p")) == 1
    assert [record.message for record in caplog.records] == ["effect failed"]
