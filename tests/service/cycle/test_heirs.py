"""The room of a member that a gang has lost stays the gang's, whatever the end of the member."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.model.ids import NodeName
from app.model.job import Template
from app.model.pod import TASK_SPEC, Pod
from app.service.limits import Limits
from tests.builders import make_queue
from tests.service.replicas import lead, replica
from tests.service.rig import Rig
from tests.service.virtual_time import advance

N1 = NodeName("n1")
LIMITS = Limits()

TERMINATES = {"deleting": True}
GONE: dict[str, Any] = {}
"""Its object is deleted."""

ENDS: dict[str, list[dict[str, Any]]] = {
    "it is gone at once": [GONE],
    "it terminates": [TERMINATES, GONE],
    "it terminates and fails": [TERMINATES, {"phase": "Failed"}, GONE],
    "it terminates and succeeds": [TERMINATES, {"phase": "Succeeded"}, GONE],
    "it fails and is deleted": [{"phase": "Failed"}, GONE],
    "it fails and a finalizer keeps it": [{"phase": "Failed"}, TERMINATES, GONE],
}


def full(rig: Rig, *, size: int = 4, minimum: int = 4, queue: str = "default") -> list[str]:
    """A gang that runs on all of node ``n1``, and a pod of ``queue`` that waits for room."""
    rig.node("n1", cpu=1000 * size)
    rig.queue(make_queue("other"))
    rig.group("gang", minimum=minimum)
    names = [f"gang-{number}" for number in range(size)]
    for name in names:
        rig.pod(name, group="gang", node=N1, phase="Running")
    waits(rig, queue=queue)
    return names


def waits(rig: Rig, *, queue: str = "default") -> None:
    rig.pod("waiter", annotations={"scheduling.volcano.sh/queue-name": queue})


async def end(rig: Rig, name: str, steps: Sequence[dict[str, Any]]) -> None:
    """The pod goes step by step, and there is a cycle after each."""
    for step in steps:
        change(rig, name, step)
        await rig.cycle()


def change(rig: Rig, name: str, step: dict[str, Any]) -> None:
    if step:
        rig.store(replace(rig.api.pods[f"default/{name}"], **step))
    else:
        rig.delete(name)


def comes(rig: Rig, name: str) -> Pod:
    """Another pod of that name."""
    return rig.pod(name, group="gang", uid=f"uid-new-{name}")


def place_of(rig: Rig, pod: Pod) -> str:
    return rig.cache.members[pod.uid].node


@pytest.mark.parametrize("queue", ["default", "other"])
@pytest.mark.parametrize("steps", ENDS.values(), ids=ENDS)
async def test_a_waiting_pod_does_not_get_the_room_and_the_next_member_does(
    steps: list[dict[str, Any]], queue: str
) -> None:
    rig = Rig()
    full(rig, queue=queue)
    await rig.cycle()
    await end(rig, "gang-0", steps)
    assert rig.place("waiter") == ""
    new = comes(rig, "gang-0")
    await rig.cycle()
    assert place_of(rig, new) == "n1"
    assert rig.place("waiter") == ""


@pytest.mark.parametrize("steps", ENDS.values(), ids=ENDS)
async def test_nor_does_a_pod_that_kube_scheduler_asks_for_at_that_moment(
    steps: list[dict[str, Any]],
) -> None:
    """Before the planner has looked, and also if the pod comes only now."""

    rig = Rig()
    full(rig)
    await rig.cycle()
    for step in steps:
        change(rig, "gang-0", step)
        rig.pod("late")
        for name in ("waiter", "late"):
            rig.filter(name)
            assert rig.place(name) == ""


async def test_a_member_that_waits_takes_the_room_at_once() -> None:
    rig = Rig()
    full(rig)
    extra = rig.pod("gang-4", group="gang")
    await rig.cycle()
    rig.delete("gang-0")
    assert place_of(rig, extra) == "n1"
    assert not rig.cache.groups[rig.key("gang")].slots


async def test_a_member_beyond_the_minimum_leaves_nothing_to_its_gang() -> None:
    rig = Rig()
    full(rig, size=5, minimum=4)
    await rig.cycle()
    await end(rig, "gang-0", ENDS["it terminates and fails"])
    assert rig.place("waiter") == "n1"


async def test_a_gang_that_ends_as_a_whole_leaves_its_room_to_others() -> None:
    rig = Rig()
    names = full(rig)
    for name in names:
        change(rig, name, TERMINATES)
    rig.delete(*names)
    assert not rig.cache.groups[rig.key("gang")].slots


async def test_a_member_that_has_finished_leaves_nothing_to_its_gang() -> None:
    rig = Rig()
    full(rig)
    await rig.cycle()
    await end(rig, "gang-0", [{"phase": "Succeeded"}])
    assert rig.place("waiter") == "n1"


async def test_what_is_evicted_for_another_pod_leaves_its_room_to_that_pod() -> None:
    rig = Rig()
    full(rig)
    for step in [{"preempted": True}, *ENDS["it terminates and fails"]]:
        change(rig, "gang-0", step)
    assert not rig.cache.groups[rig.key("gang")].slots


async def test_nor_is_it_kept_for_the_minimum_of_a_role_that_failed_members_are_of() -> None:
    rig = Rig()
    rig.node("n1", cpu=3000)
    rig.group("gang", minimum=3, role_minimum={"a": 1, "b": 2})
    for name, role in (("a-0", "a"), ("b-0", "b"), ("b-1", "b")):
        rig.pod(name, group="gang", node=N1, phase="Running", annotations={TASK_SPEC: role})
    waits(rig)
    await rig.cycle()
    for name in ("b-0", "b-1"):
        change(rig, name, {"phase": "Failed"})
    await rig.cycle()
    assert rig.place("waiter") == ""
    await advance(LIMITS.failed_s)
    await rig.cycle()
    await rig.cycle()
    assert rig.place("waiter") == "n1"


async def test_room_of_a_failed_member_that_nobody_replaces_is_kept_for_a_moment_only() -> None:
    rig = Rig()
    full(rig)
    await rig.cycle()
    await end(rig, "gang-0", [{"phase": "Failed"}])
    assert rig.place("waiter") == ""
    await advance(LIMITS.failed_s)
    await rig.cycle()
    await rig.cycle()
    assert rig.place("waiter") == "n1"


async def test_room_for_a_member_that_nobody_creates_is_given_up_and_the_reason_says_so() -> None:
    rig = Rig()
    full(rig)
    await rig.cycle()
    await end(rig, "gang-0", ENDS["it terminates and fails"])
    await advance(LIMITS.slot_s - 1)
    await rig.cycle()
    assert rig.place("waiter") == ""
    await advance(2)
    await rig.cycle()
    assert rig.place("waiter") == "n1"
    group = rig.cache.groups[rig.key("gang")]
    reason = rig.parts.reasons.of(group)
    assert reason is not None
    assert reason.detail == (
        "Not enough valid tasks for gang-scheduling, valid: 3, min: 4: "
        "room was kept for 60 s and is given up until another member comes"
    )


async def test_a_gang_whose_room_was_given_up_goes_first_when_a_member_comes() -> None:
    rig = Rig()
    full(rig)
    await rig.cycle()
    await end(rig, "gang-0", [GONE])
    await advance(LIMITS.slot_s + 1)
    await rig.cycle()
    assert rig.place("waiter") == "n1"
    rig.pod("second", created=-100.0)
    new = comes(rig, "gang-0")
    rig.delete("waiter")
    await rig.cycle()
    assert (place_of(rig, new), rig.place("second")) == ("n1", "")


async def test_room_is_kept_as_long_as_a_job_wants_the_member() -> None:
    rig = Rig()
    full(rig)
    rig.group("gang", minimum=4, owner_kind="Job", owner_uid="uid-job")
    shape = rig.api.pods["default/gang-0"].shape
    rig.cache.registry.set_template("uid-job", {"": Template(shape, {})})
    await rig.cycle()
    await end(rig, "gang-0", ENDS["it terminates and fails"])
    await advance(10 * LIMITS.slot_s)
    await rig.cycle()
    assert rig.place("waiter") == ""


@pytest.mark.parametrize("first", ["the node is cordoned", "the pod is deleted"])
async def test_of_a_member_on_a_cordoned_node_another_room_is_kept_while_it_terminates(
    first: str,
) -> None:
    rig = Rig()
    full(rig)
    rig.delete("waiter")
    rig.node("n2", cpu=1000)
    if first == "the pod is deleted":
        change(rig, "gang-0", TERMINATES)
    rig.node("n1", cpu=4000, unschedulable=True)
    if first == "the node is cordoned":
        change(rig, "gang-0", TERMINATES)
    await rig.cycle()
    waits(rig, queue="other")
    await rig.cycle()
    assert rig.place("waiter") == ""
    [slot] = rig.cache.groups[rig.key("gang")].slots.values()
    assert slot.node == "n2"


async def test_the_replica_that_stands_by_keeps_nothing() -> None:
    rig = replica()
    lead(rig, "host-b")
    full(rig)
    rig.delete("gang-0")
    assert not rig.cache.groups[rig.key("gang")].slots
    assert not rig.cache.pods.vacated
