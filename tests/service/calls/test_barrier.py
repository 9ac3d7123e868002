"""Bind calls of a gang: held until it is complete, all answered whatever happens.

Virtual time; the planner places the gangs, the test is kube-scheduler and the API server.
"""

import asyncio
from typing import get_args

import pytest

from app.cache.gangs.members import Stage
from app.kube.writer import BIND_DEADLINE_S
from app.model.ids import NodeName
from app.model.parts import SubGroupPolicy
from app.model.pod import TASK_SPEC
from app.service.limits import Limits
from app.telemetry import metrics
from app.wire import manifests
from tests.builders import make_node, make_shape
from tests.service.rig import FAILING, Call, Rig
from tests.service.virtual_time import advance, clock, settle

PLANNED_AGAIN = "the place was given back; the pod is planned again"


async def planned_gang(
    *, size: int, minimum: int | None = None, limits: Limits | None = None
) -> Rig:
    """A gang ``g`` with a place for each of its members."""
    rig = Rig(limits)
    rig.node("n1", "n2")
    rig.gang("g", size=size, minimum=minimum)
    await rig.cycle()
    assert all(rig.place(f"g-{i}") for i in range(size))
    return rig


async def test_calls_are_held_until_the_minimum_has_come_and_then_all_are_bound() -> None:
    rig = await planned_gang(size=3)
    first, second = rig.bind("g-0"), rig.bind("g-1")
    await advance(10)
    assert not first.done
    assert not second.done
    assert rig.api.bound() == {}
    assert rig.parts.barrier.held() == {rig.key("g"): 2}
    third = rig.bind("g-2")
    await settle()
    assert [call.answer for call in (first, second, third)] == ["", "", ""]
    assert set(rig.api.bound()) == {"g-0", "g-1", "g-2"}
    assert rig.parts.barrier.held() == {}


async def test_members_above_the_minimum_bind_at_once() -> None:
    rig = await planned_gang(size=3, minimum=2)
    held = rig.bind("g-0")
    opening = rig.bind("g-1")
    await settle()
    extra = rig.bind("g-2")
    await settle()
    assert (held.answer, opening.answer, extra.answer) == ("", "", "")


async def test_the_minimum_of_every_role_must_have_come() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=2, role_minimum={"ps": 1, "worker": 1})
    for name, role in (("w-0", "worker"), ("w-1", "worker"), ("ps-0", "ps")):
        rig.pod(name, group="g", annotations={TASK_SPEC: role})
    await rig.cycle()
    workers = [rig.bind("w-0"), rig.bind("w-1")]
    await settle()
    assert rig.api.bound() == {}
    server = rig.bind("ps-0")
    await settle()
    assert [call.answer for call in (*workers, server)] == ["", "", ""]


async def test_a_gang_goes_when_enough_sub_groups_are_whole_at_bind() -> None:
    rig = Rig()
    rig.node("n1", cpu=8000)
    pairs = SubGroupPolicy("pair", keys=("pair",), size=2, least=1)
    rig.group("g", minimum=2, sub_groups=(pairs,))
    for pair in "01":
        for number in "01":
            rig.pod(f"g-{pair}{number}", group="g", labels={"pair": pair})
    await rig.cycle()
    one_of_each = [rig.bind("g-00"), rig.bind("g-10")]
    await settle()
    assert rig.api.bound() == {}
    second = rig.bind("g-11")
    await settle()
    assert [call.answer for call in (*one_of_each, second)] == ["", "", ""]


async def test_members_on_nodes_count_after_a_restart() -> None:
    """A new process finds two of three bound: the third does not wait for anybody."""

    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3)
    for name in ("g-0", "g-1"):
        rig.pod(name, group="g", node=NodeName("n1"))
    rig.pod("g-2", group="g")
    await rig.cycle()
    call = rig.bind("g-2")
    await settle()
    assert call.answer == ""


async def test_a_gang_that_does_not_complete_is_answered_and_its_room_is_free() -> None:
    rig = await planned_gang(size=3, limits=Limits(barrier_s=20.0))
    late = metrics.GANGS_RELEASED.labels("late")
    before = late._value.get()
    first = rig.bind("g-0")
    await advance(5)
    second = rig.bind("g-1")
    await advance(19.9)
    assert not first.done
    await advance(0.2)
    assert first.answer == second.answer == "gang did not complete in time"
    assert rig.api.tries == []
    assert rig.has_reservations() == 0
    assert late._value.get() == before + 1
    await rig.cycle()
    assert rig.place("g-0") == "", "held off for a while"


