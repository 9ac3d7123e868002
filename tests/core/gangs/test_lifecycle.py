"""Phases, counts and conditions of PodGroups."""

from dataclasses import replace
from typing import Any

import pytest

from app.core import texts
from app.core.gangs import lifecycle
from app.core.gangs.lifecycle import GroupStatus
from app.model.gang import Counts, Gang
from app.model.ids import group_key
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.reason import Cause, Refusal, Shortfall
from app.model.workload import Condition, GroupPhase, PodGroup
from tests.builders import make_gang

NEW, PENDING, INQUEUE = GroupPhase.NEW, GroupPhase.PENDING, GroupPhase.INQUEUE
RUNNING, UNKNOWN, COMPLETED = GroupPhase.RUNNING, GroupPhase.UNKNOWN, GroupPhase.COMPLETED

SHORT = Refusal(
    Cause.NOT_ENOUGH_RESOURCES,
    where="default/g",
    shortfalls=(Shortfall("cpu", asked=4000, free=1000, limit=8000),),
)
TOO_FEW = Refusal(
    Cause.NOT_ENOUGH_TASKS,
    where="default/g",
    shortfalls=(Shortfall("pods", asked=3, free=1),),
    detail="Not enough valid tasks for gang-scheduling, valid: 1, min: 3",
)


def group(phase: GroupPhase = INQUEUE, minimum: int = 3, **counts: int) -> Gang:
    return make_gang("g", min_member=minimum, phase=phase, counts=Counts(**counts))


def stored(gang: Gang, *conditions: Condition, **fields: Any) -> PodGroup:
    return PodGroup(
        namespace="default",
        name="g",
        uid="u",
        resource_version="1",
        created=0.0,
        phase=gang.phase,
        conditions=conditions,
        **fields,
    )


def status(gang: Gang, *conditions: Condition, refusal: Refusal | None = None) -> GroupStatus:
    return lifecycle.desired_status(
        gang, stored(gang, *conditions), refusal, describe=texts.describe
    )


def said(wanted: GroupStatus) -> dict[str, tuple[str, str, str]]:
    return {c.type: (c.status, c.reason, c.message) for c in wanted.conditions}


@pytest.mark.parametrize(
    ("before", "counts", "after"),
    [
        (NEW, {}, PENDING),
        (PENDING, {"pending": 3}, PENDING),
        (INQUEUE, {}, INQUEUE),
        (INQUEUE, {"pending": 3}, INQUEUE),
        (INQUEUE, {"placed": 3}, INQUEUE),
        (INQUEUE, {"slots": 3}, INQUEUE),
        (INQUEUE, {"bound": 2, "pending": 1}, INQUEUE),
        (INQUEUE, {"bound": 3}, RUNNING),
        (INQUEUE, {"bound": 2, "running": 1}, RUNNING),
        (PENDING, {"running": 3}, RUNNING),
        (RUNNING, {"running": 3, "pending": 2}, RUNNING),
        (RUNNING, {"running": 2, "succeeded": 1}, RUNNING),
        (RUNNING, {"running": 2, "failed": 1}, RUNNING),
        (RUNNING, {"running": 1, "releasing": 2, "releasing_placed": 2}, RUNNING),
        (RUNNING, {"releasing": 3, "releasing_placed": 3}, RUNNING),
        (RUNNING, {"running": 2, "pending": 1}, UNKNOWN),
        (RUNNING, {"running": 2}, UNKNOWN),
        (RUNNING, {"running": 2, "slots": 1}, UNKNOWN),
        (RUNNING, {"running": 1, "succeeded": 1, "slots": 1}, UNKNOWN),
        (INQUEUE, {"running": 2, "slots": 1}, UNKNOWN),
        (INQUEUE, {"bound": 2, "slots": 1}, INQUEUE),
        (UNKNOWN, {"running": 2, "slots": 1}, UNKNOWN),
        (RUNNING, {"running": 2, "placed": 1}, RUNNING),
        (UNKNOWN, {"running": 2, "placed": 1}, UNKNOWN),
        (PENDING, {"running": 2, "placed": 1}, PENDING),
        (UNKNOWN, {"running": 2, "pending": 1}, UNKNOWN),
        (UNKNOWN, {"running": 3}, RUNNING),
        (RUNNING, {"pending": 3}, PENDING),
        (UNKNOWN, {"pending": 3}, PENDING),
        (RUNNING, {"bound": 2, "pending": 1}, PENDING),
        (RUNNING, {}, PENDING),
        (RUNNING, {"succeeded": 3}, COMPLETED),
        (RUNNING, {"succeeded": 2, "failed": 1}, COMPLETED),
        (RUNNING, {"failed": 3}, COMPLETED),
        (RUNNING, {"succeeded": 3, "pending": 1}, RUNNING),
        (RUNNING, {"succeeded": 3, "placed": 1}, RUNNING),
        (RUNNING, {"succeeded": 3, "releasing": 1}, COMPLETED),
        (COMPLETED, {"succeeded": 3, "pending": 1}, RUNNING),
        (COMPLETED, {"succeeded": 3}, COMPLETED),
        (COMPLETED, {"succeeded": 2}, COMPLETED),
        (COMPLETED, {}, COMPLETED),
        (COMPLETED, {"failed": 1, "releasing": 2, "releasing_placed": 1}, COMPLETED),
        (COMPLETED, {"succeeded": 2, "pending": 1}, PENDING),
        (COMPLETED, {"pending": 1}, PENDING),
    ],
    ids=lambda value: (
        value.name.lower()
        if isinstance(value, GroupPhase)
        else " ".join(f"{n} {state}" for state, n in value.items()) or "no members"
    ),
)
def test_the_phase_follows_the_members(
    before: GroupPhase, counts: dict[str, int], after: GroupPhase
) -> None:
    assert lifecycle.next_phase(group(before, **counts)) is after


