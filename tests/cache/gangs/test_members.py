"""What a member counts as, and which updates of its pod are news."""

from dataclasses import fields, replace
from typing import Any

import pytest

from app.cache.gangs.members import Member, MemberState, Slot, Stage, decides_like, may_change
from app.model.ids import NO_NODE, NodeName, PodUid
from app.model.pod import QUEUE_GATE, Owner, Pod
from tests.builders import make_pod, make_shape, make_task

ALL_STAGES = tuple(Stage)
ON_N: dict[str, Any] = {"node": NodeName("n")}


def member(pod: Pod, stage: Stage = Stage.WAITING, node: str = "m") -> Member:
    place = NO_NODE if stage is Stage.WAITING else NodeName(node)
    return Member(pod, pod.group, make_task(pod.name), stage=stage, node=place)


KINDS: dict[str, tuple[dict[str, Any], tuple[Stage, ...], MemberState, str]] = {
    "waits": ({}, (Stage.WAITING,), MemberState.WAITING, ""),
    "behind our gate": ({"gates": ("pumice.sh/plan",)}, (Stage.WAITING,), MemberState.WAITING, ""),
    "behind another gate": (
        {"gates": ("pumice.sh/plan", "other.io/gate")},
        (Stage.WAITING,),
        MemberState.GATED,
        "",
    ),
    "behind Volcano's gate, as it asks": (
        {"gates": ("pumice.sh/plan", QUEUE_GATE), "annotations": {QUEUE_GATE: "true"}},
        (Stage.WAITING,),
        MemberState.WAITING,
        "",
    ),
    "behind Volcano's gate without having asked": (
        {"gates": (QUEUE_GATE,), "annotations": {QUEUE_GATE: "false"}},
        (Stage.WAITING,),
        MemberState.GATED,
        "",
    ),
    "has a place": (
        {},
        (Stage.PLANNED, Stage.ASSUMED, Stage.BINDING),
        MemberState.PLACED,
        "m",
    ),
    "bound": (ON_N, ALL_STAGES, MemberState.BOUND, "n"),
    "running": (ON_N | {"phase": "Running"}, ALL_STAGES, MemberState.RUNNING, "n"),
    "ending on its node": (
        ON_N | {"phase": "Running", "deleting": True},
        ALL_STAGES,
        MemberState.RELEASING_PLACED,
        "n",
    ),
    "deleted before it had one": ({"deleting": True}, (Stage.WAITING,), MemberState.RELEASING, ""),
    "succeeded": (ON_N | {"phase": "Succeeded"}, ALL_STAGES, MemberState.SUCCEEDED, ""),
    "failed": (ON_N | {"phase": "Failed"}, ALL_STAGES, MemberState.FAILED, ""),
    "failed while being deleted": (
        ON_N | {"phase": "Failed", "deleting": True},
        ALL_STAGES,
        MemberState.FAILED,
        "",
    ),
    "of a node that is lost": (ON_N | {"phase": "Unknown"}, ALL_STAGES, MemberState.UNKNOWN, "n"),
}


@pytest.mark.parametrize(("pod", "stages", "kind", "node"), KINDS.values(), ids=KINDS.keys())
def test_what_the_api_server_says_goes_before_our_stage(
    pod: dict[str, Any], stages: tuple[Stage, ...], kind: MemberState, node: str
) -> None:
    for stage in stages:
        one = member(make_pod(**pod), stage)
        assert (one.kind, one.charged_node) == (kind, node)


@pytest.mark.parametrize(
    ("stage", "reserved", "revocable"),
    [
        (Stage.WAITING, False, False),
        (Stage.PLANNED, True, True),
        (Stage.ASSUMED, True, True),
        (Stage.BINDING, True, False),
    ],
)
def test_a_reservation_can_be_taken_back_until_its_binding_is_sent(
    stage: Stage, reserved: bool, revocable: bool
) -> None:
    one = member(make_pod(), stage)
    assert (one.reserved, one.revocable) == (reserved, revocable)
    bound = member(make_pod(**ON_N), stage)
    assert (bound.reserved, bound.revocable) == (False, False)


NEWS: dict[str, Any] = {
    "shape": make_shape(cpu=7),
    "node": NodeName("n"),
    "phase": "Running",
    "labels": {"a": "b"},
    "annotations": {"volcano.sh/task-spec": "worker"},
    "deleting": True,
    "priority": 5,
    "gates": ("pumice.sh/plan",),
    "pinned": NodeName("n"),
    "nominated": NodeName("n"),
    "owner": Owner("v1", "Job", "j", "u"),
    "after": (PodUid("u"),),
}
SETTLED = {
    "uid",
    "namespace",
    "name",
    "scheduler",
    "created",
    "priority_class",
    "preempts",
    "grace",
}
"""Cannot change in a pod's life."""
NO_NEWS: dict[str, Any] = {
    "resource_version": "2",
    "started": 5.0,
    "deadline": 60.0,
    "complaint": "0/3 nodes",
    "refused_for": "QueueQuota",
    "trouble": "container main: ErrImagePull",
    "preempted": True,
}


@pytest.mark.parametrize("field", NEWS)
def test_what_counting_and_planning_look_at_is_news(field: str) -> None:
    pod = make_pod()
    assert not decides_like(pod, replace(pod, **{field: NEWS[field]}))


@pytest.mark.parametrize("field", NO_NEWS)
def test_what_kubelets_report_is_no_news(field: str) -> None:
    pod = make_pod()
    assert decides_like(pod, replace(pod, **{field: NO_NEWS[field]}))


def test_every_field_of_a_pod_is_news_or_not() -> None:
    assert {field.name for field in fields(Pod)} == {*NEWS, *NO_NEWS, *SETTLED}


def test_equal_shapes_are_no_news_even_when_they_are_not_the_same_object() -> None:
    assert decides_like(make_pod(shape=make_shape()), make_pod(shape=make_shape()))


PLANNED = member(make_pod("p"), Stage.PLANNED)


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        pytest.param(member(make_pod("q"), Stage.PLANNED), True, id="alike"),
        pytest.param(
            member(make_pod("q", shape=make_shape(cpu=7)), Stage.PLANNED), False, id="bigger"
        ),
        pytest.param(member(make_pod("q", **ON_N), Stage.PLANNED), False, id="bound"),
        pytest.param(member(make_pod("q")), False, id="without a place"),
    ],
)
def test_who_may_change_places(other: Member, equal: bool) -> None:
    assert may_change(PLANNED, other) is equal


def test_a_slot_asks_for_what_its_shape_does() -> None:
    slot = Slot("g#1", "worker", NodeName("n"), make_shape(cpu=7), 0.0, 1)
    assert slot.request == make_shape(cpu=7).requests
