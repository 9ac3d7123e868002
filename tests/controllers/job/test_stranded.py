"""Jobs whose gang runs below its minimum for too long, and what their annotations ask for then."""

from typing import Any

import pytest

from tests.controllers.job.jobs import make_job
from tests.controllers.job.rig import Rig, play, policy, task

_AFTER, _ACTION = "pumice.sh/stranded-after", "pumice.sh/stranded-action"
_SINCE = "pumice.sh/stranded-since"
_SPEC = {"minAvailable": 2, "tasks": [task(replicas=2)]}


def _said(after: str = "10m", action: str = "") -> dict[str, Any]:
    return {"annotations": {_AFTER: after, **({_ACTION: action} if action else {})}}


async def _strand(rig: Rig) -> None:
    """One of two pods is lost, and the scheduler finds no room for the one in its stead."""
    rig.evict("job-main-1")
    await rig.drain()
    rig.change_group({"status": {"phase": "Unknown"}})
    await rig.settle()


def _since(rig: Rig) -> str | None:
    found: str | None = rig.group()["metadata"]["annotations"].get(_SINCE)
    return found


@pytest.mark.parametrize(
    ("action", "phases"),
    [
        ("", ["Restarting", "Pending"]),
        ("restart", ["Restarting", "Pending"]),
        ("release", ["Aborting", "Aborted"]),
    ],
)
@pytest.mark.parametrize("crash", [False, True], ids=["", "over a crash"])
def test_a_gang_that_stays_below_its_minimum_is_restarted_or_released_in_time(
    action: str, phases: list[str], crash: bool
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC, **_said("10m", action))
        await _strand(rig)
        assert _since(rig)
        assert "below its minimum" in rig.status()["state"]["message"]
        await rig.later(300)
        if crash:
            await rig.kill()
            rig.start()
        await rig.later(299)
        assert rig.phase() in {"Running", "Pending"}
        rig.phases.clear()
        await rig.later(2)
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == phases
    assert rig.status()["state"].get("reason") != "Stranded"
    assert "job-main-0" not in rig.pods() or action != "release"


def test_it_is_told_what_will_follow_and_when() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC, **_said("10m"))
        await _strand(rig)
        await rig.later(60)

    rig = play(scenario)
    [told] = rig.events.messages("Stranded")
    assert told == rig.status()["state"]["message"]
    assert rig.status()["state"]["reason"] == "Stranded"
    assert "RestartJob follows at" in told


def test_a_gang_that_gets_its_member_in_time_is_left_alone() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC, **_said("10m"))
        await _strand(rig)
        await rig.later(590)
        rig.run()
        rig.change_group({"status": {"phase": "Running"}})
        await rig.settle()
        assert _since(rig) is None
        await rig.later(3600)

    rig = play(scenario)
    assert rig.phases[-1] == "Running"
    assert "Restarting" not in rig.phases
    assert "reason" not in rig.status()["state"]


def test_each_time_counts_for_itself() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC, **_said("10m"))
        for _ in range(3):
            await _strand(rig)
            await rig.later(400)
            rig.run()
            rig.change_group({"status": {"phase": "Running"}})
            await rig.settle()

    rig = play(scenario)
    assert "Restarting" not in rig.phases
    assert len(rig.events.messages("Stranded")) == 3


def test_these_restarts_are_no_failures_of_the_job() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "maxRetry": 2}, **_said("10m"))
        for _ in range(4):
            await _strand(rig)
            await rig.later(601)
            await rig.drain()
            rig.run()
            await rig.settle()

    rig = play(scenario)
    assert rig.phase() == "Running"
    assert rig.status()["retryCount"] == rig.status()["restartsWithoutFailure"] == 4


def test_a_job_that_asks_for_nothing_waits_as_long_as_it_takes() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_SPEC, "policies": [policy("*", "SyncJob")]})
        await _strand(rig)
        assert _since(rig) is None
        await rig.later(100_000)

    assert play(scenario).phase() in {"Running", "Pending"}


def test_a_job_that_asks_for_nothing_any_more_is_left_alone() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC, **_said("10m"))
        await _strand(rig)
        rig.edit_job({"metadata": {"annotations": {_AFTER: None}}})
        await rig.settle()
        assert _since(rig) is None
        await rig.later(3600)

    rig = play(scenario)
    assert "Restarting" not in rig.phases
    assert "reason" not in rig.status()["state"]


@pytest.mark.parametrize(
    ("annotations", "says"),
    [
        ({_AFTER: "10m", _ACTION: "explode"}, "use one of release, restart"),
        ({_AFTER: "ten minutes"}, "use a duration such as 1h30m"),
        ({_AFTER: "-10m"}, "use a duration such as 1h30m"),
        ({_ACTION: "restart"}, "use a duration such as 1h30m"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_told(annotations: dict[str, str], says: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC, annotations=annotations)
        await _strand(rig)
        await rig.later(3600)

    rig = play(scenario)
    [told] = rig.events.messages("PolicyIgnored")
    assert says in told
    assert "Restarting" not in rig.phases


def test_a_job_without_such_annotations_has_no_problem_with_them() -> None:
    assert make_job(_SPEC).stranded_problem == ""
    assert make_job(_SPEC, **_said("0s", "release")).stranded_problem == ""
