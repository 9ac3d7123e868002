"""When reservations that are not used are given back, so that others can have the room."""

import pytest

from app.model.ids import NodeName
from app.model.pod import GATE
from app.model.reason import Cause
from app.model.workload import GroupPhase
from app.service.calls.filtering import Chosen
from app.service.limits import Limits
from app.telemetry import metrics
from tests.builders import GIB, make_amounts, make_node, make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import advance, clock, settle


def released(why: str) -> float:
    return float(metrics.GANGS_RELEASED.labels(why)._value.get())


async def test_a_gang_nobody_came_for_gives_its_room_to_others() -> None:
    rig = Rig(Limits(planned_s=30.0))
    rig.node("n1")
    rig.gang("first", size=2, shape=make_shape(cpu=4000))
    await rig.cycle()
    rig.gang("second", size=2, shape=make_shape(cpu=4000))
    await rig.cycle()
    assert rig.place("first-0")
    assert not rig.place("second-0")
    before = released("unused")
    await advance(31)
    await rig.cycle()
    assert released("unused") == before + 1
    assert rig.place("second-0")
    assert rig.refusals[rig.key("first")]


async def test_a_planned_pod_may_wait_while_kube_scheduler_works_off_a_queue() -> None:
    rig = Rig(Limits(planned_s=30.0, backlog_s=5.0))
    rig.node("n1")
    rig.gang("late", size=2)
    rig.pod("busy")
    await rig.cycle()
    for _ in range(10):
        await advance(4)
        rig.filter("busy", ["n1"])
        await rig.cycle()
    assert rig.place("late-0"), "40 s, and the scheduler is busy"
    await advance(6)
    await rig.cycle()
    assert released("unused")
    assert rig.refusals[rig.key("late")]


async def test_one_member_that_comes_does_not_save_a_gang_whose_others_do_not() -> None:
    rig = Rig(Limits(planned_s=30.0, barrier_s=100.0, barrier_limit_s=100.0))
    rig.node("n1")
    rig.gang("g", size=2)
    await rig.cycle()
    call = rig.bind("g-0")
    await advance(31)
    await rig.cycle()
    await settle()
    assert call.answer == "the place was not used in time"
    assert rig.has_reservations() == 0


async def test_a_member_beyond_the_minimum_alone_loses_its_place() -> None:
    rig = Rig(Limits(planned_s=30.0))
    rig.node("n1")
    rig.gang("g", size=3, minimum=2)
    await rig.cycle()
    calls = [rig.bind("g-0"), rig.bind("g-1")]
    await settle()
    rig.show_bindings()
    late = released("unused")
    group = rig.cache.groups[rig.key("g")]
    await advance(31)
    rig.planning.expiry.expire(clock())
    assert rig.place("g-2") == ""
    assert [call.answer for call in calls] == ["", ""]
    assert released("unused") == late
    assert group.failures == 0


def elastic(rig: Rig, name: str, *, extras: int, created: float) -> list[str]:
    """A gang of one that runs on half a core, and members beyond that for one core each."""
    rig.group(name, minimum=1, created=created)
    half = make_shape(cpu=500)
    rig.pod(f"{name}-0", group=name, node=NodeName("n1"), phase="Running", shape=half)
    names = [f"{name}-{number + 1}" for number in range(extras)]
    for extra in names:
        rig.pod(extra, group=name, created=created)
    return names


@pytest.mark.parametrize("broken", [1, 3])
async def test_members_beyond_the_minimum_that_nobody_comes_for_let_others_go_first(
    broken: int,
) -> None:
    """kube-scheduler never asks for them: a claim of theirs does not exist."""

    rig = Rig(Limits(planned_s=30.0))
    rig.node("n1", cpu=2000)
    first, *_ = elastic(rig, "a", extras=broken, created=0.0)
    (other,) = elastic(rig, "b", extras=1, created=1.0)
    await rig.cycle()
    assert rig.place(first)
    await advance(31)
    await rig.cycle()
    assert rig.place(other)


async def test_those_of_one_gang_take_turns_too() -> None:
    rig = Rig(Limits(planned_s=30.0))
    rig.node("n1", cpu=1500)
    broken, good = elastic(rig, "a", extras=2, created=0.0)
    await rig.cycle()
    assert rig.place(broken)
    await advance(31)
    await rig.cycle()
    assert rig.place(good)