async def test_a_gang_whose_rest_nobody_created_in_time_waits_for_a_member() -> None:
    """Else it would take the same room, in vain, now and then for ever."""

    rig = Rig(Limits(barrier_s=20.0))
    rig.node("n1")
    rig.group("g", minimum=3)
    rig.pod("g-0", group="g")
    await rig.cycle()
    assert rig.has_reservations() == 3
    first = rig.bind("g-0")
    await advance(21)
    assert first.answer == "gang did not complete in time"
    await advance(600)
    await rig.cycle()
    assert rig.has_reservations() == 0
    rig.pod("g-1", group="g")
    await rig.cycle()
    assert rig.has_reservations() == 3


async def test_a_big_gang_may_take_its_time_as_long_as_members_come_but_not_for_ever() -> None:
    limits = Limits(barrier_s=5.0, barrier_limit_s=12.0)
    rig = await planned_gang(size=6, limits=limits)
    calls = []
    for number in range(3):
        calls.append(rig.bind(f"g-{number}"))
        await advance(4)
    assert [call.done for call in calls] == [True] * 3
    assert calls[0].answer == "gang did not complete in time"

    await advance(60)
    await rig.cycle()
    again = [rig.bind(f"g-{number}") for number in range(3)]
    await advance(4)
    again += [rig.bind(f"g-{number}") for number in range(3, 6)]
    await settle()
    assert [call.answer for call in again] == [""] * 6


async def test_a_gang_that_fails_again_and_again_waits_longer_each_time() -> None:
    limits = Limits(barrier_s=5.0, hold_base_s=1.0, hold_max_s=6.0)
    rig = await planned_gang(size=2, limits=limits)
    group = rig.cache.groups[rig.key("g")]
    pauses = []
    for _ in range(5):
        call = rig.bind("g-0")
        await advance(5)
        assert call.done
        pauses.append(round(group.cool_down_until - clock(), 3))
        await advance(group.cool_down_until - clock() + 0.001)
        await rig.cycle()
        assert rig.place("g-0")
    assert pauses == [1.0, 2.0, 4.0, 6.0, 6.0]


async def test_a_pause_does_not_overflow_after_very_many_failures() -> None:
    rig = await planned_gang(size=2, limits=Limits(barrier_s=5.0))
    group = rig.cache.groups[rig.key("g")]
    group.failures = 5000
    rig.bind("g-0")
    await advance(5)
    assert group.cool_down_until == pytest.approx(clock() + 60.0)


async def test_failures_are_forgotten_when_the_minimum_is_on_nodes() -> None:
    rig = await planned_gang(size=2)
    group = rig.cache.groups[rig.key("g")]
    group.failures = 3
    rig.bind("g-0")
    rig.bind("g-1")
    await settle()
    assert group.failures == 3, "accepted, but not seen yet"
    rig.show_bindings()
    await rig.cycle()
    assert group.failures == 0


async def test_the_next_wait_starts_afresh_when_everybody_left() -> None:
    rig = await planned_gang(size=2, limits=Limits(barrier_s=10.0))
    first = rig.bind("g-0")
    await advance(8)
    first.hang_up()
    await settle()
    again = rig.bind("g-0")
    await advance(8)
    assert not again.done
    await advance(2)
    assert again.answer == "gang did not complete in time"


async def test_a_client_that_hangs_up_is_never_bound_and_keeps_its_place() -> None:
    rig = await planned_gang(size=2)
    gone = rig.bind("g-0")
    await settle()
    gone.hang_up()
    await settle()
    assert gone.answer == "client is gone"
    assert rig.member("g-0").stage is Stage.PLANNED
    other = rig.bind("g-1")
    await settle()
    assert not other.done, "the one that hung up does not count any more"
    again = rig.bind("g-0")
    await settle()
    assert (other.answer, again.answer) == ("", "")
    assert [target for _, target in rig.api.tries] == ["default/g-0", "default/g-1"] or [
        target for _, target in rig.api.tries
    ] == ["default/g-1", "default/g-0"]


async def test_a_second_call_for_the_same_pod_takes_the_place_of_the_first() -> None:
    rig = await planned_gang(size=2)
    first = rig.bind("g-0")
    await settle()
    second = rig.bind("g-0")
    await settle()
    assert first.answer == "another Bind call for the same pod arrived"
    assert not second.done
    assert rig.member("g-0").stage is Stage.ASSUMED
    assert rig.parts.barrier.held() == {rig.key("g"): 1}
    other = rig.bind("g-1")
    await settle()
    assert (second.answer, other.answer) == ("", "")
    assert len(rig.api.of("bind")) == 2


