"""PodGroup and queue statuses and the events about groups: their texts."""

from dataclasses import replace
from typing import Any

import pytest

from app.kit.workqueue import Again
from app.model.amounts import CPU, Amounts
from app.model.ids import NodeName, QueueName
from app.model.workload import Condition, GroupPhase, QueueState
from app.service.effects import statuses as status_module
from app.service.effects.statuses import FIRST_EVENT_WITHOUT_PODS_S
from app.service.ports import WriteError
from app.telemetry.metrics import REGISTRY
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import CONFLICT, FAILING, GONE, Rig, Told, working
from tests.service.statuses import TOLD_S, conditions, full, phases, show, statuses, writer_of
from tests.service.virtual_time import advance, settle


def running(rig: Rig, *names: str) -> None:
    """A gang ``g`` that needs all of these, on one node."""
    rig.node("n1")
    rig.group("g", minimum=len(names), phase=GroupPhase.RUNNING)
    for name in names:
        rig.pod(name, group="g", node=NodeName("n1"), phase="Running")


async def test_a_gang_goes_from_pending_over_inqueue_to_running_and_completed() -> None:
    rig, waits = Rig(), REGISTRY.get_sample_value("pumice_group_wait_seconds_count") or 0
    rig.node("n1")
    rig.group("g", minimum=2, phase=GroupPhase.NEW)
    with working(rig):
        await advance(1)
        assert statuses(rig, "g")[-1]["phase"] == "Inqueue"
        show(rig, "g")
        names = ["g-0", "g-1"]
        for name in names:
            rig.pod(name, group="g")
        await advance(1)
        calls = [rig.bind(name) for name in names]
        await settle()
        assert [call.answer for call in calls] == ["", ""]
        rig.show_bindings()
        await advance(1)
        assert statuses(rig, "g")[-1]["phase"] == "Running"
        assert REGISTRY.get_sample_value("pumice_group_wait_seconds_count") == waits + 1
        assert Told("PodGroup default/g", "Normal", "Scheduled", "pod group is ready") in (
            rig.api.events
        )
        show(rig, "g")
        for name in names:
            rig.store(replace(rig.api.pods[f"default/{name}"], phase="Running"))
        await advance(status_module.SETTLING_S + 1)
        assert statuses(rig, "g")[-1]["running"] == 2
        show(rig, "g")
        rig.store(replace(rig.api.pods["default/g-0"], phase="Succeeded"))
        rig.store(replace(rig.api.pods["default/g-1"], phase="Failed"))
        await advance(1)
        last = statuses(rig, "g")[-1]
        assert last["phase"] == "Completed"
        assert (last["running"], last["succeeded"], last["failed"]) == (0, 1, 1)


async def test_a_placed_gang_has_the_conditions_of_one() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    with working(rig):
        await advance(1)
    assert conditions(rig, "g") == {
        "Scheduled": ("True", "tasks in gang are ready to be scheduled", ""),
        "Reserved": ("True", "Placed", ""),
    }
    for condition in statuses(rig, "g")[-1]["conditions"]:
        assert condition["lastTransitionTime"] == "2023-11-14T22:13:20Z"
        assert condition["transitionID"]


async def test_a_gang_without_room_says_so_with_numbers_everywhere() -> None:
    rig = Rig()
    full(rig)
    rig.gang("g", size=3)
    with working(rig):
        await advance(TOLD_S)
    said = conditions(rig, "g")
    kind, reason, text = said["Unschedulable"]
    assert (kind, reason) == ("True", "NotEnoughResources")
    assert text.startswith("3/3 tasks in gang unschedulable: ")
    assert "cpu" in text
    assert said["Reserved"][0] == "False"
    assert rig.api.events[-1] == Told("PodGroup default/g", "Warning", "Unschedulable", text)
    refusal = rig.refusals[rig.key("g")]
    assert said["Reserved"][1] == refusal.cause.value
    assert text.endswith(said["Reserved"][2])


async def test_a_gang_that_lacks_members_says_how_many() -> None:
    rig = Rig()
    rig.node("n1", "n2", "n3")
    rig.pod("ballast", node=NodeName("n1"), phase="Running")
    rig.group("g", minimum=3, min_resources=make_amounts(cpu=90_000))
    rig.pod("g-0", group="g")
    with working(rig):
        await advance(1)
    kind, reason, text = conditions(rig, "g")["Unschedulable"]
    assert kind == "True"
    assert reason in ("NotEnoughTasks", "NotEnoughResources")
    assert text


