"""What comes of the POST of a Binding: said once, early, and never twice to the API server."""

import asyncio
from dataclasses import replace

import pytest

from app.cache.gangs.members import Stage
from app.model.device_families import DeviceSetting
from app.model.devices import DeviceOrder
from app.model.ids import NodeName, PodUid
from app.model.numa import NUMA_DECISION, NumaLayout, NumaNeed, NumaPolicy, NumaTopology
from app.service.calls.binding import BindCall
from app.service.limits import Limits
from app.service.ports import Reaction, WriteError
from app.wire import times
from tests.builders import make_pod, make_shape
from tests.devices import gpu_node, vgpu_shape
from tests.service.rig import CONFLICT, FAILING, GONE, REFUSED, Call, Rig
from tests.service.virtual_time import advance, clock, settle


def placed(name: str = "p", *, limits: Limits | None = None, nodes: int = 2) -> Rig:
    """A pod alone on two nodes; run a cycle to place it."""
    rig = Rig(limits)
    rig.node(*(f"n{i}" for i in range(1, nodes + 1)))
    rig.pod(name)
    return rig


async def test_a_single_pod_is_bound_at_once_to_its_place() -> None:
    rig = placed()
    await rig.cycle()
    call = rig.bind("p")
    await settle()
    assert call.answer == ""
    assert rig.api.bound() == {"p": rig.place("p")}
    rig.show_bindings()
    assert rig.has_reservations() == 0
    assert (await rig.parts.audit()).drifts == ()


@pytest.mark.parametrize(
    ("cpus", "told"), [((5,), '{"numa":{"0":{"cpu":"5"}}}'), ((), None)], ids=str
)
async def test_a_pod_is_told_the_cpus_that_it_is_meant_to_have(
    cpus: tuple[int, ...], told: str | None
) -> None:
    rig = Rig()
    rig.node("n1", cpu=16_000)
    layout = NumaLayout(NumaPolicy.SINGLE_NUMA_NODE, True, (0, 1), (8, 8))
    rig.see("numatopologies", NumaTopology(NodeName("n1"), layout, (8, 8)))
    need = NumaNeed(NumaPolicy.SINGLE_NUMA_NODE, cpus) if cpus else None
    rig.pod("p", shape=make_shape(cpu=5000, numa=need))
    await rig.cycle()
    rig.bind("p")
    await settle()
    assert rig.api.bound() == {"p": "n1"}
    assert rig.api.told["p"].get(NUMA_DECISION) == told


def with_gpus(*, lock: bool = False, **pods: int) -> Rig:
    """Pods alone that ask for so many GiB of a GPU; the node has two of 32 GiB."""
    rig = Rig()
    setting = DeviceSetting(vgpu=True, order=DeviceOrder.BINPACK, lock=lock)
    rig.parts.configuration.load(VGPU_CONF)
    rig.cache.set_device_setting(setting)
    rig.see("nodes", gpu_node("n1", "GPU-a", "GPU-b"))
    for name, gib in pods.items():
        rig.pod(name, shape=vgpu_shape(gib))
    return rig