def test_a_group_of_which_a_member_waits_is_not_completed() -> None:
    """volcano#5871: the next pod of a serial Job waited, and its group was said to be done."""
    assert lifecycle.next_phase(group(RUNNING, minimum=1, succeeded=1, pending=1)) is RUNNING
    assert lifecycle.next_phase(group(RUNNING, minimum=1, succeeded=2)) is COMPLETED


def test_a_completed_group_whose_pods_are_gone_is_put_to_the_vote_when_members_come() -> None:
    assert group(COMPLETED, succeeded=3, pending=1).inqueue
    assert not group(COMPLETED, pending=1).inqueue
    assert not group(COMPLETED, pending=1).claims


def test_a_group_without_a_minimum_and_members_stays_what_it_is() -> None:
    assert lifecycle.next_phase(group(PENDING, minimum=0)) is PENDING
    assert lifecycle.next_phase(group(INQUEUE, minimum=0)) is INQUEUE


def test_a_group_without_a_minimum_runs_with_its_first_member() -> None:
    assert lifecycle.next_phase(group(INQUEUE, minimum=0, running=1)) is RUNNING


def test_counts_are_those_of_the_members() -> None:
    wanted = status(group(RUNNING, running=3, succeeded=2, failed=1, pending=4))
    assert (wanted.running, wanted.succeeded, wanted.failed) == (3, 2, 1)


# Conditions


def test_a_gang_without_room_is_unschedulable_with_its_numbers() -> None:
    wanted = status(group(pending=3), refusal=SHORT)
    assert said(wanted) == {
        "Unschedulable": (
            "True",
            "NotEnoughResources",
            "3/3 tasks in gang unschedulable: group default/g: cpu asked 4, free 1 of 8",
        ),
        "Reserved": ("False", "NotEnoughResources", "group default/g: cpu asked 4, free 1 of 8"),
    }


@pytest.mark.parametrize("phase", [PENDING, INQUEUE])
def test_a_group_without_a_minimum_says_why_none_of_its_members_has_a_place(
    phase: GroupPhase,
) -> None:
    """volcano#5075: one without `minMember` asked for more than there is, and did not say so."""
    found = said(status(group(phase, minimum=0, pending=2), refusal=SHORT))
    assert found["Unschedulable"][:2] == ("True", "NotEnoughResources")
    assert found["Unschedulable"][2].startswith("1/2 tasks in gang unschedulable: ")
    assert found["Reserved"][:2] == ("False", "NotEnoughResources")
    one_runs = said(status(group(RUNNING, minimum=0, running=1, pending=1), refusal=SHORT))
    assert (one_runs["Scheduled"][0], one_runs["Reserved"][0]) == ("True", "True")