async def test_conditions_of_others_stay_and_unchanged_ones_keep_their_stamps() -> None:
    rig = Rig()
    full(rig)
    theirs = Condition("Theirs", "True", "Because", "x", "id-1", "2020-01-01T00:00:00Z")
    rig.group("g", minimum=3, conditions=(theirs,))
    for i in range(3):
        rig.pod(f"g-{i}", group="g")
    with working(rig):
        await advance(1)
        first = {c["type"]: c for c in statuses(rig, "g")[-1]["conditions"]}
        assert first["Theirs"]["transitionID"] == "id-1"
        show(rig, "g")
        rig.store(replace(rig.api.pods["default/used"], shape=make_shape(cpu=6000)))
        await advance(30)
        second = {c["type"]: c for c in statuses(rig, "g")[-1]["conditions"]}
        assert second["Theirs"] == first["Theirs"]
        assert second["Unschedulable"]["message"] != first["Unschedulable"]["message"]
        assert second["Unschedulable"]["transitionID"] != first["Unschedulable"]["transitionID"]


async def test_a_gang_that_got_its_room_takes_the_complaint_back() -> None:
    rig = Rig()
    full(rig)
    rig.gang("g", size=3)
    with working(rig):
        await advance(1)
        show(rig, "g")
        assert conditions(rig, "g")["Unschedulable"][0] == "True"
        rig.node("n2")
        await advance(status_module.SETTLING_S + 1)
    said = conditions(rig, "g")
    assert said["Unschedulable"] == ("False", "Scheduled", "")
    assert said["Reserved"] == ("True", "Placed", "")


def short_of_one() -> Rig:
    """A gang of three that runs on a full node with two members, and a third that waits."""
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.group("g", minimum=3, phase=GroupPhase.RUNNING)
    for i in range(2):
        rig.pod(f"g-{i}", group="g", node=NodeName("n1"), phase="Running")
    rig.pod("g-2", group="g")
    return rig


async def test_a_running_gang_that_cannot_replace_a_member_is_unknown() -> None:
    rig = short_of_one()
    with working(rig):
        await advance(1)
    assert statuses(rig, "g")[-1]["phase"] == "Unknown"
    assert conditions(rig, "g")["Unschedulable"][0] == "True"


async def test_a_running_gang_that_lost_a_member_is_unknown_while_room_is_kept_for_the_next() -> (
    None
):
    rig = Rig()
    running(rig, "g-0", "g-1")
    with working(rig):
        await advance(1)
        show(rig, "g")
        rig.delete("g-1")
        await advance(1)
        show(rig, "g")
        assert conditions(rig, "g")["Reserved"][0] == "True"
        await advance(rig.limits.slot_s + TOLD_S)
    assert phases(rig, "g") == ["Running", "Unknown"]


async def test_a_running_gang_stays_what_it_is_when_the_member_it_lost_is_made_anew_at_once() -> (
    None
):
    rig = Rig()
    running(rig, "g-0", "g-1")
    with working(rig):
        await advance(1)
        show(rig, "g")
        rig.delete("g-1")
        await advance(status_module.REPLACED_S / 2)
        rig.pod("g-2", group="g")
        await advance(1)
        assert rig.place("g-2") == "n1"
        call = rig.bind("g-2")
        await settle()
        assert call.answer == ""
        rig.show_bindings()
        await advance(status_module.SETTLING_S + 1)
    assert phases(rig, "g") == ["Running"]


async def test_a_gang_that_is_unknown_stays_so_until_the_next_member_is_on_a_node() -> None:
    rig = Rig()
    running(rig, "g-0", "g-1")
    with working(rig):
        await advance(1)
        show(rig, "g")
        rig.delete("g-1")
        await advance(1)
        show(rig, "g")
        rig.pod("g-2", group="g")
        await advance(status_module.SETTLING_S + 1)
        show(rig, "g")
        rig.bind("g-2")
        await settle()
        rig.show_bindings()
        await advance(1)
    assert phases(rig, "g") == ["Running", "Unknown", "Running"]