VGPU_CONF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.SchedulePolicy: binpack
"""


async def test_a_pod_is_told_its_devices_in_its_binding() -> None:
    rig = with_gpus(a=20, b=20)
    await rig.cycle()
    calls = [rig.bind("a"), rig.bind("b")]
    await settle()
    assert [call.answer for call in calls] == ["", ""]
    told = {name: rig.api.told[name]["volcano.sh/vgpu-ids-new"] for name in ("a", "b")}
    assert sorted(told.values()) == ["GPU-a,NVIDIA,20480,0:", "GPU-b,NVIDIA,20480,0:"]
    assert rig.api.told["a"]["volcano.sh/bind-phase"] == "allocating"
    assert rig.api.told["a"]["volcano.sh/vgpu-node"] == "n1"


LOCK = ("n1", "hamivgpu")


async def test_one_pod_at_a_time_is_bound_to_a_node_that_is_locked() -> None:
    rig = with_gpus(lock=True, a=20, b=20)
    await rig.cycle()
    calls = [rig.bind("a"), rig.bind("b")]
    await settle()
    assert len(rig.api.bound()) == 1
    assert LOCK in rig.api.node_annotations
    del rig.api.node_annotations[LOCK]  # the device plugin has served the first
    await advance(1.1)
    assert [call.answer for call in calls] == ["", ""]
    assert LOCK in rig.api.node_annotations


async def test_a_binding_that_fails_unlocks_the_node() -> None:
    rig = with_gpus(lock=True, a=20)
    await rig.cycle()
    rig.api.fails["bind"] = [REFUSED]
    call = rig.bind("a")
    await settle()
    assert call.answer == str(REFUSED)
    assert LOCK not in rig.api.node_annotations


async def test_a_binding_whose_answer_was_lost_leaves_the_lock_to_the_device_plugin() -> None:
    rig = with_gpus(lock=True, a=20)
    await rig.cycle()
    rig.api.loses = 1
    call = rig.bind("a")
    await advance(2)
    assert (call.answer, rig.api.bound()) == ("", {"a": "n1"})
    assert LOCK in rig.api.node_annotations


@pytest.mark.parametrize(("age", "bound"), [(299.0, False), (301.0, True), (None, True)], ids=str)
async def test_a_lock_that_nothing_removes_counts_for_five_minutes(
    age: float | None, bound: bool
) -> None:
    rig = with_gpus(lock=True, a=20)
    await rig.cycle()
    old = "no time" if age is None else times.seconds(clock() - age)
    rig.api.node_annotations[LOCK] = old
    call = rig.bind("a")
    await settle()
    assert (rig.api.bound() == {"a": "n1"}) is bound
    if not bound:
        assert rig.api.node_annotations[LOCK] == old
        await advance(2)
        assert call.answer == ""


async def test_nodes_are_not_locked_for_pods_without_devices() -> None:
    rig = with_gpus(lock=True)
    rig.pod("plain")
    await rig.cycle()
    rig.bind("plain")
    await settle()
    assert rig.api.bound() == {"plain": "n1"}
    assert not rig.api.node_annotations


async def test_a_pod_whose_device_falls_ill_before_its_bind_is_planned_again() -> None:
    rig = with_gpus(a=20, b=20)
    await rig.cycle()
    rig.see("nodes", gpu_node("n1", "GPU-a", "GPU-b", ill="GPU-b"))
    calls = [rig.bind("a"), rig.bind("b")]
    await settle()
    assert sorted(call.answer for call in calls) == [
        "",
        "the devices that it asks for are not free on n1 any more; it is planned again",
    ]
    assert len(rig.api.bound()) == 1
    assert rig.has_reservations() == 1


async def test_a_call_whose_client_is_gone_before_its_turn_comes_is_not_bound() -> None:
    """The API server takes its time, and there are only so many connections."""

    rig = placed("first", limits=Limits(bindings_in_flight=1))
    for name in ("gone", "patient"):
        rig.pod(name)
    await rig.cycle()
    rig.api.slow = asyncio.Event()
    first, gone, patient = (rig.bind(name) for name in ("first", "gone", "patient"))
    await advance(30)
    gone.hang_up()
    await settle()
    rig.api.slow.set()
    await settle()
    assert [call.answer for call in (first, gone, patient)] == ["", "client is gone", ""]
    assert sorted(rig.api.bound()) == ["first", "patient"]
    assert rig.member("gone").stage is Stage.PLANNED


async def test_the_same_bind_again_after_it_was_bound_is_success_without_a_write() -> None:
    rig = placed()
    await rig.cycle()
    first = rig.bind("p")
    await settle()
    rig.show_bindings()
    again = rig.bind("p", first_node := rig.api.bound()["p"])
    other = rig.bind("p", "n1" if first_node == "n2" else "n2")
    await settle()
    assert (first.answer, again.answer) == ("", "")
    assert other.answer == f"already bound to {first_node}"
    assert len(rig.api.tries) == 1


async def test_the_same_bind_again_before_the_watch_shows_it_is_success() -> None:
    rig = placed()
    await rig.cycle()
    first = rig.bind("p")
    await settle()
    again = rig.bind("p")
    await settle()
    assert (first.answer, again.answer) == ("", "")
    assert len(rig.api.of("bind")) == 1
    assert rig.member("p").stage is Stage.BINDING


async def test_a_conflict_is_success_when_the_pod_is_on_that_node() -> None:
    """A Binding whose answer was lost: the pod is looked at, and it is there."""

    rig = placed()
    await rig.cycle()
    pod = rig.api.pods["default/p"]
    rig.api.pods["default/p"] = replace(pod, node=NodeName(rig.place("p")))
    call = rig.bind("p")
    await settle()
    assert call.answer == ""
    assert [verb for verb, _ in rig.api.tries] == ["bind", "read"]


async def test_an_answer_that_was_lost_is_asked_for_again() -> None:
    rig = placed()
    await rig.cycle()
    node = NodeName(rig.place("p"))
    rig.api.fails["bind"] = [WriteError(Reaction.RETRY, "no answer")]
    call = rig.bind("p")
    await settle()
    rig.api.pods["default/p"] = replace(rig.api.pods["default/p"], node=node)
    await advance(1)
    assert call.answer == ""
    assert [verb for verb, _ in rig.api.tries] == ["bind", "bind", "read"]


@pytest.mark.parametrize("elsewhere", [True, False])
async def test_a_conflict_with_another_node_or_another_pod_is_an_error(elsewhere: bool) -> None:
    rig = placed()
    await rig.cycle()
    pod, node = rig.api.pods["default/p"], NodeName(rig.place("p"))
    other = NodeName("n1" if node == "n2" else "n2")
    changed = (
        replace(pod, node=other) if elsewhere else replace(pod, uid=PodUid("uid-2"), node=node)
    )
    rig.api.pods["default/p"] = changed
    call = rig.bind("p") if elsewhere else Call(rig, BindCall(pod.uid, "default", "p", node))
    await settle()
    assert call.answer == "409: conflict"
    assert rig.api.of("bind") == []


async def test_a_conflict_that_cannot_be_looked_into_is_an_error() -> None:
    rig = placed()
    await rig.cycle()
    rig.api.fails["bind"] = [CONFLICT]
    rig.api.fails["read"] = [FAILING]
    call = rig.bind("p")
    await settle()
    assert call.answer == "500: internal error"


@pytest.mark.parametrize("error", [GONE, REFUSED])
async def test_what_trying_again_cannot_help_is_said_at_once(error: WriteError) -> None:
    rig = placed()
    await rig.cycle()
    rig.api.fails["bind"] = [error]
    call = rig.bind("p")
    await settle()
    assert call.answer == str(error)
    assert len(rig.api.tries) == 1
    assert rig.member("p").stage is Stage.PLANNED, "the room is kept for the next call"


async def test_a_passing_failure_is_tried_again_until_it_passes() -> None:
    rig = placed()
    await rig.cycle()
    rig.api.fails["bind"] = [FAILING] * 4
    began = clock()
    call = rig.bind("p")
    await asyncio.wait({call.task})
    assert call.answer == ""
    assert len(rig.api.tries) == 5
    assert clock() - began == pytest.approx(0.05 + 0.1 + 0.2 + 0.4)


async def test_the_pause_the_api_server_asks_for_is_kept() -> None:
    rig = placed()
    await rig.cycle()
    rig.api.fails["bind"] = [WriteError(Reaction.RETRY, "429", retry_after_s=2.0)]
    began = clock()
    call = rig.bind("p")
    await asyncio.wait({call.task})
    assert call.answer == ""
    assert clock() - began == pytest.approx(2.0)


@pytest.mark.parametrize("pause", [None, 7.0])
async def test_patience_ends_before_the_scheduler_s(pause: float | None) -> None:
    rig = placed(limits=Limits(bind_patience_s=6.0))
    await rig.cycle()
    rig.api.fails["bind"] = [WriteError(Reaction.RETRY, "503", retry_after_s=pause)] * 100
    began = clock()
    call = rig.bind("p")
    await asyncio.wait({call.task})
    assert call.answer == "503"
    assert clock() - began <= 6.0
    assert rig.member("p").stage is Stage.PLANNED


async def test_when_patience_ends_the_pod_is_looked_at_once_more() -> None:
    """The Binding of a failed call may have been stored: then its pod is bound."""

    rig = placed(limits=Limits(bind_patience_s=6.0))
    await rig.cycle()
    node = NodeName(rig.place("p"))
    rig.api.fails["bind"] = [WriteError(Reaction.RETRY, "no answer", retry_after_s=7.0)]
    rig.api.pods["default/p"] = replace(rig.api.pods["default/p"], node=node)
    call = rig.bind("p")
    await asyncio.wait({call.task})
    assert call.answer == ""
    assert rig.member("p").stage is Stage.BINDING


async def test_nothing_is_tried_again_for_a_client_that_hung_up() -> None:
    rig = placed()
    await rig.cycle()
    rig.api.fails["bind"] = [FAILING] * 100
    call = rig.bind("p")
    await advance(1)
    call.hang_up()
    await settle()
    tries = len(rig.api.tries)
    assert call.answer == "client is gone"
    await advance(10)
    assert len(rig.api.tries) == tries


async def test_part_of_a_gang_fails_and_the_rest_is_not_held_up() -> None:
    rig = Rig()
    rig.node("n1", "n2")
    rig.gang("g", size=3)
    await rig.cycle()
    rig.api.fails["bind"] = [REFUSED]
    calls = [rig.bind(f"g-{i}") for i in range(3)]
    await settle()
    answers = sorted(call.answer for call in calls)
    assert answers == ["", "", "422: invalid"]
    rig.show_bindings()
    [failed] = [m for m in rig.cache.members.values() if not m.pod.node]
    again = rig.bind(failed.pod.name)
    await settle()
    assert again.answer == ""


async def test_a_member_that_was_let_go_is_not_held_again_while_the_watch_is_behind() -> None:
    """Its own Binding arrived, another's did not: it must not wait for that one."""

    rig = Rig()
    rig.node("n1", "n2")
    rig.gang("g", size=2)
    await rig.cycle()
    rig.api.fails["bind"] = [REFUSED]
    calls = {name: rig.bind(name) for name in ("g-0", "g-1")}
    await settle()
    [bound] = [name for name, call in calls.items() if call.answer == ""]
    again = rig.bind(bound)
    await settle()
    assert again.answer == ""
    assert rig.member(bound).stage is Stage.BINDING
    assert len(rig.api.of("bind")) == 1


