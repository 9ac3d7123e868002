"""What members and gangs tell of the steps they took."""

import logging
from dataclasses import replace

import pytest

from app.cache.decisions import ImpossibleStepError
from app.cache.gangs.members import Stage
from app.cache.gangs.story import GROUP_STEPS, MEMBER_STEPS, Stimulus, entries
from app.model.ids import NodeName
from app.model.plan import GangPlacement, Placement
from app.model.workload import GroupPhase
from tests.builders import make_node
from tests.cache.rig import KEY, Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


def steps(rig: Rig, name: str) -> list[tuple[str, str, str, str, str]]:
    told = entries(rig.member(name).story)
    return [(step.stimulus, step.before, step.after, step.node, step.why) for step in told]


def of_the_gang(rig: Rig) -> list[tuple[str, str, str]]:
    told = entries(rig.cache.groups[KEY].story)
    return [(step.before, step.after, step.why) for step in told]


def test_a_member_tells_its_way_from_the_plan_to_its_end(rig: Rig) -> None:
    pod = rig.pod("a")
    assert steps(rig, "a") == []
    rig.stage("a", Stage.BINDING)
    for phase in ("Pending", "Running", "Succeeded"):
        rig.cache.set_pod(replace(pod, node=NodeName("n"), phase=phase), now=rig.now)
    assert steps(rig, "a") == [
        ("cycle", "waiting", "planned", "n", ""),
        ("bind", "planned", "assumed", "n", ""),
        ("barrier", "assumed", "binding", "n", ""),
        ("watch", "binding", "bound", "n", ""),
        ("watch", "bound", "running", "n", ""),
        ("watch", "running", "succeeded", "n", ""),
    ]


def test_a_lost_place_tells_what_took_it(rig: Rig) -> None:
    rig.pod("a")
    rig.stage("a", Stage.PLANNED)
    rig.cache.set_node(replace(make_node("n", cpu=2000), unschedulable=True))
    [(_, why)] = rig.lost()
    assert steps(rig, "a")[-1] == ("watch", "planned", "waiting", "", why)


def test_a_step_that_was_planned_tells_the_snapshot(rig: Rig) -> None:
    rig.pod("a")
    placed = Placement(rig.member("a").task, NodeName("n"))
    decided = GangPlacement(KEY, (placed,), whole=True)
    assert rig.cache.reservations.reserve(decided, now=rig.now, generation=7)
    rig.cache.reservations.withdraw(rig.uid("a"), now=rig.now, why="test")
    assert [step.generation for step in entries(rig.member("a").story)] == [7, 0]
    assert entries(rig.cache.groups[KEY].story)[-1].generation == 7


def test_the_latest_steps_are_kept(rig: Rig) -> None:
    rig.pod("a")
    for _ in range(2 * GROUP_STEPS):
        rig.stage("a", Stage.PLANNED)
        rig.cache.reservations.release(KEY, why="test")
    assert len(steps(rig, "a")) == MEMBER_STEPS
    assert len(of_the_gang(rig)) == GROUP_STEPS
    assert steps(rig, "a")[-1] == ("taken back", "planned", "waiting", "", "test")
    assert of_the_gang(rig)[-2:] == [
        ("Inqueue", "reserved", "places: 1"),
        ("Inqueue", "given back", "test"),
    ]


def test_a_gang_tells_its_phases_and_pauses(rig: Rig) -> None:
    rig.cache.decisions.set_phase(KEY, GroupPhase.RUNNING)
    rig.cache.decisions.cool_down(KEY, until=120.0)
    rig.cache.decisions.give_up(KEY)
    assert of_the_gang(rig) == [
        ("Inqueue", "Running", ""),
        ("Running", "cool-down", "until 120"),
        ("Running", "awaits no members", ""),
    ]


def test_a_pod_keeps_its_story_in_another_group(rig: Rig) -> None:
    pod = rig.pod("a")
    rig.stage("a", Stage.PLANNED)
    rig.cache.set_pod(replace(pod, annotations={}), now=rig.now)
    assert rig.member("a").group != KEY
    assert [step[1:3] for step in steps(rig, "a")] == [
        ("waiting", "planned"),
        ("planned", "waiting"),
    ]


def test_an_impossible_step_is_refused_with_the_story(rig: Rig) -> None:
    rig.pod("a")
    rig.stage("a", Stage.PLANNED)
    rig.cache.reservations.release(KEY, why="too late")
    told = r"default/a cannot go from waiting to binding .* planned -> waiting .*\(too late\)"
    with pytest.raises(ImpossibleStepError, match=told):
        rig.cache.decisions.restage(
            rig.member("a"), Stage.BINDING, now=rig.now, by=Stimulus.BARRIER
        )
    assert rig.member("a").stage is Stage.WAITING


def test_the_log_tells_each_step_at_debug(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.pod("a")
    with caplog.at_level(logging.DEBUG, logger="app.cache.decisions"):
        rig.stage("a", Stage.PLANNED)
    assert [record.getMessage() for record in caplog.records] == [
        "member took a step",
        "group took a step",
    ]
    fields = vars(caplog.records[0])
    assert (fields["pod"], fields["before"], fields["after"]) == ("default/a", "waiting", "planned")
