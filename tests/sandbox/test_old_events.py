"""What becomes of events that nobody writes again, in virtual time."""

from __future__ import annotations

from app.sandbox.old_events import KEPT_S, PERIOD_S
from tests.sandbox.documents import at
from tests.sandbox.scheduler.scripted import Stage, play

TOLD = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "told", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
    "reason": "Told",
    "message": "first",
}


def is_there(stage: Stage) -> bool:
    return stage.sandbox.store.get("/events", at("told")) is not None


def test_an_event_goes_after_an_hour() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(TOLD)
        await stage.clock.advance(KEPT_S - 1)
        assert is_there(stage)
        await stage.clock.advance(2 * PERIOD_S)
        assert not is_there(stage)

    play(scenario)


def test_one_that_is_written_again_stays_for_another() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(TOLD)
        await stage.clock.advance(KEPT_S / 2)
        stage.sandbox.store.put("/events", {**TOLD, "message": "again"})
        await stage.clock.advance(KEPT_S - 1)
        assert is_there(stage)
        await stage.clock.advance(2 * PERIOD_S)
        assert not is_there(stage)

    play(scenario)


def test_whoever_watches_is_told() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(TOLD)
        with_changes = stage.sandbox.store.subscribe("/events")
        await stage.clock.advance(KEPT_S + 2 * PERIOD_S)
        assert [change.kind.value for change in with_changes.take()] == ["DELETED"]
        with_changes.close()

    play(scenario)
