"""Why a group waits that has room for its minimum, or had it: the same words everywhere."""

from dataclasses import replace
from math import ceil

import pytest

from app.core.texts import ONE_BY_ONE, filter_text
from app.model.ids import GroupKey, NodeName
from app.model.pod import TASK_SPEC
from app.model.reason import Cause
from app.model.workload import GroupPhase
from app.service.limits import Limits
from app.service.telling.explanations import Story, explain_group
from app.service.telling.reasons import CREATING_S
from app.wire.times import seconds
from tests.builders import make_amounts, make_queue
from tests.service.rig import Rig, Told, working
from tests.service.statuses import TOLD_S, conditions, phases, show, statuses
from tests.service.virtual_time import advance, clock

UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."


def complain(rig: Rig, pod: str, text: str) -> None:
    """kube-scheduler writes into the pod why it found no node."""
    rig.store(replace(rig.api.pods[f"default/{pod}"], complaint=text))


def story(rig: Rig, key: GroupKey) -> Story:
    found = explain_group(rig.cache, rig.parts.reasons, key, queries=rig.planning.queries)
    assert found is not None
    return found


async def test_what_kube_scheduler_says_of_a_placed_member_is_the_reason_of_its_gang() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    with working(rig):
        await advance(1)
        complain(rig, "g-1", UNBOUND)
        await advance(TOLD_S + 1)
    refused = f"kube-scheduler refuses pod default/g-1: {UNBOUND}"
    text = f"1/2 tasks in gang unschedulable: {refused}"
    assert conditions(rig, "g")["Unschedulable"] == ("True", "NotEnoughResources", text)
    assert conditions(rig, "g")["Reserved"] == ("True", "SchedulerRefuses", refused)
    assert rig.api.events[-1] == Told("PodGroup default/g", "Warning", "Unschedulable", text)
    assert story(rig, rig.key("g")).summary == refused


async def test_it_stays_the_reason_when_the_room_was_given_back() -> None:
    rig = Rig(Limits(planned_s=10.0))
    rig.node("n1")
    rig.gang("g", size=2)
    with working(rig):
        await advance(1)
        complain(rig, "g-1", UNBOUND)
        while rig.has_reservations():
            await advance(0.1)
    assert rig.refusals[rig.key("g")].cause is Cause.COOLING_DOWN
    assert UNBOUND in story(rig, rig.key("g")).summary
    assert UNBOUND in conditions(rig, "g")["Unschedulable"][2]


async def test_a_gang_that_lets_others_go_first_says_until_when() -> None:
    rig = Rig(Limits(planned_s=10.0, hold_base_s=30.0))
    rig.node("n1")
    rig.gang("g", size=2)
    with working(rig):
        await advance(1)
        while rig.has_reservations():
            await advance(0.1)
        until = rig.cache.groups[rig.key("g")].cool_down_until
        assert clock() < until
        await advance(TOLD_S)
    text = f"its places were not used in time: others go first until {seconds(ceil(until))}"
    assert story(rig, rig.key("g")).summary == text
    assert conditions(rig, "g")["Reserved"] == ("False", "CoolingDown", text)


async def test_it_is_no_reason_any_more_when_the_gang_runs() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2, minimum=1)
    with working(rig):
        await advance(1)
        complain(rig, "g-1", UNBOUND)
        call = rig.bind("g-0")
        await advance(1)
        assert call.answer == ""
        rig.show_bindings()
        await advance(TOLD_S)
    assert story(rig, rig.key("g")).reason is None
    assert conditions(rig, "g")["Scheduled"][0] == "True"


async def test_it_is_one_while_a_role_of_a_gang_that_runs_lacks_its_own_minimum() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=2, role_minimum={"leader": 1}, phase=GroupPhase.RUNNING)
    for name in ("w-0", "w-1"):
        on = NodeName("n1")
        rig.pod(name, group="g", node=on, annotations={TASK_SPEC: "worker"}, phase="Running")
    rig.pod("leader", group="g", annotations={TASK_SPEC: "leader"})
    with working(rig):
        await advance(1)
        complain(rig, "leader", UNBOUND)
        await advance(TOLD_S + 1)
    refused = f"kube-scheduler refuses pod default/leader: {UNBOUND}"
    assert story(rig, rig.key("g")).summary == refused
    assert refused in conditions(rig, "g")["Unschedulable"][2]
    assert conditions(rig, "g")["Reserved"] == ("True", "SchedulerRefuses", refused)


async def test_our_own_answer_is_no_complaint() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    with working(rig):
        await advance(1)
        said = filter_text(Cause.NOT_ENOUGH_RESOURCES)
        complain(rig, "g-1", f"0/1 nodes are available: 1 {said}. preemption: none")
        await advance(1)
    assert story(rig, rig.key("g")).reason is None


