"""Evictions that were decided before: the room is for the preemptor until it has it."""

from dataclasses import replace

import pytest

from app.model.conf import PluginConf
from app.model.eviction import EvictionAction, EvictionPlan, PipelinedPlace, VictimPod
from app.model.gang import Counts, Gang
from app.model.ids import NodeName
from app.model.reason import Cause
from tests.core.actions.rigs import cores, gang_of, members, policies
from tests.core.contended import (
    DEFAULT,
    RunningGang,
    contended,
    running_gang,
    terminating,
    victims,
)

OLD = running_gang("old", [0, 0])
"""Two pods of one core each, on the first node."""
WHOLE = PluginConf("gang", switches={"enablePreemptable": False})
BY = policies((("priority", WHOLE), ("predicates",)), ("enqueue", "allocate", "preempt"))


def begun(preemptor: Gang, victims: RunningGang, node: str = "n0") -> EvictionPlan:
    """``preemptor`` has places on ``node`` once the pods of ``victims`` are gone."""
    return EvictionPlan(
        EvictionAction.PREEMPT,
        preemptor.key,
        tuple(
            VictimPod(
                one.pod.uid,
                one.pod.namespace,
                one.pod.name,
                one.pod.node,
                one.gang,
                DEFAULT,
                "priority",
            )
            for one in victims.runs
        ),
        tuple(PipelinedPlace(task, NodeName(node)) for task in preemptor.waiting),
    )


def test_a_preemptor_waits_for_its_victims_and_is_told_which() -> None:
    high = gang_of("high", 2, priority=9)
    outcome = contended(
        high, running=[OLD], nodes=cores(2), by=policies(), begun=(begun(high, OLD),)
    )
    assert outcome.refusal("high").cause is Cause.PIPELINED
    assert outcome.text("high").endswith("it waits for 2 pods to go: default/old-0, default/old-1")
    assert outcome.plan.placed == ()


def test_what_the_first_victim_leaves_is_kept_from_others() -> None:
    high, other = gang_of("high", 2, priority=9), gang_of("other", 1)
    left = RunningGang(OLD.gang, OLD.runs[1:])
    plan = begun(high, OLD)
    kept = contended(high, other, running=[left], nodes=cores(2), by=policies(), begun=(plan,))
    assert kept.nodes("other") == {}
    free = contended(high, other, running=[left], nodes=cores(2), by=policies())
    assert free.nodes("other") == {"other-0": "n0"}


def test_room_beyond_that_of_the_preemptor_is_free_for_others() -> None:
    high, other = gang_of("high", 2, priority=9), gang_of("other", 2)
    left = RunningGang(OLD.gang, OLD.runs[1:])
    outcome = contended(
        high, other, running=[left], nodes=cores(4), by=policies(), begun=(begun(high, OLD),)
    )
    assert outcome.nodes("other") == {"other-0": "n0", "other-1": "n0"}


def test_victims_that_terminate_by_now_are_counted_on_once() -> None:
    high, other = gang_of("high", 2, priority=9), gang_of("other", 1)
    outcome = contended(
        high,
        other,
        running=[terminating(OLD)],
        nodes=cores(3),
        by=policies(),
        begun=(begun(high, OLD),),
    )
    assert outcome.nodes("other") == {"other-0": "n0"}, "one core is beyond what is kept"


@pytest.mark.parametrize("gone", [False, True])
def test_a_gang_whose_members_are_about_to_go_evicts_others_once_they_have_gone(gone: bool) -> None:
    high, low = gang_of("high", 1, priority=9), running_gang("low", [1])
    middle = running_gang("middle", [0], priority=5)
    waiting = members("middle-new", 1, priority=5)
    grown = replace(
        middle.gang,
        waiting=waiting,
        counts=Counts(pending=1) if gone else Counts(running=1, pending=1),
        role_ready={} if gone else {"": 1},
    )
    outcome = contended(
        high,
        running=[RunningGang(grown, () if gone else middle.runs), low],
        nodes=cores(1, 1),
        by=BY,
        begun=(begun(high, middle),),
        pending=(high, grown),
    )
    assert victims(outcome) == ({"low-0"} if gone else set())


def test_room_is_kept_when_all_victims_have_gone_and_nothing_shows_of_the_places_yet() -> None:
    high, other = gang_of("high", 2, priority=9), gang_of("other", 1)
    outcome = contended(high, other, nodes=cores(2), by=policies(), begun=(begun(high, OLD),))
    assert outcome.nodes("other") == {}
    assert outcome.text("high").endswith("room is kept for the group")
