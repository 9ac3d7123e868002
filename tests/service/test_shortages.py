"""A node becomes short while Bindings to it are under way: no more of them stop than must."""

import asyncio
from collections.abc import Callable, Iterable

import pytest

from app.cache.gangs.members import Stage
from app.model.ids import NodeName
from app.model.reason import CLOSED, LOST_PLACE, NO_ROOM, NODE_GONE
from app.model.shape import PodShape
from app.service.limits import Limits
from app.service.ports import Reaction, WriteError
from tests.builders import make_amounts, make_shape
from tests.service.rig import FAILING, Call, Rig
from tests.service.virtual_time import advance, settle

LONG = 10.0
GPU = "example.com/gpu"
NO_ANSWER = WriteError(Reaction.RETRY, "no answer")


def take(rig: Rig, node: str, cpu: int) -> None:
    """Another scheduler's pod comes there."""
    rig.pod(f"x-{node}", scheduler="other", node=NodeName(node), shape=make_shape(cpu=cpu))


def shrink(rig: Rig, node: str, cpu: int, of: int) -> None:
    """The node has less by so much."""
    rig.node(node, cpu=of - cpu)


def fail_once(rig: Rig, names: Iterable[str]) -> None:
    for name in names:
        rig.api.fails[f"bind default/{name}"] = [FAILING]


async def call_all(rig: Rig, *names: str) -> list[Call]:
    calls = [rig.bind(name) for name in names]
    await settle()
    return calls


async def ends_well(rig: Rig, bound: Iterable[str]) -> None:
    await advance(LONG)
    assert set(rig.api.bound()) == set(bound)
    rig.show_bindings()
    assert {m.stage for m in rig.cache.members.values() if not m.pod.node} <= {
        Stage.WAITING,
        Stage.PLANNED,
    }
    assert (await rig.parts.audit()).drifts == ()
    for name in rig.cache.node_usage.nodes:
        assert (rig.cache.node_usage.idle(name) >= 0).all(), "no node has more than it can bear"


@pytest.mark.parametrize("how", ["smaller", "taken"])
async def test_places_beyond_the_minimum_fall_as_many_as_must(how: str) -> None:
    rig = Rig()
    rig.node("n", cpu=4000)
    names = rig.gang("g", size=4, minimum=2)
    await rig.cycle()
    fail_once(rig, names)
    await call_all(rig, *names)
    if how == "smaller":
        shrink(rig, "n", 1000, of=4000)
    else:
        take(rig, "n", 1000)
    await advance(LONG)
    assert len(rig.api.bound()) == 3


async def test_one_gang_loses_its_places_and_the_other_is_bound_whole() -> None:
    rig = Rig()
    rig.node("n", cpu=4000)
    first = rig.gang("a", size=2)
    await rig.cycle()
    fail_once(rig, first)
    await call_all(rig, *first)
    await advance(0.01)
    second = rig.gang("b", size=2)
    await rig.cycle()
    fail_once(rig, second)
    await call_all(rig, *second)
    take(rig, "n", 1000)
    await ends_well(rig, first)


async def test_a_single_pod_loses_its_place_to_a_gang_that_was_begun() -> None:
    rig = Rig()
    rig.node("n", cpu=4000)
    names = rig.gang("g", size=3)
    rig.pod("alone")
    await rig.cycle()
    fail_once(rig, ["alone", *names[1:]])
    await call_all(rig, *names, "alone")
    assert set(rig.api.bound()) <= {"g-0", "alone"}
    take(rig, "n", 1000)
    await ends_well(rig, names)


async def test_who_does_not_ask_for_what_is_short_goes_on() -> None:
    rig = Rig()
    rig.node("n", cpu=4000, extra={GPU: 2})
    plain = rig.gang("a", size=2)
    shape = PodShape(requests=make_amounts(cpu=1000, pods=1, **{GPU: 1}))
    special = rig.gang("b", size=2, shape=shape)
    await rig.cycle()
    fail_once(rig, [*plain, *special])
    await call_all(rig, *plain, *special)
    rig.node("n", cpu=4000, extra={GPU: 1})
    await ends_well(rig, plain)


@pytest.mark.parametrize("landed", ["p", "q"])
async def test_a_binding_that_arrived_all_the_same_takes_the_room_of_another(landed: str) -> None:
    """Both answers are lost, and one of the two was bound."""

    rig = Rig()
    rig.node("n", cpu=2000)
    for name in "pq":
        rig.pod(name)
    await rig.cycle()
    for name in "pq":
        rig.api.fails[f"bind default/{name}"] = [NO_ANSWER]
    calls = await call_all(rig, "p", "q")
    rig.land(landed)
    take(rig, "n", 1000)
    await advance(LONG)
    assert [call.answer == "" for call in calls] == [landed == "p", landed == "q"]
    assert rig.api.bound() == {}, "nobody is bound besides"


async def test_one_that_was_sent_goes_before_one_whose_turn_has_not_come() -> None:
    rig = Rig(Limits(bindings_in_flight=1))
    rig.node("n", cpu=2000)
    for name in "pq":
        rig.pod(name)
    await rig.cycle()
    rig.api.slow = asyncio.Event()
    await call_all(rig, "q", "p")
    take(rig, "n", 1000)
    rig.api.slow.set()
    await ends_well(rig, {"q"})


LOSSES: dict[str, tuple[Callable[[Rig], object], str]] = {
    "taken": (lambda rig: take(rig, "n", 1000), NO_ROOM),
    "smaller": (lambda rig: shrink(rig, "n", 500, of=1000), NO_ROOM),
    "cordoned": (lambda rig: rig.node("n", cpu=1000, unschedulable=True), CLOSED),
    "gone": (lambda rig: rig.unsee("nodes", rig.cache.node_usage.nodes[NodeName("n")]), NODE_GONE),
}


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize(("lose", "why"), LOSSES.values(), ids=LOSSES.keys())
async def test_a_pod_whose_binding_stops_for_its_place_is_told_what_that_lacks(
    lose: Callable[[Rig], object], why: str, sent: bool
) -> None:
    """So that one that is pinned is made anew at once, not when it was tried once more."""

    rig = Rig(Limits(bindings_in_flight=1, binds_foreign=True))
    rig.node("n", cpu=1000)
    rig.node("busy")
    rig.pod("first", scheduler="other")
    rig.pod("p", pinned=NodeName("n"))
    await rig.cycle()
    if sent:
        fail_once(rig, "p")
    else:
        rig.api.slow = asyncio.Event()
        rig.bind("first", "busy")
        await settle()
    [call] = await call_all(rig, "p")
    lose(rig)
    if rig.api.slow is not None:
        rig.api.slow.set()
    await advance(LONG)
    assert call.answer == why


async def test_a_pod_that_stops_only_with_its_gang_is_not_told_so() -> None:
    """It has its room, and may stay pinned to it."""

    rig = Rig()
    rig.node("n0", "n1", cpu=1000)
    names = rig.gang("g", size=2)
    await rig.cycle()
    fail_once(rig, names)
    calls = await call_all(rig, *names)
    rig.node(rig.place("g-0"), cpu=500)
    await advance(LONG)
    assert calls[0].answer == NO_ROOM
    assert calls[1].answer not in LOST_PLACE
    assert rig.member("g-1").stage is Stage.PLANNED
