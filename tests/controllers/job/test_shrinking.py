"""Tasks that shrink: what is left may all have succeeded, and yet nothing has completed by that."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.wire.kinds import PODS
from tests.controllers.fake_api import Trap
from tests.controllers.job.rig import Rig, play, policy, task

_COMPLETED = [policy("TaskCompleted", "CompleteJob")]
_LATER = [policy("TaskCompleted", "CompleteJob", timeout="1m")]
_SETTLED = "pumice.sh/settled"


def _spec(replicas: int, policies: list[Any], **more: Any) -> dict[str, Any]:
    """A task that shrinks, and another that goes on."""
    worker = task("w", replicas, minAvailable=0, policies=policies)
    return {"minAvailable": 1, "tasks": [task("m", 1), worker], **more}


def _scale(rig: Rig, replicas: int, policies: list[Any] = _COMPLETED) -> None:
    rig.edit_job({"spec": _spec(replicas, policies)})


async def _is_done(rig: Rig, *pods: str) -> None:
    rig.succeed(*pods)
    await rig.drain()


def test_a_task_that_shrinks_to_one_that_still_works_goes_on() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(3, _COMPLETED))
        await _is_done(rig, "job-w-1", "job-w-2")
        _scale(rig, 2)
        await rig.drain()
        assert rig.pods() == ["job-m-0", "job-w-0", "job-w-1"]
        assert rig.phase() == "Running"
        await _is_done(rig, "job-w-0")

    assert play(scenario).phases[-2:] == ["Completing", "Completed"]


@pytest.mark.parametrize("done", [["job-w-0", "job-w-1"], ["job-w-1"]])
def test_a_task_that_shrinks_to_nothing_has_not_completed(done: list[str]) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(3, _COMPLETED))
        await _is_done(rig, *done)
        _scale(rig, 0)
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running"]
    assert rig.pods() == ["job-m-0"]


async def _stays(rig: Rig) -> None:
    """Nothing more happens."""


async def _shrinks_again(rig: Rig) -> None:
    _scale(rig, 1)


async def _is_looked_at_anew(rig: Rig) -> None:
    await rig.kill()
    rig.start()


@pytest.mark.parametrize("then", [_stays, _shrinks_again, _is_looked_at_anew])
def test_a_task_that_shrinks_to_what_has_succeeded_has_not_completed(
    then: Callable[[Rig], Awaitable[None]],
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(3, _COMPLETED))
        await _is_done(rig, "job-w-0", "job-w-1")
        _scale(rig, 2)
        await rig.drain()
        await then(rig)
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running"]
    assert not rig.events.messages("ExecuteAction")


def test_a_task_that_has_shrunk_completes_when_it_has_grown_and_the_new_one_succeeds() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(3, _COMPLETED))
        await _is_done(rig, "job-w-0", "job-w-1")
        _scale(rig, 2)
        await rig.drain()
        _scale(rig, 3)
        await rig.drain()
        assert rig.phase() == "Running"
        await _is_done(rig, "job-w-2")

    assert play(scenario).phases[-2:] == ["Completing", "Completed"]


def test_a_pod_that_succeeds_when_its_task_has_just_shrunk_completes_it() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(3, _COMPLETED))
        await _is_done(rig, "job-w-0")
        _scale(rig, 2)
        await _is_done(rig, "job-w-1")

    assert play(scenario).phases[-2:] == ["Completing", "Completed"]


def test_a_task_that_completed_before_it_shrank_is_answered_in_time() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(2, _LATER))
        await _is_done(rig, "job-w-0", "job-w-1")
        await rig.later(30)
        _scale(rig, 1, _LATER)
        await rig.drain()
        await rig.later(20)
        assert rig.phase() == "Running"
        await rig.later(11)
        await rig.drain()

    assert play(scenario).phases[-2:] == ["Completing", "Completed"]


@pytest.mark.parametrize("policies", [[], [policy("TaskFailed", "AbortJob")]])
def test_where_no_policy_asks_pods_are_left_as_they_are(policies: list[Any]) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_spec(3, policies))
        await _is_done(rig, "job-w-0", "job-w-1")
        _scale(rig, 2, policies)
        await rig.drain()

    rig = play(scenario)
    assert not any(_SETTLED in pod["metadata"]["annotations"] for pod in rig.api.all(PODS))


def test_a_crash_at_any_request_makes_no_completion_of_it() -> None:
    def shrink(number: int, *, after: bool) -> Rig:
        async def scenario(rig: Rig) -> None:
            await rig.started(_spec(3, _COMPLETED))
            await _is_done(rig, "job-w-0", "job-w-1")
            first = len(rig.api.requests)
            if number:
                rig.api.trap = Trap(first + number, after)
            _scale(rig, 2)
            await rig.drain()
            await rig.later(30)
            rig.api.trap = None
            del rig.api.requests[:first]

        return play(scenario)

    requests = shrink(0, after=False).api.requests
    assert requests
    for number, request in enumerate(requests, start=1):
        for after in (False, True):
            rig = shrink(number, after=after)
            assert rig.phases == ["Pending", "Running"], request
            assert rig.pods() == ["job-m-0", "job-w-0", "job-w-1"], request