async def test_the_node_may_be_another_than_planned_while_it_has_room() -> None:
    """The stock scheduler chose among several nodes that Filter let through."""

    rig = placed()
    await rig.cycle()
    other = "n1" if rig.place("p") == "n2" else "n2"
    call = rig.bind("p", other)
    await settle()
    assert call.answer == ""
    assert rig.api.bound() == {"p": other}
    assert rig.place("p") == other


async def test_a_node_without_room_is_refused() -> None:
    rig = placed()
    await rig.cycle()
    planned = rig.place("p")
    rig.node("tiny", cpu=100)
    call = rig.bind("p", "tiny")
    await settle()
    assert call.answer == f"planned on {planned}, no room on tiny"
    assert rig.api.tries == []
    assert rig.place("p") == planned


async def test_a_pod_that_lost_its_place_is_planned_again_first() -> None:
    rig = placed()
    call = rig.bind("p", "n1")
    await settle()
    assert call.answer == "the place was given back; the pod is planned again"
    assert rig.api.tries == []


@pytest.mark.parametrize("when", ["sent", "looked at", "cancelled"])
async def test_a_call_that_breaks_off_leaves_its_pod_unbound(when: str) -> None:
    """Nobody foresaw why; what comes after must not be told that it is bound."""

    rig = Rig()
    rig.node("n1")
    rig.pod("p")
    await rig.cycle()
    failing = "bind" if when == "sent" else "read"
    rig.api.fails["bind"] = [CONFLICT] if when == "looked at" else []
    rig.api.fails[failing] += [RuntimeError("odd")]  # type: ignore[list-item]
    rig.api.slow = asyncio.Event() if when == "cancelled" else None
    call = rig.bind("p")
    await settle()
    call.task.cancel()
    with pytest.raises((RuntimeError, asyncio.CancelledError)):
        await call.task
    assert rig.member("p").stage is Stage.PLANNED
    rig.api.slow = None
    rig.api.fails.clear()
    again = rig.bind("p")
    await settle()
    assert again.answer == ""
    assert rig.api.bound() == {"p": "n1"}