async def test_room_that_nobody_else_wants_is_kept_for_whom_nobody_came() -> None:
    rig = Rig(Limits(planned_s=30.0))
    rig.node("n1", cpu=1500)
    (extra,) = elastic(rig, "a", extras=1, created=0.0)
    await rig.cycle()
    for _ in range(3):
        await advance(31)
        await rig.cycle()
        assert rig.place(extra)


async def test_a_member_that_is_asked_for_after_all_does_not_go_last_any_more() -> None:
    rig = Rig(Limits(planned_s=30.0))
    rig.node("n1", cpu=2000)
    (extra,) = elastic(rig, "a", extras=1, created=0.0)
    (other,) = elastic(rig, "b", extras=1, created=1.0)
    await rig.cycle()
    await advance(31)
    await rig.cycle()
    assert rig.place(other)
    rig.filter(extra)
    rig.cache.reservations.withdraw(rig.member(other).pod.uid, now=clock())
    await advance(2)
    await rig.cycle()
    assert rig.place(extra)


async def test_a_member_that_is_asked_for_while_it_goes_last_has_free_room_at_once() -> None:
    rig = Rig(Limits(planned_s=30.0))
    rig.node("n1", cpu=1500)
    (extra,) = elastic(rig, "a", extras=1, created=0.0)
    await rig.cycle()
    await advance(31)
    rig.planning.expiry.expire(clock())
    assert rig.place(extra) == ""
    assert rig.filter(extra) == Chosen(NodeName("n1"))


async def test_room_for_pods_that_nobody_creates_is_given_back() -> None:
    rig = Rig(Limits(slot_s=60.0))
    rig.node("n1")
    rig.group("g", minimum=3, phase=GroupPhase.PENDING, min_resources=make_amounts(cpu=3000))
    await rig.cycle()
    group = rig.cache.groups[rig.key("g")]
    assert len(group.slots) == 3
    await advance(59)
    await rig.cycle()
    assert len(group.slots) == 3
    await advance(2)
    await rig.cycle()
    assert group.slots == {}
    assert group.cool_down_until > clock()
    await advance(600)
    rig.cache.signals.dirty = True
    await rig.cycle()
    assert group.slots == {}, "it may have been left behind"
    assert rig.refusals[rig.key("g")].cause is Cause.NOT_ENOUGH_TASKS
    rig.pod("g-0", group="g")
    await rig.cycle()
    assert rig.place("g-0") == "n1"
    assert len(group.slots) == 2


async def test_a_group_whose_pods_nobody_creates_keeps_no_other_out() -> None:
    rig = Rig(Limits(slot_s=60.0))
    rig.node("n1", cpu=4000)
    whole = make_amounts(cpu=4000)
    pending = GroupPhase.PENDING
    rig.group("left-behind", minimum=2, phase=pending, min_resources=whole)
    await rig.cycle()
    rig.group("next", minimum=2, phase=pending, min_resources=whole, created=1.0)
    rig.pod("next-0", group="next", shape=make_shape(cpu=2000))
    rig.pod("next-1", group="next", shape=make_shape(cpu=2000))
    await rig.cycle()
    assert rig.refusals[rig.key("next")].cause is Cause.CLUSTER_OVERUSED
    await advance(61)
    await rig.cycle()
    assert rig.place("next-0") == rig.place("next-1") == "n1"

    rig.pod("late", group="left-behind")
    await advance(2)
    await rig.cycle()
    assert rig.refusals[rig.key("left-behind")].cause is Cause.QUEUE_ROOM


async def first_admitted_and_second_driver() -> Rig:
    """Two groups as of Spark, with room for the executors of one."""
    rig = Rig(Limits(slot_s=60.0))
    rig.node("n1", "n2", cpu=4000)
    fields = {"phase": GroupPhase.PENDING, "min_resources": make_amounts(cpu=6000)}
    rig.group("first", minimum=1, **fields)
    await rig.cycle()
    rig.group("second", minimum=1, created=1.0, **fields)
    rig.pod("second-0", group="second", shape=make_shape(cpu=2000))
    return rig


async def test_the_claim_of_a_group_that_no_room_can_be_kept_for_ends_in_the_same_time() -> None:
    """As of Spark: the driver of the second comes first, and its executors need the same room."""
    rig = await first_admitted_and_second_driver()
    await rig.cycle()
    assert rig.refusals[rig.key("second")].cause is Cause.CLUSTER_OVERUSED
    assert rig.filter("second-0", ["n1", "n2"]) != Chosen(NodeName("n1"))
    assert not rig.place("second-0")
    await advance(59)
    await rig.cycle()
    assert not rig.place("second-0")
    await advance(2)
    await rig.cycle()
    await rig.cycle()
    assert rig.place("second-0")

    rig.pod("first-0", group="first", shape=make_shape(cpu=2000))
    await rig.cycle()
    assert rig.place("first-0"), "it was admitted"