@pytest.mark.parametrize("minimum", [(), make_amounts(cpu=3000)], ids=["plain", "minResources"])
async def test_a_gang_with_a_finished_member_that_loses_another_lacks_it_and_no_share_of_its_queue(
    minimum: Amounts,
) -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3, phase=GroupPhase.RUNNING, min_resources=minimum or None)
    for i, phase in enumerate(("Succeeded", "Running", "Running")):
        rig.pod(f"g-{i}", group="g", node=NodeName("n1"), phase=phase)
    with working(rig):
        await advance(1)
        show(rig, "g")
        rig.delete("g-2")
        await advance(1)
        text = "Not enough valid tasks for gang-scheduling, valid: 2, min: 3"
        assert conditions(rig, "g")["Unschedulable"] == ("True", "NotEnoughTasks", text)
        await advance(rig.limits.slot_s + 2 * status_module.TEXT_EVERY_S)
        text += ": room was kept for 60 s and is given up until another member comes"
        assert conditions(rig, "g")["Unschedulable"] == ("True", "NotEnoughTasks", text)
    assert not [event for event in rig.api.events if "used up" in event.message]


async def test_a_gang_that_waits_for_something_else_says_so_though_only_others_have_changed() -> (
    None
):
    rig = short_of_one()
    with working(rig):
        await advance(1)
        show(rig, "g")
        assert conditions(rig, "g")["Reserved"][:2] == ("False", "QueueRoom")
        await advance(2 * status_module.TEXT_EVERY_S)
        rig.node("n2", "n3", cpu=500)
        await advance(status_module.TEXT_EVERY_S + status_module.SETTLING_S)
    assert conditions(rig, "g")["Reserved"][:2] == ("False", "NotEnoughResources")


async def test_a_gang_with_a_failed_member_lacks_it_and_no_share_of_its_queue() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3, phase=GroupPhase.RUNNING)
    for i, phase in enumerate(("Running", "Running", "Failed")):
        rig.pod(f"g-{i}", group="g", node=NodeName("n1"), phase=phase)
    with working(rig):
        await advance(1)
    assert conditions(rig, "g")["Reserved"][:2] == ("False", "NotEnoughTasks")


@pytest.mark.parametrize(
    ("queue", "cause", "text"),
    [
        ("missing", "QueueMissing", "queue missing not found"),
        ("closed", "QueueNotOpen", "queue closed is not open"),
    ],
)
async def test_a_group_in_a_queue_that_takes_none_stays_pending(
    queue: str, cause: str, text: str
) -> None:
    rig = Rig()
    rig.node("n1")
    rig.queue(make_queue("closed", state=QueueState.CLOSED))
    rig.group("g", minimum=1, queue=QueueName(queue), phase=GroupPhase.NEW)
    rig.pod("g-0", group="g")
    with working(rig):
        await advance(TOLD_S)
    assert statuses(rig, "g")[-1]["phase"] == "Pending"
    assert conditions(rig, "g")["Reserved"] == ("False", cause, text)
    assert rig.api.events[-1].event_type == "Warning"
    assert text in rig.api.events[-1].message


async def test_a_group_whose_pods_are_still_to_be_made_is_no_event_at_once() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("early", minimum=1)
    rig.group("never", minimum=1)
    with working(rig):
        await advance(FIRST_EVENT_WITHOUT_PODS_S - 1)
        rig.pod("late", group="early")
        assert rig.api.events == []
        await advance(2)
    text = "Not enough valid tasks for gang-scheduling, valid: 0, min: 1"
    assert rig.api.events == [Told("PodGroup default/never", "Warning", "Unschedulable", text)]


async def test_the_vote_of_the_enqueue_action_is_an_event_of_its_own() -> None:
    rig = Rig()
    rig.node("n1")
    rig.queue(make_queue("small", capability=make_amounts(cpu=1000)))
    rig.group(
        "g",
        minimum=1,
        queue=QueueName("small"),
        phase=GroupPhase.PENDING,
        min_resources=make_amounts(cpu=4000),
    )
    with working(rig):
        await advance(TOLD_S)
    assert rig.api.events[0] == Told(
        "PodGroup default/g",
        "Normal",
        "Unschedulable",
        "queue resource quota insufficient: insufficient cpu",
    )
    assert statuses(rig, "g")[-1]["phase"] == "Pending"


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [FAILING, CONFLICT])
async def test_a_status_that_could_not_be_written_comes_back(error: WriteError) -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    rig.api.fails["group-status"] = [error] * 3
    with working(rig):
        await advance(3)
    assert len(statuses(rig, "g")) == 1