async def test_a_bind_nobody_came_back_from_is_given_up_in_time() -> None:
    """Planned, and kube-scheduler never calls: the room is free after the time-out."""

    rig = placed(limits=Limits(planned_s=30.0))
    await rig.cycle()
    assert rig.has_reservations() == 1
    await advance(31)
    await rig.cycle()
    assert rig.has_reservations() == 0


# --- pods that are not known ----------------------------------------------------------------------


def foreign_pod(rig: Rig, *, scheduler: str, **fields: str) -> Call:
    """A Bind call for a pod that the watch has not shown."""
    pod = make_pod("x", scheduler=scheduler, **fields)
    rig.api.pods[pod.key] = pod
    return rig.bind("x", "n1")


async def test_a_pod_of_another_scheduler_is_bound_for_it_where_such_pods_are_sent() -> None:
    rig = placed(limits=Limits(binds_foreign=True))
    call = foreign_pod(rig, scheduler="default-scheduler")
    await settle()
    assert call.answer == ""
    assert rig.api.bound() == {"x": "n1"}


async def test_elsewhere_a_pod_of_another_scheduler_is_not_bound() -> None:
    rig = placed()
    call = foreign_pod(rig, scheduler="default-scheduler")
    await settle()
    assert "--bind-foreign-pods" in str(call.answer)
    assert rig.api.bound() == {}


