"""Pods that ask for it leave their gates as soon as only nodes are missing (volcano.md §3.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.model.pod import GATE, PLACED_CONDITION, QUEUE_GATE
from app.model.workload import QueueState
from app.service.calls.filtering import Chosen, Protect, Wait
from app.service.limits import Limits
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import CONFLICT, FAILING, GONE, Rig, working
from tests.service.virtual_time import advance, settle

ASKS = {QUEUE_GATE: "true"}
SMALL, LARGE = make_amounts(cpu=1000), make_amounts(cpu=50_000)


def opened(rig: Rig) -> list[str]:
    """Pods whose gates were taken away."""
    return [write.target.partition("/")[2] for write in rig.api.of("patch")]


def statuses(rig: Rig, name: str) -> list[dict[str, Any]]:
    """What was written about a pod's condition."""
    return [
        write.body["status"]["conditions"][0]
        for write in rig.api.of("pod-status")
        if write.target == f"default/{name}"
    ]


def ungate(rig: Rig, *names: str) -> None:
    """The watch shows that the gates are gone."""
    rig.store(*(replace(rig.api.pods[f"default/{name}"], gates=()) for name in names))


def too_big(
    rig: Rig, *, gates: tuple[str, ...] = (GATE,), annotations: dict[str, str] | None = None
) -> list[str]:
    """A gang of two that finds a node for one of them."""
    rig.node("n1")
    asked = ASKS if annotations is None else annotations
    rig.group("g", minimum=2)
    names = ["g-0", "g-1"]
    for name in names:
        rig.pod(name, group="g", gates=gates, annotations=asked, shape=make_shape(cpu=5000))
    return names


@pytest.mark.parametrize("gates", [(GATE,), (QUEUE_GATE,), (QUEUE_GATE, GATE)])
async def test_gates_open_without_a_place_when_only_nodes_are_missing(
    gates: tuple[str, ...],
) -> None:
    rig = Rig()
    names = too_big(rig, gates=gates)
    with working(rig):
        await advance(1)
        assert sorted(opened(rig)) == names
        assert "matchFields" not in str(rig.api.of("patch"))
        ungate(rig, *names)
        await advance(10)
    assert sorted(opened(rig)) == names
    assert isinstance(rig.filter("g-0"), Wait)
    assert not rig.has_reservations()


async def test_a_gate_that_is_open_is_not_opened_again_for_a_place_while_the_watch_is_late() -> (
    None
):
    rig = Rig()
    names = too_big(rig)
    with working(rig):
        await advance(1)
        assert sorted(opened(rig)) == names
        rig.node("n2")
        await advance(1)
        assert {rig.place(name) for name in names} == {"n1", "n2"}
        ungate(rig, *names)
        await advance(10)
    assert sorted(opened(rig)) == names


@pytest.mark.parametrize(
    ("gates", "annotations"), [((GATE,), {}), ((QUEUE_GATE,), {}), ((GATE, "other.io/gate"), ASKS)]
)
async def test_pods_that_do_not_ask_or_that_others_hold_stay_behind_their_gates(
    gates: tuple[str, ...], annotations: dict[str, str]
) -> None:
    rig = Rig()
    too_big(rig, gates=gates, annotations=annotations)
    with working(rig):
        await advance(10)
    assert not opened(rig)


async def test_gates_stay_while_the_queue_has_no_room_and_what_was_said_of_it_goes_with_them() -> (
    None
):
    rig = Rig()
    rig.queue(make_queue("default", capability=SMALL))
    names = too_big(rig)
    with working(rig):
        await advance(10)
        assert not opened(rig)
        assert [each["status"] for each in statuses(rig, "g-0")] == ["False"]
        rig.queue(make_queue("default", capability=LARGE))
        await advance(1)
    assert sorted(opened(rig)) == names
    assert statuses(rig, "g-0")[1:] == [{"type": PLACED_CONDITION, "$patch": "delete"}]


async def test_a_pod_that_was_shown_gets_the_node_that_comes() -> None:
    rig = Rig()
    names = too_big(rig)
    with working(rig):
        await advance(1)
        ungate(rig, *names)
        await advance(1)
        assert all(isinstance(rig.filter(name), Wait) for name in names)
        rig.node("n2")
        await advance(1)
    assert sorted(write.target for write in rig.api.of("wake")) == sorted(
        f"default/{name}" for name in names
    )
    assert all(isinstance(rig.filter(name), Chosen) for name in names)


async def test_a_crowd_of_shown_pods_is_told_to_wait_and_not_an_error() -> None:
    """Autoscalers look at pods that are unschedulable, not at those with a scheduler's error."""

    rig = Rig(Limits(protect_above=1))
    names = too_big(rig, gates=())
    rig.pod("alone", shape=make_shape(cpu=9000))
    await rig.cycle()
    assert all(isinstance(rig.filter(name), Wait) for name in names)
    assert isinstance(rig.filter("alone"), Protect)
    rig.queue(make_queue("default", state=QueueState.CLOSED))
    await rig.cycle()
    assert all(isinstance(rig.filter(name), Protect) for name in names), "no node would help"


@pytest.mark.parametrize("error", [FAILING, CONFLICT])
@pytest.mark.parametrize("verb", ["patch", "pod-status"])
async def test_a_write_that_fails_is_repeated(verb: str, error: Exception) -> None:
    rig = Rig()
    names = too_big(rig)
    rig.api.fails[verb] += [error]  # type: ignore[list-item]
    with working(rig):
        await advance(10)
    assert set(opened(rig)) == set(names)


async def test_a_pod_that_is_gone_is_left() -> None:
    rig = Rig()
    too_big(rig)
    rig.api.fails["pod-status"] += [GONE]
    with working(rig):
        await settle()
        await advance(0.5)
    assert len(opened(rig)) == 1


async def test_a_gate_that_is_still_there_long_after_is_removed_again() -> None:
    rig = Rig()
    names = too_big(rig)
    with working(rig):
        await advance(4)
        assert sorted(opened(rig)) == names
        await advance(3)
    assert sorted(opened(rig)) == sorted(names * 2)


async def test_a_replica_that_stands_by_shows_nobody() -> None:
    rig = Rig()
    too_big(rig)
    await rig.cycle()
    assert len(rig.planning.last_plan.shown) == 2
    rig.planning.leadership.stand_by()
    assert not rig.planning.last_plan.shown