def test_only_the_members_that_are_lacking_are_called_unschedulable() -> None:
    wanted = status(group(UNKNOWN, running=1, pending=4), refusal=SHORT)
    assert said(wanted)["Unschedulable"][2].startswith("2/5 tasks in gang unschedulable: ")


def test_a_gang_with_too_few_members_says_so_in_volcanos_words() -> None:
    wanted = status(group(pending=1), refusal=TOO_FEW)
    assert said(wanted)["Unschedulable"] == ("True", "NotEnoughTasks", TOO_FEW.detail)


def test_a_role_with_too_few_members_has_its_own_reason() -> None:
    refusal = replace(TOO_FEW, cause=Cause.NOT_ENOUGH_PODS_OF_TASK, detail="Not enough")
    wanted = status(group(pending=1), refusal=refusal)
    assert said(wanted)["Unschedulable"] == ("True", "NotEnoughPodsOfTask", "Not enough")


def test_other_causes_are_lack_of_resources_for_volcano_and_themselves_for_us() -> None:
    refusal = Refusal(Cause.QUEUE_CLOSED, where="q")
    found = said(status(group(PENDING, pending=3), refusal=refusal))
    assert found["Unschedulable"][1] == "NotEnoughResources"
    assert found["Unschedulable"][2] == "3/3 tasks in gang unschedulable: queue q is not open"
    assert found["Reserved"] == ("False", "QueueNotOpen", "queue q is not open")


def test_a_group_without_pods_is_not_unschedulable_but_not_reserved() -> None:
    assert said(status(group(PENDING), refusal=SHORT)).keys() == {"Reserved"}


def test_a_group_that_nobody_has_looked_at_has_no_conditions() -> None:
    assert status(group(PENDING)).conditions == ()
    assert status(group(PENDING, pending=3)).conditions == ()


@pytest.mark.parametrize("counts", [{"placed": 3}, {"bound": 2, "running": 1}, {"running": 4}])
def test_a_gang_with_its_minimum_is_scheduled_and_reserved(counts: dict[str, int]) -> None:
    assert said(status(group(INQUEUE, 3, **counts))) == {
        "Scheduled": ("True", "tasks in gang are ready to be scheduled", ""),
        "Reserved": ("True", "Placed", ""),
    }


def test_a_gang_of_slots_is_reserved_and_not_scheduled_yet() -> None:
    assert said(status(group(slots=3))) == {"Reserved": ("True", "Placed", "")}


def test_a_gang_that_lacks_members_is_not_scheduled_whatever_room_is_kept_for_them() -> None:
    gang = group(placed=2, slots=1)
    assert said(status(gang)).keys() == {"Reserved"}
    told = said(status(gang, refusal=TOO_FEW))
    assert told["Unschedulable"] == ("True", "NotEnoughTasks", TOO_FEW.detail)
    assert "Scheduled" not in told


ROLES = {"ps": 1, "worker": 2}
NO_PS = replace(TOO_FEW, cause=Cause.NOT_ENOUGH_PODS_OF_TASK, where="ps", detail="Not enough of ps")


def of_roles(phase: GroupPhase = INQUEUE, *, counts: Counts, **fields: Any) -> Gang:
    """Three workers with places, of a gang that needs a ps too."""
    workers: dict[str, Any] = {"role_ready": {"worker": 3}, "role_valid": {"worker": 3}}
    return make_gang(
        min_member=3, role_minimum=ROLES, phase=phase, counts=counts, **(workers | fields)
    )


def test_a_gang_without_a_member_of_one_role_is_not_scheduled() -> None:
    found = said(status(of_roles(counts=Counts(placed=3)), refusal=NO_PS))
    assert found["Unschedulable"] == ("True", "NotEnoughPodsOfTask", "Not enough of ps")
    assert "Scheduled" not in found