async def test_a_gang_that_waits_for_members_nobody_has_created_says_how_many_there_are() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3, min_resources=make_amounts(cpu=3000))
    rig.pod("g-0", group="g")
    with working(rig):
        await advance(TOLD_S + 1)
    text = "Not enough valid tasks for gang-scheduling, valid: 1, min: 3"
    said = conditions(rig, "g")
    assert said["Unschedulable"] == ("True", "NotEnoughTasks", text)
    assert said["Reserved"] == (
        "True",
        "Placed",
        "room is kept for 2 members that do not exist yet",
    )
    assert rig.api.events[-1] == Told("PodGroup default/g", "Warning", "Unschedulable", text)
    assert story(rig, rig.key("g")).summary == "group default/g: pods asked 3, present 1"


async def test_a_gang_of_a_stateful_set_that_makes_one_pod_at_a_time_says_so() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3, min_resources=make_amounts(cpu=3000), owner_kind="StatefulSet")
    rig.pod("g-0", group="g")
    with working(rig):
        await advance(TOLD_S + 1)
    text = "Not enough valid tasks for gang-scheduling, valid: 1, min: 3"
    assert conditions(rig, "g")["Unschedulable"][2] == f"{text}: {ONE_BY_ONE}"
    told = story(rig, rig.key("g")).summary
    assert told == f"group default/g: pods asked 3, present 1; {ONE_BY_ONE}"
    rig.pod("g-1", group="g")
    assert ONE_BY_ONE not in story(rig, rig.key("g")).summary


async def test_a_gang_that_waits_for_a_member_of_one_role_says_so_though_it_has_enough_in_all() -> (
    None
):
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3, role_minimum={"ps": 1, "worker": 2})
    for i in range(3):
        rig.pod(f"g-{i}", group="g", annotations={"volcano.sh/task-spec": "worker"})
    with working(rig):
        await advance(TOLD_S + 1)
    text = "Not enough valid pods of each task for gang-scheduling"
    assert len(statuses(rig, "g")) == 1, "what a worker too many waits for is not the reason"
    said = conditions(rig, "g")
    assert said["Unschedulable"] == ("True", "NotEnoughPodsOfTask", text)
    assert "Scheduled" not in said
    assert said["Reserved"][0] == "True"
    assert rig.api.events[-1] == Told("PodGroup default/g", "Warning", "Unschedulable", text)
    assert story(rig, rig.key("g")).summary == "task ps: pods asked 1, present 0"


@pytest.mark.parametrize("first", ["Running", "Succeeded", "Failed"])
async def test_a_running_gang_that_lost_the_only_member_of_a_role_says_so_at_once_and_later(
    first: str,
) -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3, role_minimum={"ps": 1, "worker": 2}, phase=GroupPhase.RUNNING)
    for name, role, phase in [
        ("g-0", "worker", first),
        ("g-1", "worker", "Running"),
        ("g-2", "worker", "Running"),
        ("ps", "ps", "Running"),
    ]:
        of_role = {"volcano.sh/task-spec": role}
        rig.pod(name, group="g", node=NodeName("n1"), phase=phase, annotations=of_role)
    with working(rig):
        await advance(1)
        show(rig, "g")
        rig.delete("ps")
        await advance(TOLD_S)
        text = "Not enough valid pods of each task for gang-scheduling"
        assert conditions(rig, "g")["Unschedulable"] == ("True", "NotEnoughPodsOfTask", text)
        await advance(rig.limits.slot_s + TOLD_S)
        text += ": room was kept for 60 s and is given up until another member comes"
        assert conditions(rig, "g")["Unschedulable"] == ("True", "NotEnoughPodsOfTask", text)
    assert phases(rig, "g") == ["Running", "Unknown"]
    assert not [event for event in rig.api.events if "used up" in event.message]


async def test_members_that_are_just_being_created_are_not_missed() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3, min_resources=make_amounts(cpu=3000))
    with working(rig):
        rig.pod("g-0", group="g", created=clock())
        await advance(CREATING_S - 1)
        assert "Unschedulable" not in conditions(rig, "g")
        rig.pod("g-1", group="g", created=clock())
        await advance(CREATING_S - 1)
        assert "Unschedulable" not in conditions(rig, "g")
        assert story(rig, rig.key("g")).reason is None
        await advance(TOLD_S + 1)
        assert conditions(rig, "g")["Unschedulable"][:2] == ("True", "NotEnoughTasks")


async def test_a_group_that_is_admitted_before_its_pods_has_nothing_to_complain_of() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3, min_resources=make_amounts(cpu=3000))
    with working(rig):
        await advance(1)
    assert conditions(rig, "g") == {"Reserved": ("True", "Placed", "")}


async def test_a_group_without_pods_has_no_condition_that_would_have_to_be_taken_back() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3)
    with working(rig):
        await advance(1)
    assert set(conditions(rig, "g")) == {"Reserved"}


