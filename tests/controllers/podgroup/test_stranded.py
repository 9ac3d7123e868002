"""Stranded gangs of plain PodGroups: restarted or released in time, and never without a word."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.controllers.podgroup.stranded import INDEXES, StrandedGroups
from app.controllers.ports import Failure
from app.controllers.runtime import Controller
from app.wire.kinds import JOBS, POD_GROUPS, PODS
from app.wire.unstructured import Key, annotations, controlled_by, is_deleting
from tests.controllers import play
from tests.controllers.play import Play, item

GROUP = "scheduling.k8s.io/group-name"
AFTER, ACTION = "pumice.sh/stranded-after", "pumice.sh/stranded-action"
SINCE, RELEASED = "pumice.sh/stranded-since", "pumice.sh/stranded-released"
G = Key("ns", "g")


def build(stage: Play) -> list[Controller]:
    made = StrandedGroups(stage.stores, api=stage.api, events=stage.events, clock=stage.clock)
    return [made]


def run(scenario: Callable[[Play], Awaitable[None]]) -> Play:
    async def whole(stage: Play) -> None:
        await stage.start()
        await scenario(stage)

    return play.run(whole, follows={POD_GROUPS: {}, **INDEXES}, build=build)


def group(stage: Play, *, after: str = "10m", action: str = "", **metadata: Any) -> None:
    """A group of three that has two pods, which run."""
    said = {key: value for key, value in ((AFTER, after), (ACTION, action)) if value}
    stage.fake.put(
        POD_GROUPS,
        item(
            POD_GROUPS,
            "g",
            metadata={"annotations": said, **metadata},
            spec={"minMember": 3},
            status={"phase": "Running"},
        ),
    )
    for name in ("a", "b"):
        pod(stage, name)


def pod(stage: Play, name: str, *, node: str = "n1", phase: str = "Running") -> None:
    stage.fake.put(
        PODS,
        item(
            PODS,
            name,
            metadata={"annotations": {GROUP: "g"}},
            spec={"schedulerName": "volcano", "nodeName": node},
            status={"phase": phase},
        ),
    )


def phase(stage: Play, to: str) -> None:
    """The extender writes the group's phase."""
    stage.fake.edit(POD_GROUPS, G, {"status": {"phase": to}})


def said(stage: Play) -> dict[str, Any]:
    return dict(annotations(stage.stored(POD_GROUPS, G)))


def evicted(stage: Play) -> list[str]:
    """Names of the pods for which an eviction was asked."""
    return sorted(r.key.name for r in stage.fake.requests if r.subresource == "eviction")


@pytest.mark.parametrize("action", ["", "restart"])
@pytest.mark.parametrize("crash", [False, True], ids=["", "over a crash"])
def test_the_pods_that_are_left_are_evicted_in_time(action: str, crash: bool) -> None:
    async def scenario(stage: Play) -> None:
        group(stage, action=action)
        pod(stage, "done", phase="Succeeded")
        pod(stage, "waits", node="", phase="Pending")
        phase(stage, "Unknown")
        await stage.settle()
        assert said(stage)[SINCE]
        await stage.later(300)
        if crash:
            await stage.kill()
            await stage.start()
        await stage.later(298)
        assert evicted(stage) == []
        await stage.later(3)
        assert evicted(stage) == ["a", "b"]

    stage = run(scenario)
    [told] = stage.told.messages("Stranded")
    assert "has run below its minimum since" in told
    assert "the pods that are left are evicted at" in told
    assert stage.told.messages("StrandedRestarted")[0].startswith("2 pods are evicted")


def test_pods_that_are_made_after_the_restart_are_left_alone() -> None:
    async def scenario(stage: Play) -> None:
        group(stage)
        phase(stage, "Unknown")
        await stage.later(601)
        pod(stage, "c")
        pod(stage, "d")
        await stage.later(100)
        assert evicted(stage) == ["a", "b"]
        phase(stage, "Running")
        await stage.settle()
        assert SINCE not in said(stage)
        await stage.later(3600)
        assert evicted(stage) == ["a", "b"]

    run(scenario)


def test_a_released_gang_runs_on_and_is_marked_for_the_scheduler() -> None:
    async def scenario(stage: Play) -> None:
        group(stage, action="release")
        phase(stage, "Unknown")
        await stage.later(599)
        assert RELEASED not in said(stage)
        await stage.later(2)
        assert said(stage)[RELEASED]
        await stage.later(3600)
        assert evicted(stage) == []
        phase(stage, "Running")
        await stage.settle()
        assert set(said(stage)) == {AFTER, ACTION}

    stage = run(scenario)
    assert len(stage.told.messages("Stranded")) == 1
    assert len(stage.told.messages("StrandedReleased")) == 1


@pytest.mark.parametrize("action", ["restart", "release"])
def test_a_gang_that_gets_its_members_in_time_is_left_alone(action: str) -> None:
    async def scenario(stage: Play) -> None:
        group(stage, action=action)
        for _ in range(3):
            phase(stage, "Unknown")
            await stage.later(590)
            phase(stage, "Running")
            await stage.later(5)
            assert set(said(stage)) == {AFTER, ACTION}
        await stage.later(3600)

    stage = run(scenario)
    assert evicted(stage) == []
    assert len(stage.told.messages("Stranded")) == 3


def test_a_budget_that_forbids_the_evictions_puts_them_off_and_is_told_once() -> None:
    async def scenario(stage: Play) -> None:
        stage.fake.fail(
            Failure.PASSING,
            lambda r: r.subresource == "eviction" and r.key.name == "a",
            times=3,
            message="429: budget",
        )
        group(stage)
        phase(stage, "Unknown")
        await stage.later(601)
        assert is_deleting(stage.stored(PODS, Key("ns", "b")))
        await stage.later(600)
        assert stage.fake.find(PODS, Key("ns", "a")) is None or is_deleting(
            stage.stored(PODS, Key("ns", "a"))
        )

    stage = run(scenario)
    assert stage.told.messages("StrandedNotRestarted") == ["429: budget"]


def test_a_group_of_a_vcjob_is_left_to_the_job_controller() -> None:
    async def scenario(stage: Play) -> None:
        job = stage.fake.put(JOBS, item(JOBS, "job"))
        group(stage, ownerReferences=[controlled_by(job)])
        phase(stage, "Unknown")
        await stage.later(3600)

    stage = run(scenario)
    assert evicted(stage) == []
    assert stage.told.told == []


@pytest.mark.parametrize(
    ("after", "action", "says"),
    [
        ("10m", "explode", "use one of release, restart"),
        ("soon", "", "use a duration such as 1h30m"),
        ("", "release", "use a duration such as 1h30m"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_told_once(after: str, action: str, says: str) -> None:
    async def scenario(stage: Play) -> None:
        group(stage, after=after, action=action)
        phase(stage, "Unknown")
        await stage.later(3600)
        phase(stage, "Running")
        await stage.later(3600)

    stage = run(scenario)
    [told] = stage.told.messages("PolicyIgnored")
    assert says in told
    assert evicted(stage) == []


def test_a_group_that_asks_for_nothing_is_not_written_to() -> None:
    async def scenario(stage: Play) -> None:
        group(stage, after="")
        phase(stage, "Unknown")
        await stage.later(3600)

    stage = run(scenario)
    assert stage.fake.requests == []
    assert stage.told.told == []