async def test_a_pod_of_ours_that_the_watch_has_not_shown_waits() -> None:
    rig = placed()
    call = foreign_pod(rig, scheduler="volcano")
    await settle()
    assert call.answer == "pod is not planned yet"
    assert rig.api.bound() == {}


@pytest.mark.parametrize("uid", ["", "another"])
async def test_a_pod_that_does_not_exist_any_more_is_not_bound(uid: str) -> None:
    rig = placed()
    if uid:
        pod = make_pod("x", scheduler="other", uid=PodUid(uid))
        rig.api.pods[pod.key] = pod
    call = Call(rig, BindCall(PodUid("uid-x"), "default", "x", NodeName("n1")))
    await settle()
    assert call.answer == "pod does not exist any more"
    assert rig.api.bound() == {}


async def test_a_foreign_pod_that_cannot_be_looked_at_is_an_error() -> None:
    rig = placed()
    rig.api.fails["read"] = [FAILING]
    call = foreign_pod(rig, scheduler="other")
    await settle()
    assert call.answer == "500: internal error"


async def test_a_pod_made_anew_under_the_same_name_is_not_bound_for_the_old_one() -> None:
    rig = placed()
    await rig.cycle()
    old = rig.api.pods["default/p"]
    node = NodeName(rig.place("p"))
    rig.api.pods["default/p"] = replace(old, uid=PodUid("uid-new"))
    call = Call(rig, BindCall(old.uid, "default", "p", node))
    await settle()
    assert call.answer == "409: conflict"