async def test_a_group_that_is_gone_needs_no_status() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    rig.api.fails["group-status"] = [GONE]
    with working(rig):
        await advance(30)
    assert statuses(rig, "g") == []
    assert [verb for verb, _ in rig.api.tries if verb == "group-status"] == ["group-status"]


async def test_a_group_that_is_being_deleted_is_left_alone() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=1, deleting=True)
    rig.pod("g-0", group="g")
    with working(rig):
        await advance(5)
    assert statuses(rig, "g") == []
    assert rig.api.events == []


async def test_a_single_pod_has_no_group_to_write() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p")
    with working(rig):
        await advance(5)
    assert rig.api.of("group-status") == []


# --- queues ---------------------------------------------------------------------------------------


def allocated(rig: Rig, name: str) -> list[Any]:
    """What was written as the queue's ``status.allocated``."""
    return [
        write.body["status"]["allocated"]
        for write in rig.api.of("queue-status")
        if write.target == name
    ]


async def test_what_a_queue_holds_is_written_up_to_the_root() -> None:
    rig = Rig()
    rig.node("n1")
    rig.queue(make_queue("team", parent=QueueName("root")))
    rig.queue(make_queue("leaf", parent=QueueName("team")))
    rig.group("g", minimum=1, queue=QueueName("leaf"), phase=GroupPhase.RUNNING)
    rig.pod("g-0", group="g", node=NodeName("n1"), phase="Running")
    rig.pod("alone", node=NodeName("n1"), phase="Running")
    with working(rig):
        await advance(2)
    assert allocated(rig, "leaf")[-1]["cpu"] == "1"
    assert allocated(rig, "team")[-1]["cpu"] == "1"
    assert allocated(rig, "default")[-1]["cpu"] == "1"
    assert allocated(rig, "root")[-1]["cpu"] == "2"


async def test_a_queue_that_holds_nothing_says_so_once() -> None:
    rig = Rig()
    rig.queue(make_queue("idle"))
    with working(rig):
        await advance(2)
        assert allocated(rig, "idle") == [{"cpu": "0", "memory": "0"}]
        rig.queue(make_queue("idle", allocated=(("cpu", 0), ("memory", 0))))
        await advance(20)
    assert len(allocated(rig, "idle")) == 1


async def test_a_queue_is_written_only_when_it_holds_something_else() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", node=NodeName("n1"), phase="Running")
    with working(rig):
        await advance(2)
        held = make_amounts(cpu=1000, memory=1 << 30, pods=1)
        for name in ("default", "root"):
            rig.queue(make_queue(name, allocated=held))
        before = len(rig.api.of("queue-status"))
        await advance(20)
        assert len(rig.api.of("queue-status")) == before
        rig.delete("p")
        await advance(2)
        assert allocated(rig, "default")[-1] == {"cpu": "0", "memory": "0", "pods": None}


async def test_a_queue_that_is_gone_or_fails_stops_nothing() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", node=NodeName("n1"), phase="Running")
    rig.api.fails["queue-status"] = [GONE, FAILING]
    with working(rig):
        await advance(5)
    tried = [target for verb, target in rig.api.tries if verb == "queue-status"]
    assert sorted(tried) in (["default", "default", "root"], ["default", "root", "root"])
    assert len(rig.api.of("queue-status")) == 1


async def test_a_writer_that_is_asked_about_nothing_does_nothing() -> None:
    rig = Rig()
    writer = writer_of(rig)
    await writer.write_group(rig.key("none"))
    await writer.write_queue(QueueName("none"))
    assert rig.api.tries == []
    full(rig)
    rig.gang("g", size=3)
    await rig.cycle()
    with pytest.raises(Again):
        await writer.write_group(rig.key("g"))
    assert CPU in conditions(rig, "g")["Unschedulable"][2]