def test_room_that_is_kept_for_a_role_is_no_member_of_it() -> None:
    gang = of_roles(
        counts=Counts(placed=2, pending=1, slots=1),
        role_ready={"worker": 2, "ps": 1},
        role_slots={"ps": 1},
    )
    assert said(status(gang)).keys() == {"Reserved"}


def test_no_room_is_reserved_for_a_gang_that_has_none_for_one_of_its_roles() -> None:
    gang = of_roles(RUNNING, counts=Counts(running=3, pending=1), role_scheduled={"worker": 3})
    found = said(status(gang, refusal=SHORT))
    assert found["Reserved"] == (
        "False",
        "NotEnoughResources",
        "group default/g: cpu asked 4, free 1 of 8",
    )
    assert found["Unschedulable"][2].startswith("1/4 tasks in gang unschedulable: ")


@pytest.mark.parametrize("before", [RUNNING, UNKNOWN, INQUEUE])
def test_a_gang_that_lost_the_only_member_of_a_role_is_unknown(before: GroupPhase) -> None:
    gang = of_roles(before, counts=Counts(running=3), role_scheduled={"worker": 3})
    assert lifecycle.next_phase(gang) is UNKNOWN


def test_a_terminating_member_of_a_role_keeps_the_gang() -> None:
    there = {"worker": 3, "ps": 1}
    counts = Counts(running=3, releasing=1, releasing_placed=1)
    gang = of_roles(RUNNING, counts=counts, role_scheduled=there)
    assert lifecycle.next_phase(gang) is RUNNING


@pytest.mark.parametrize(
    ("there", "after"),
    [((2, 1), UNKNOWN), ((2, 2), RUNNING)],
    ids=["a member is gone", "one failed or ends"],
)
def test_a_gang_that_lost_a_member_of_a_sub_group_is_unknown(
    there: tuple[int, int], after: GroupPhase
) -> None:
    one, two = SubGroup("pair", "1"), SubGroup("pair", "2")
    gang = make_gang(
        min_member=2,
        phase=RUNNING,
        counts=Counts(running=3),
        sub_groups=(SubGroupPolicy("pair", keys=("pair",), size=2, least=2),),
        sub_group_ready={one: 2, two: 1},
        sub_group_scheduled=dict(zip((one, two), there, strict=True)),
    )
    assert lifecycle.next_phase(gang) is after


@pytest.mark.parametrize(
    ("counts", "refusal"),
    [({"running": 2, "slots": 1}, TOO_FEW), ({"running": 2, "slots": 1}, None), ({}, None)],
    ids=["told why", "not yet told", "no members left"],
)
def test_what_was_said_of_a_complete_gang_is_taken_back(
    counts: dict[str, int], refusal: Refusal | None
) -> None:
    old = Condition("Scheduled", "True", "tasks in gang are ready to be scheduled", "", "t1")
    found = said(status(group(RUNNING, **counts), old, refusal=refusal))
    assert found["Scheduled"] == ("False", "Unschedulable", "")


def test_members_that_wait_beyond_the_minimum_change_nothing() -> None:
    found = said(status(group(RUNNING, running=3, pending=2), refusal=SHORT))
    assert found["Scheduled"][0] == "True"
    assert found["Reserved"] == ("True", "Placed", "")
    assert "Unschedulable" not in found


def test_terminating_members_keep_the_gang() -> None:
    gang = group(RUNNING, running=1, releasing=2, releasing_placed=2)
    assert "Unschedulable" not in said(status(gang, refusal=SHORT))
    with_waiting = group(RUNNING, running=1, releasing=2, releasing_placed=2, pending=2)
    assert "Unschedulable" in said(status(with_waiting, refusal=SHORT))


@pytest.mark.parametrize("gone", [0, 1])
def test_a_group_of_which_all_members_terminate_is_not_said_to_lack_any(gone: int) -> None:
    """volcano#5794: while its pods ended the group was called unschedulable for want of pods."""
    of_before = Condition("Reserved", "True", "Placed", "", "t1", "then")
    ends = group(RUNNING, succeeded=gone, releasing=3 - gone, releasing_placed=3 - gone)
    assert said(status(ends, of_before, refusal=TOO_FEW)) == {
        "Scheduled": ("True", "tasks in gang are ready to be scheduled", ""),
        "Reserved": ("True", "Placed", ""),
    }
    one_waits = group(RUNNING, pending=1, releasing=3, releasing_placed=3)
    assert said(status(one_waits, of_before, refusal=TOO_FEW))["Unschedulable"][0] == "True"


