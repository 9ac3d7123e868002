"""How long a pod that was refused, or met an error, is left alone."""

from __future__ import annotations

import asyncio
import itertools

from app.sandbox.scheduler.loop import LoopConfig
from app.sandbox.scheduler.queue import BackoffConfig
from app.wire.documents import Document
from tests.sandbox.documents import at, cpu, node, pod
from tests.sandbox.scheduler.scripted import Stage, error, pass_all, play, refuse
from tests.sandbox.scheduler.test_loop import ours
from tests.sandbox.scheduler.test_wakeups import PATIENT, filters, refused

SHORT = LoopConfig(name="", profiles=frozenset(), backoff=BackoffConfig(max_s=1))
COSTLY = LoopConfig(name="", profiles=frozenset(), attempt_seconds=0.005)


async def keep_waking(stage: Stage, name: str, *, seconds: int) -> None:
    """A write on the pod ten times a second."""
    for number in range(seconds * 10):
        stage.patch(name, {"metadata": {"annotations": {"wake": str(number)}}})
        await stage.clock.advance(0.1)


def test_without_early_popping_refusals_climb_the_ladder_too() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = refuse()
        stage.create(ours())
        await keep_waking(stage, "p", seconds=45)
        assert stage.extender.times("filter") == [0, 2, 5, 10, 19, 30, 41]

    play(scenario, tuning=PATIENT)


def test_the_ladder_has_the_ceiling_that_is_configured() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = error("no")
        stage.create(ours())
        await stage.clock.advance(9)
        assert stage.extender.times("filter") == [0, 2, 4, 6, 8]

    play(scenario, tuning=SHORT)


def test_no_event_of_any_kind_shortens_the_ladder_of_errors() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(pod("foreign"))
        await stage.clock.settle()
        stage.extender.filter = error("no")
        stage.create(ours())
        await stage.clock.advance(2.5)
        stage.patch("p", {"metadata": {"labels": {"wake": "up"}}})
        stage.create(node("new"))
        stage.sandbox.server.delete("/pods", at("foreign"))
        stage.create(pod("another"))
        await stage.clock.advance(2)
        assert stage.extender.times("filter") == [0, 2]

    play(scenario)


def test_errors_in_a_row_count_refusals_between_them_begin_anew() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = error("no")
        stage.create(ours())
        await stage.clock.advance(6)
        assert stage.extender.times("filter") == [0, 2, 5]
        stage.extender.filter = refuse()
        await stage.clock.advance(6)
        stage.extender.filter = error("no")
        stage.extender.calls.clear()
        stage.patch("p", {"metadata": {"annotations": {"wake": "up"}}})
        await stage.clock.advance(3)
        assert len(stage.extender.times("filter")) == 2

    play(scenario)


def test_a_bind_error_does_not_forget_earlier_refusals() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = refuse()
        stage.create(ours())
        await keep_waking(stage, "p", seconds=20)
        stage.extender.filter = pass_all
        stage.extender.bind_error = "gang timed out"
        await keep_waking(stage, "p", seconds=15)
        stage.extender.filter = refuse()
        stage.extender.calls.clear()
        await keep_waking(stage, "p", seconds=40)
        times = stage.extender.times("filter")
        assert min(b - a for a, b in itertools.pairwise(times)) >= 10

    play(scenario, tuning=PATIENT)


def test_after_five_minutes_a_refused_pod_is_tried_again() -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "p")
        await stage.clock.advance(260)
        assert filters(stage) == 0
        await stage.clock.advance(60)
        assert filters(stage) >= 1

    play(scenario)


def test_a_text_that_changes_is_a_hot_loop() -> None:
    """Each new text is a write on the pod, which wakes it."""

    async def scenario(stage: Stage) -> None:
        attempts = 0

        def counting(args: Document) -> Document:
            nonlocal attempts
            attempts += 1
            return refuse(f"waiting for gang, attempt {attempts}")(args)

        stage.extender.filter = counting
        stage.create(ours())
        await stage.clock.advance(2)
        assert attempts > 200

    play(scenario, tuning=COSTLY)


def test_a_refusal_writes_one_condition_and_counts_one_event() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = refuse()
        stage.create(ours())
        await stage.clock.advance(10)
        version = stage.pod("p")["metadata"]["resourceVersion"]
        for number in range(5):
            stage.create(pod(f"foreign{number}"))
            await stage.clock.settle()
        assert filters(stage) >= 7
        assert stage.pod("p")["metadata"]["resourceVersion"] == version
        assert len(stage.events("FailedScheduling")) == 1

    play(scenario)


def test_what_happens_during_an_attempt_counts_after_it() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = refuse()
        stage.create(ours())
        await stage.clock.advance(30)
        stage.extender.filter_holds = asyncio.Event()
        stage.extender.calls.clear()
        stage.patch("p", {"metadata": {"annotations": {"wake": "up"}}})
        await stage.clock.settle()
        assert filters(stage) == 1
        stage.create(pod("foreign"))
        await stage.clock.settle()
        stage.extender.filter_holds.set()
        await stage.clock.settle()
        assert filters(stage) == 2

    play(scenario)


def test_room_that_appears_lets_a_pod_in_that_only_lacked_room() -> None:
    async def scenario(stage: Stage) -> None:
        big = ours(resources=cpu("3"))
        stage.create(*(pod(f"full{number}", resources=cpu("3")) for number in range(3)))
        await stage.clock.settle()
        stage.create(big)
        await stage.clock.advance(20)
        assert not stage.node_of("p")
        stage.sandbox.server.delete("/pods", at("full1"))
        await stage.clock.advance(1)
        assert stage.node_of("p")

    play(scenario)