async def test_the_same_pod_twice_does_not_count_as_two_members() -> None:
    rig = await planned_gang(size=2)
    rig.bind("g-0")
    await settle()
    rig.bind("g-0")
    await settle()
    assert rig.api.bound() == {}


async def test_a_held_pod_that_is_deleted_is_answered_at_once_and_its_room_is_free() -> None:
    rig = await planned_gang(size=3)
    call = rig.bind("g-0")
    other = rig.bind("g-1")
    await settle()
    rig.delete("g-0")
    await settle()
    assert call.answer == "pod was deleted"
    assert not other.done
    assert rig.has_reservations() == 2


async def test_a_held_pod_that_is_being_deleted_is_answered_at_once() -> None:
    rig = await planned_gang(size=2)
    call = rig.bind("g-0")
    await settle()
    pod = rig.api.pods["default/g-0"]
    rig.pod("g-0", group="g", uid=pod.uid, deleting=True)
    await settle()
    assert call.answer == "pod is being deleted"
    assert rig.api.tries == []


async def test_a_deleted_member_is_replaced_by_its_successor() -> None:
    rig = await planned_gang(size=2)
    held = rig.bind("g-1")
    await settle()
    rig.delete("g-0")
    rig.pod("g-2", group="g")
    await rig.cycle()
    successor = rig.bind("g-2")
    await settle()
    assert (held.answer, successor.answer) == ("", "")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"unschedulable": True}, "node does not take pods any more"),
        ({"ready": False}, "node does not take pods any more"),
        ({"cpu": 0}, "node became smaller"),
    ],
)
async def test_a_node_that_takes_no_more_pods_ends_the_holds_on_it(
    change: dict[str, object], why: str
) -> None:
    rig = await planned_gang(size=2)
    call = rig.bind("g-0")
    await settle()
    rig.see("nodes", make_node(rig.place("g-0"), **change))  # type: ignore[arg-type]
    await settle()
    assert call.answer == why
    assert rig.api.tries == []


async def test_a_node_that_goes_away_ends_the_holds_on_it() -> None:
    rig = await planned_gang(size=2)
    call = rig.bind("g-0")
    await settle()
    rig.unsee("nodes", make_node(rig.place("g-0")))
    await settle()
    assert call.answer == "node is gone"


async def test_a_foreign_pod_that_takes_the_room_ends_the_hold() -> None:
    rig = await planned_gang(size=2)
    call = rig.bind("g-0")
    await settle()
    node = NodeName(rig.place("g-0"))
    shape = make_shape(cpu=8000)
    rig.pod("stranger", scheduler="default-scheduler", node=node, shape=shape)
    await settle()
    assert call.answer == "another pod took the room"


async def test_a_deleted_pod_group_ends_all_its_holds() -> None:
    rig = await planned_gang(size=3)
    calls = [rig.bind("g-0"), rig.bind("g-1")]
    await settle()
    rig.unsee("podgroups", rig.cache.groups[rig.key("g")].pod_group)
    await settle()
    assert [call.answer for call in calls] == ["PodGroup was deleted"] * 2
    late = rig.bind("g-2", "n1")
    await settle()
    assert late.answer == PLANNED_AGAIN
    assert rig.api.tries == []


async def test_a_minimum_that_is_raised_while_calls_are_held_counts() -> None:
    rig = await planned_gang(size=3, minimum=3)
    calls = [rig.bind("g-0"), rig.bind("g-1")]
    await settle()
    rig.group("g", minimum=4)
    calls.append(rig.bind("g-2"))
    await settle()
    assert not any(call.done for call in calls)
    rig.pod("g-3", group="g")
    await rig.cycle()
    calls.append(rig.bind("g-3"))
    await settle()
    assert [call.answer for call in calls] == [""] * 4


async def test_a_minimum_that_is_lowered_opens_the_barrier() -> None:
    rig = await planned_gang(size=3)
    calls = [rig.bind("g-0"), rig.bind("g-1")]
    await settle()
    rig.group("g", minimum=2)
    await settle()
    assert [call.answer for call in calls] == ["", ""]


