"""Finished jobs go when their time to live is over."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.controllers.garbage import GarbageCollector, ends_at
from app.controllers.ports import Failure
from app.controllers.runtime import Controller
from app.wire import times
from app.wire.kinds import JOBS
from app.wire.unstructured import Key, Object, name
from tests.controllers import play
from tests.controllers.play import Play, item
from tests.service import virtual_time

KEY = Key("ns", "job")


def run(
    scenario: Callable[[Play], Awaitable[None]], *, owed: Callable[[Object], bool] = lambda _: False
) -> Play:
    def build(stage: Play) -> list[Controller]:
        return [GarbageCollector(stage.stores, api=stage.api, clock=stage.clock, owed=owed)]

    return play.run(scenario, follows={JOBS: {}}, build=build)


def job(
    phase: str = "Completed", *, ttl: int | None = 60, ago: float = 0, **metadata: Any
) -> Object:
    ended = times.seconds(virtual_time.START - ago)
    return item(
        JOBS,
        "job",
        metadata=metadata,
        spec={} if ttl is None else {"ttlSecondsAfterFinished": ttl},
        status={"state": {"phase": phase, "lastTransitionTime": ended}},
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (job(), virtual_time.START + 60),
        (job("Failed"), virtual_time.START + 60),
        (job("Terminated", ttl=0), virtual_time.START),
        (job("Aborted"), None),
        (job("Running"), None),
        (job("Completing"), None),
        (job(ttl=None), None),
        ({"spec": {"ttlSecondsAfterFinished": 1}}, None),
        (
            {
                "spec": {"ttlSecondsAfterFinished": 1},
                "status": {"state": {"phase": "Completed", "lastTransitionTime": "soon"}},
            },
            None,
        ),
    ],
)
def test_a_job_that_has_ended_and_says_so_has_an_end(found: Object, expected: float | None) -> None:
    assert ends_at(found) == expected


def test_a_job_goes_when_its_time_is_over_and_not_before() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.put(JOBS, job())
        await stage.later(59.9)
        assert stage.names(JOBS) == ["job"]
        await stage.later(0.2)
        assert stage.names(JOBS) == []

    requests = run(scenario).fake.requests
    assert [each.propagation for each in requests if each.verb == "delete"] == ["Foreground"]


def test_a_job_whose_end_is_not_noted_stays_until_it_is() -> None:
    owed = {"job"}

    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.put(JOBS, job(ttl=0))
        await stage.later(30)
        assert stage.names(JOBS) == ["job"]
        owed.clear()
        await stage.later(1)
        assert stage.names(JOBS) == []

    run(scenario, owed=lambda found: name(found) in owed)


def test_a_job_whose_time_is_over_goes_at_once_also_after_a_restart() -> None:
    async def scenario(stage: Play) -> None:
        stage.fake.put(JOBS, job(ago=3600))
        await stage.start()
        assert stage.names(JOBS) == []

    run(scenario)


def test_a_job_that_was_resumed_meanwhile_stays() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.put(JOBS, job())
        await stage.later(30)
        # The watch shows nothing of it before the time comes.
        stage.fake.edit(JOBS, KEY, {"status": {"state": {"phase": "Running"}}})
        await stage.later(60)
        assert stage.names(JOBS) == ["job"]

    run(scenario)


def test_the_job_is_read_again_before_it_goes() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.put(JOBS, job())
        await stage.settle()
        stage.fake.edit(JOBS, KEY, {"spec": {"ttlSecondsAfterFinished": 600}})
        # Neither delivered nor known when the time comes that was known before.
        await virtual_time.advance(61)
        assert stage.names(JOBS) == ["job"]
        await stage.later(541)
        assert stage.names(JOBS) == []

    run(scenario)


def test_a_job_made_anew_under_the_name_stays() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.put(JOBS, job())
        await stage.settle()
        stage.fake.remove(JOBS, KEY)
        stage.fake.put(JOBS, job("Running"))
        await virtual_time.advance(61)
        assert stage.names(JOBS) == ["job"]

    run(scenario)


@pytest.mark.parametrize("failure", [Failure.NOT_FOUND, Failure.CONFLICT])
def test_a_job_that_somebody_else_deletes_is_none_of_its_business(failure: Failure) -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.fail(failure, lambda request: request.verb == "delete", times=9)
        stage.fake.put(JOBS, job(ttl=0))
        await stage.later(60)
        assert [r.verb for r in stage.fake.requests] == ["get", "delete"]

    run(scenario)


@pytest.mark.parametrize("verb", ["get", "delete"])
def test_a_request_that_fails_is_repeated(verb: str) -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.fail(Failure.PASSING, lambda request: request.verb == verb, times=3)
        stage.fake.put(JOBS, job(ttl=0))
        await stage.later(10)
        assert stage.names(JOBS) == []

    run(scenario)


def test_a_job_that_is_being_deleted_is_not_deleted_again() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.put(JOBS, job(ttl=0, deletionTimestamp=times.seconds(stage.clock())))
        await stage.later(60)
        assert stage.fake.requests == []

    run(scenario)