def test_an_old_complaint_is_taken_back_and_not_left_standing() -> None:
    old = Condition("Unschedulable", "True", "NotEnoughResources", "3/3", "t1", "then")
    assert said(status(group(placed=3), old))["Unschedulable"] == ("False", "Scheduled", "")


# What is written, and when


def test_conditions_that_say_the_same_keep_their_stamps() -> None:
    gang = group(placed=3)
    first = status(gang)
    stamped = lifecycle.stamped(first.conditions, stored(gang), at="now", transition="t1")
    assert {(c.changed, c.transition_id) for c in stamped} == {("now", "t1")}
    again = status(gang, *stamped)
    assert again.conditions == stamped
    later = lifecycle.stamped(again.conditions, stored(gang, *stamped), at="later", transition="t2")
    assert later == stamped


def test_a_new_text_gets_a_new_stamp() -> None:
    gang = group(pending=3)
    old = lifecycle.stamped(
        status(gang, refusal=SHORT).conditions, stored(gang), at="now", transition="t1"
    )
    moved = replace(SHORT, shortfalls=(Shortfall("cpu", asked=4000, free=0, limit=8000),))
    new = lifecycle.stamped(
        status(gang, *old, refusal=moved).conditions,
        stored(gang, *old),
        at="later",
        transition="t2",
    )
    assert {c.changed for c in new} == {"later"}


def test_nothing_is_written_for_stamps_alone() -> None:
    gang = group(RUNNING, running=3)
    wanted = status(gang)
    stamped = lifecycle.stamped(wanted.conditions, stored(gang), at="x", transition="y")
    assert not lifecycle.differs(wanted, stored(gang, *stamped, running=3))


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        ({"running": 3}, ""),
        ({"running": 2}, "counts"),
        ({"running": 3, "failed": 1}, "counts"),
        ({"running": 3, "succeeded": 1}, "counts"),
    ],
    ids=["the same", "running", "failed", "succeeded"],
)
def test_what_changes_beside_texts_is_told(fields: dict[str, int], change: str) -> None:
    gang = group(RUNNING, running=3)
    wanted = status(gang)
    there = stored(gang, *wanted.conditions, **fields)
    assert lifecycle.summary(wanted, there) == change
    assert lifecycle.differs(wanted, there) == bool(change)


def test_a_new_phase_is_a_change() -> None:
    wanted = status(group(INQUEUE, running=3))
    there = stored(group(INQUEUE), *wanted.conditions, running=3)
    assert lifecycle.summary(wanted, there) == "phase"
    assert lifecycle.differs(wanted, there)


def test_a_new_condition_alone_is_a_change() -> None:
    gang = group(pending=3)
    assert lifecycle.differs(status(gang, refusal=SHORT), stored(gang))


@pytest.mark.parametrize("phase", GroupPhase, ids=lambda phase: phase.name.lower())
def test_groups_that_do_not_run_wait(phase: GroupPhase) -> None:
    assert lifecycle.waits(phase) == (phase in (NEW, PENDING, INQUEUE, UNKNOWN))


def test_the_key_of_a_stored_group_is_that_of_its_gang() -> None:
    gang = group()
    assert stored(gang).key == gang.key == group_key("default", "g")


def test_a_group_whose_members_have_failed_is_not_told_that_it_lacks_some() -> None:
    """They fail one after the other: what was said of the others stays for no moment longer."""
    gang = group(RUNNING, failed=3)
    before = (
        Condition(
            "Reserved", "False", "NotEnoughTasks", "group default/g: pods asked 3, present 2"
        ),
        Condition("Unschedulable", "True", "NotEnoughTasks", "valid: 2, min: 3"),
    )
    wanted = status(gang, *before, refusal=TOO_FEW)
    assert wanted.phase is COMPLETED
    found = said(wanted)
    assert found.keys() == {"Scheduled", "Unschedulable"}
    assert (found["Scheduled"][0], found["Unschedulable"][0]) == ("True", "False")