async def test_a_member_that_somebody_else_bound_counts() -> None:
    rig = await planned_gang(size=2)
    call = rig.bind("g-0")
    await settle()
    pod = rig.api.pods["default/g-1"]
    rig.pod("g-1", group="g", uid=pod.uid, node=NodeName("n2"))
    await settle()
    assert call.answer == ""


async def test_what_happens_after_the_release_takes_no_place_away() -> None:
    """The barrier has opened; the node is cordoned before the calls get their turn."""

    rig = await planned_gang(size=2)
    calls = [rig.bind("g-0")]
    await settle()
    rig.api.slow = asyncio.Event()
    calls.append(rig.bind("g-1"))
    await settle()
    for name in ("n1", "n2"):
        rig.see("nodes", make_node(name, unschedulable=True))
    rig.api.slow.set()
    await settle()
    assert [call.answer for call in calls] == ["", ""]


async def test_stopping_answers_all_holds_and_takes_no_more() -> None:
    rig = await planned_gang(size=3)
    calls = [rig.bind("g-0"), rig.bind("g-1")]
    await settle()
    rig.parts.barrier.drain()
    await settle()
    calls.append(rig.bind("g-0"))
    await settle()
    assert [call.answer for call in calls] == ["extender is stopping"] * 3
    assert rig.api.tries == []
    assert rig.parts.barrier.held() == {}
    await advance(60)


async def test_a_gang_whose_calls_come_while_stopping_is_refused_whole() -> None:
    """The first calls are refused, but not gone yet, when the last one comes."""

    rig = await planned_gang(size=3)
    rig.parts.barrier.drain()
    calls = [rig.bind(f"g-{i}") for i in range(3)]
    await settle()
    assert [call.answer for call in calls] == ["extender is stopping"] * 3
    assert rig.api.tries == []


async def test_the_rest_of_a_gang_on_nodes_is_bound_while_stopping() -> None:
    rig = await planned_gang(size=3, minimum=2)
    first = [rig.bind("g-0"), rig.bind("g-1")]
    await settle()
    rig.show_bindings()
    rig.parts.barrier.drain()
    extra = rig.bind("g-2")
    await settle()
    assert [call.answer for call in (*first, extra)] == [""] * 3


async def test_stopping_lets_bindings_that_are_under_way_finish() -> None:
    rig = await planned_gang(size=2)
    rig.api.slow = asyncio.Event()
    calls = [rig.bind("g-0"), rig.bind("g-1")]
    await settle()
    rig.parts.barrier.drain()
    rig.api.slow.set()
    await settle()
    assert [call.answer for call in calls] == ["", ""]


async def test_a_cancelled_call_gives_its_turn_back() -> None:
    rig = await planned_gang(size=2)
    call = rig.bind("g-0")
    await settle()
    call.task.cancel()
    await settle()
    assert call.task.cancelled()
    assert rig.member("g-0").stage is Stage.PLANNED
    assert rig.parts.barrier.held() == {}


async def test_a_replica_that_stops_leading_answers_its_holds() -> None:
    rig = await planned_gang(size=2)
    call = rig.bind("g-0")
    await settle()
    activity = rig.parts.activity
    activity.elected = True
    assert not activity.active
    running = asyncio.create_task(rig.planning.loop.run())
    await advance(2)
    assert call.answer == "another replica leads"
    assert rig.has_reservations() == 0
    running.cancel()


async def test_the_rest_of_a_gang_goes_alone_after_part_of_it_was_bound() -> None:
    """A Binding failed for good; its pod comes back and does not wait for those on nodes."""

    rig = await planned_gang(size=3, limits=Limits(bind_patience_s=1.0))
    rig.api.fails["bind"] = [FAILING] * 3
    calls: list[Call] = [rig.bind(f"g-{i}") for i in range(3)]
    await settle()
    rig.api.fails["bind"] = [FAILING] * 20
    await advance(2)
    assert all(call.answer.startswith("500: internal error") for call in calls)
    rig.api.fails.clear()
    again = [rig.bind("g-0"), rig.bind("g-1")]
    await settle()
    assert not any(call.done for call in again)
    again.append(rig.bind("g-2"))
    await settle()
    assert [call.answer for call in again] == [""] * 3


def test_the_hold_and_the_patience_together_stay_below_the_scheduler_s_time_out() -> None:
    limits = Limits()
    held = limits.barrier_limit_s + limits.bind_patience_s + BIND_DEADLINE_S
    for form in get_args(manifests.Form):
        (extender,) = manifests.scheduler_config(form)["extenders"]
        assert held < float(extender["httpTimeout"].removesuffix("s"))
