"""A pod that had its place alone moves into a PodGroup, with the place or without."""

from dataclasses import replace
from typing import Any

import pytest

from app.cache.gangs.members import Stage
from app.model.ids import NodeName, QueueName, group_key
from app.model.parts import SubGroupPolicy
from app.model.pod import GROUP_ANNOTATION
from app.model.workload import GroupPhase, PodGroup
from tests.builders import make_pod
from tests.cache.rig import Rig

MADE = group_key("default", "made")
PAIRS = (SubGroupPolicy("pair", keys=("pair",), size=2),)


@pytest.fixture
def rig() -> Rig:
    """With the pod ``a`` alone, which has a place on ``n``."""
    rig = Rig()
    rig.cache.set_pod(make_pod("a"), now=rig.now)
    assert rig.cache.reservations.move(rig.uid("a"), NodeName("n"), now=rig.now)
    rig.now += 1
    return rig


def make_group(rig: Rig, **fields: Any) -> None:
    defaults: dict[str, Any] = {
        "uid": "uid-made",
        "resource_version": "1",
        "created": 0.0,
        "min_member": 1,
        "phase": GroupPhase.PENDING,
    }
    rig.cache.set_group(PodGroup("default", "made", **(defaults | fields)))


def join(rig: Rig) -> None:
    """The podgroup controller tells the pod its group."""
    pod = rig.member("a").pod
    rig.cache.set_pod(replace(pod, annotations={GROUP_ANNOTATION: "made"}), now=rig.now)


def test_it_brings_its_place_into_a_group_made_for_it(rig: Rig) -> None:
    make_group(rig)
    join(rig)
    member = rig.member("a")
    assert (member.group, member.stage, member.node) == (MADE, Stage.PLANNED, "n")
    assert member.since == rig.now - 1, "nobody came for it since then"
    assert rig.used("n") == 1000
    assert rig.lost() == []


def test_whoever_was_told_of_the_place_finds_it_there(rig: Rig) -> None:
    rig.member("a").told = True
    make_group(rig)
    join(rig)
    assert rig.member("a").told, "no equal member changes places with it"


def test_a_call_of_bind_was_for_the_group_that_it_leaves(rig: Rig) -> None:
    rig.cache.bind_steps.assume(rig.uid("a"), now=rig.now)
    make_group(rig)
    join(rig)
    assert rig.where("a") == [(Stage.WAITING, "")]
    assert rig.lost() == [("a", "pod moved to another group")]


def test_the_group_is_admitted_and_has_nothing_pending(rig: Rig) -> None:
    make_group(rig)
    join(rig)
    assert rig.cache.groups[MADE].phase is GroupPhase.INQUEUE
    assert MADE not in rig.cache.registry.pending
    assert rig.cache.reservations.housed == ["uid-a"], (
        "whoever tells it of its place finds it there"
    )


def test_a_group_that_runs_goes_on_running(rig: Rig) -> None:
    make_group(rig, phase=GroupPhase.RUNNING)
    join(rig)
    assert rig.where("a") == [(Stage.PLANNED, "n")]
    assert rig.cache.groups[MADE].phase is GroupPhase.RUNNING


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"min_member": 2}, id="a gang"),
        pytest.param({"role_minimum": {"worker": 1}}, id="roles"),
        pytest.param({"sub_groups": PAIRS}, id="sub-groups"),
        pytest.param({"queue": QueueName("other")}, id="another queue"),
        pytest.param({"deleting": True}, id="on its way out"),
    ],
)
def test_it_leaves_the_place_behind_where_that_is_not_as_good(
    rig: Rig, fields: dict[str, Any]
) -> None:
    make_group(rig, **fields)
    join(rig)
    assert rig.where("a") == [(Stage.WAITING, "")]
    assert rig.lost() == [("a", "pod moved to another group")]
    assert rig.used("n") == 0


def test_it_does_so_when_the_group_is_not_known_yet(rig: Rig) -> None:
    join(rig)
    assert rig.where("a") == [(Stage.WAITING, "")]


def test_it_does_so_when_it_is_being_deleted(rig: Rig) -> None:
    make_group(rig)
    pod = replace(rig.member("a").pod, deleting=True)
    rig.cache.set_pod(replace(pod, annotations={GROUP_ANNOTATION: "made"}), now=rig.now)
    assert rig.used("n") == 0
    assert rig.lost() == [("a", "pod moved to another group")]
    assert rig.cache.groups[MADE].phase is GroupPhase.PENDING


def test_one_that_failed_while_it_was_deleted_is_lost_to_the_group_that_it_joins(rig: Rig) -> None:
    pod = replace(rig.member("a").pod, node=NodeName("n"), deleting=True, phase="Failed")
    rig.cache.set_pod(pod, now=rig.now)
    make_group(rig)
    join(rig)
    assert rig.cache.groups[MADE].counted.lost == 1