@pytest.mark.parametrize("roles", [{}, {"": 3}], ids=["of the sum", "of a role"])
async def test_gates_of_others_are_named(roles: dict[str, int]) -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3, role_minimum=roles)
    rig.pod("g-0", group="g")
    for name in ("g-1", "g-2"):
        rig.pod(name, group="g", gates=("example.com/q",))
    await rig.cycle()
    told = story(rig, rig.key("g")).summary
    assert told == ("group default/g: pods asked 3, ungated 1; held by gate example.com/q (pods 2)")


@pytest.mark.parametrize("minimums", [{"ps": 1, "worker": 2}, {}], ids=["roles", "no roles"])
async def test_gates_of_others_are_the_reason_and_no_room_is_kept_for_whom_they_hold(
    minimums: dict[str, int],
) -> None:
    rig = Rig()
    rig.node("n1")
    resources = make_amounts(cpu=3000)
    rig.group("g", minimum=3, role_minimum=minimums, min_resources=resources)
    with working(rig):
        await advance(1)
        rig.pod("g-ps", group="g", annotations={TASK_SPEC: "ps"}, created=clock())
        for name in ("g-0", "g-1"):
            role = {TASK_SPEC: "worker"}
            rig.pod(name, group="g", annotations=role, created=clock(), gates=("x.io/gate",))
        await advance(CREATING_S + TOLD_S + 1)
    assert not rig.cache.groups[rig.key("g")].slots
    text = "group default/g: pods asked 3, ungated 1; held by gate x.io/gate (pods 2)"
    assert story(rig, rig.key("g")).summary == text
    whole = f"3/3 tasks in gang unschedulable: {text}"
    assert conditions(rig, "g")["Unschedulable"] == ("True", "NotEnoughResources", whole)


def of_others(
    rig: Rig, *names: str, scheduler: str = "default-scheduler", group: str = "g"
) -> None:
    """Pods whose template names a PodGroup, but not our scheduler; another one has bound them."""
    for name in names:
        rig.pod(name, group=group, scheduler=scheduler, node=NodeName("n1"), phase="Running")


@pytest.mark.parametrize("late", [False, True], ids=["group first", "pods first"])
async def test_who_bound_the_pods_that_a_group_waits_for_is_named(late: bool) -> None:
    rig = Rig(Limits(slot_s=5.0))
    rig.node("n1")
    if late:
        of_others(rig, "g-0", "g-1")
    rig.group("g", minimum=3, min_resources=make_amounts(cpu=3000))
    with working(rig):
        await advance(1)
        if not late:
            of_others(rig, "g-0", "g-1")
        of_others(rig, "g-2", scheduler="kai")
        await advance(TOLD_S + 10)
    text = (
        "group default/g: pods asked 3, present 0; "
        "held by scheduler default-scheduler (pods 2), scheduler kai (pods 1)"
    )
    assert story(rig, rig.key("g")).summary == text
    assert conditions(rig, "g")["Reserved"] == ("False", "NotEnoughTasks", text)


async def test_they_are_named_as_long_as_they_are_there() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=2)
    rig.pod("g-0", group="g")
    with working(rig):
        of_others(rig, "g-1", "g-2")
        of_others(rig, "h-0", group="h")
        await advance(CREATING_S + TOLD_S)
        assert "default-scheduler (pods 2)" in story(rig, rig.key("g")).summary
        rig.delete("g-1")
        of_others(rig, "g-2", group="")
        await advance(TOLD_S + 10)
    assert story(rig, rig.key("g")).summary == "group default/g: pods asked 2, present 1"


async def test_they_are_no_reason_for_a_group_that_waits_for_something_else() -> None:
    rig = Rig()
    rig.node("n1", cpu=2)
    rig.gang("g", size=2)
    of_others(rig, "g-8", "g-9")
    await rig.cycle()
    assert "scheduler" not in story(rig, rig.key("g")).summary


async def test_a_single_pod_that_holds_what_others_lack_is_called_by_its_name() -> None:
    """It may have no PodGroup yet; by a UID nobody finds it."""

    rig = Rig()
    rig.queue(make_queue("default", capability=make_amounts(cpu=2000)))
    rig.node("n1", cpu=8000)
    rig.pod("alone", node=NodeName("n1"), phase="Running")
    rig.gang("g", size=2)
    await rig.cycle()
    assert story(rig, rig.key("g")).summary == (
        "queue default: cpu asked 2, free 1 of 2; held by default/alone (cpu 1)"
    )


async def test_nothing_is_awaited_of_a_group_that_is_gone_though_another_one_has_its_key() -> None:
    rig = Rig()
    rig.node("n1")
    gone = rig.group("g", minimum=2)
    before = rig.cache.groups[rig.key("g")]
    rig.unsee("podgroups", gone)
    rig.group("g", minimum=2, uid="uid-another")
    rig.pod("g-0", group="g", created=clock())
    await rig.cycle()
    after = rig.cache.groups[rig.key("g")]
    assert rig.parts.reasons.settle_in_s(after) == CREATING_S
    assert rig.parts.reasons.settle_in_s(before) == 0