async def test_the_claim_of_such_a_group_holds_until_its_own_pod_has_a_place() -> None:
    rig = await first_admitted_and_second_driver()
    await advance(30)
    await rig.cycle()
    rig.pod("first-0", group="first", shape=make_shape(cpu=2000))
    await rig.cycle()
    assert rig.place("first-0")
    await advance(29)
    await rig.cycle()
    assert not rig.place("second-0")


async def test_room_is_kept_for_as_long_as_members_come() -> None:
    rig = Rig(Limits(slot_s=60.0, planned_s=600.0))
    rig.node("n1")
    rig.group("g", minimum=5, phase=GroupPhase.PENDING, min_resources=make_amounts(cpu=3000))
    await rig.cycle()
    group = rig.cache.groups[rig.key("g")]
    for number in range(4):
        await advance(50)
        rig.pod(f"g-{number}", group="g")
        await rig.cycle()
        assert len(group.slots) == 4 - number
    await advance(61)
    await rig.cycle()
    assert rig.has_reservations() == 0


async def test_a_gang_that_cannot_get_the_rest_gives_back_what_it_has() -> None:
    rig = Rig(Limits(stuck_s=3.0))
    rig.node("n1", "n2", cpu=2000)
    rig.gang("g", size=4)
    await rig.cycle()
    assert rig.has_reservations() == 4
    before = released("stuck")
    rig.see("nodes", make_node("n2", cpu=2000, unschedulable=True))
    await rig.cycle()
    assert rig.has_reservations() == 2, "for a moment: another cycle may find the rest"
    for _ in range(5):
        await advance(1)
        rig.cache.signals.dirty = True
        await rig.cycle()
    assert rig.has_reservations() == 0
    assert released("stuck") == before + 1


async def test_a_gang_that_lost_the_place_of_one_role_gives_back_what_the_others_have() -> None:
    rig = Rig(Limits(stuck_s=3.0))
    rig.node("n1", cpu=4000, memory=2 * GIB)
    rig.node("n2", cpu=1000, memory=8 * GIB)
    rig.group("g", minimum=2, role_minimum={"ps": 1, "worker": 1})
    worker, ps = make_shape(cpu=2000, memory=GIB), make_shape(cpu=1000, memory=8 * GIB)
    for name, role, shape in [
        ("g-0", "worker", worker),
        ("g-1", "worker", worker),
        ("ps", "ps", ps),
    ]:
        rig.pod(name, group="g", shape=shape, annotations={"volcano.sh/task-spec": role})
    await rig.cycle()
    await rig.cycle()
    assert rig.has_reservations() == 3
    rig.see("nodes", make_node("n2", cpu=1000, unschedulable=True))
    for _ in range(6):
        await rig.cycle()
        await advance(1)
        rig.cache.signals.dirty = True
    assert rig.has_reservations() == 0


async def test_a_gang_that_finds_the_rest_in_time_keeps_what_it_has() -> None:
    rig = Rig(Limits(stuck_s=3.0))
    rig.node("n1", "n2", cpu=2000)
    rig.gang("g", size=4)
    await rig.cycle()
    rig.see("nodes", make_node("n2", cpu=2000, unschedulable=True))
    await rig.cycle()
    await advance(1)
    rig.node("n3", cpu=2000)
    await rig.cycle()
    assert rig.has_reservations() == 4


async def test_the_rest_of_a_gang_that_was_cut_in_half_goes_first() -> None:
    """As after a crash in the middle of binding: before a gang that is older."""

    rig = Rig()
    rig.node("n1", cpu=4000)
    rig.group("half", minimum=4, created=100.0)
    for i in range(2):
        rig.pod(f"half-{i}", group="half", node=NodeName("n1"))
    for i in range(2, 4):
        rig.pod(f"half-{i}", group="half", gates=(GATE,))
    rig.group("older", minimum=2, created=1.0)
    for i in range(2):
        rig.pod(f"older-{i}", group="older")
    await rig.cycle()
    assert rig.place("half-2") == rig.place("half-3") == "n1"
    assert rig.place("older-0") == ""
