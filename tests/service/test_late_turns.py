"""A gang changes after the barrier let it go, while its Bindings wait for a connection."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.cache.gangs.members import Stage
from app.model.ids import NodeName
from app.service.limits import Limits
from tests.builders import make_shape
from tests.service.rig import FAILING, Call, Rig
from tests.service.virtual_time import advance, settle

LONG = 10.0


async def let_go(*, behind: bool, minimum: int = 3) -> tuple[Rig, dict[str, Call]]:
    """A gang ``g``, each member on a node of its own; there is one connection.

    A member has it, or where all are ``behind`` it, another pod.
    """
    rig = Rig(Limits(bindings_in_flight=1))
    rig.node("n0", "n1", "n2", cpu=1000)
    names = rig.gang("g", size=3, minimum=minimum)
    await rig.cycle()
    rig.api.slow = asyncio.Event()
    if behind:
        rig.node("another", cpu=1000)
        rig.pod("busy")
        await rig.cycle()
        rig.bind("busy")
        await settle()
    calls = {name: rig.bind(name) for name in names}
    await settle()
    return rig, calls


async def answer(rig: Rig) -> None:
    """The API server goes on."""
    assert rig.api.slow is not None
    rig.api.slow.set()
    await advance(LONG)


def take_room(rig: Rig, name: str) -> None:
    """Another scheduler has bound a pod where the member was to go."""
    node = NodeName(rig.place(name))
    rig.pod("x", scheduler="other", node=node, shape=make_shape(cpu=1000))


def cordon(rig: Rig, name: str) -> None:
    rig.node(rig.place(name), cpu=1000, unschedulable=True)


CHANGES = {"room taken": take_room, "node cordoned": cordon}
changes = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())


@changes
async def test_nobody_is_bound_when_one_has_lost_its_place(
    change: Callable[[Rig, str], None],
) -> None:
    rig, calls = await let_go(behind=True)
    change(rig, "g-1")
    await answer(rig)
    assert set(rig.api.bound()) == {"busy"}
    assert all(call.answer for call in calls.values())
    assert rig.member("g-1").stage is Stage.WAITING
    assert (await rig.parts.audit()).drifts == ()


@changes
async def test_of_a_begun_gang_the_others_go_on(change: Callable[[Rig, str], None]) -> None:
    rig, calls = await let_go(behind=False)
    [(_, first)] = rig.api.tries
    unsent = next(name for name in calls if not first.endswith(name))
    change(rig, unsent)
    await answer(rig)
    assert set(rig.api.bound()) == set(calls) - {unsent}
    assert rig.member(unsent).stage is Stage.WAITING, "and is planned first"


async def test_members_above_the_minimum_do_not_wait_for_one_that_has_lost_its_place() -> None:
    rig, calls = await let_go(behind=True, minimum=1)
    take_room(rig, "g-1")
    await answer(rig)
    assert set(rig.api.bound()) == {"busy", *calls} - {"g-1"}


async def test_one_that_fails_at_once_keeps_nobody() -> None:
    """It is bound and has ended before the next one's turn comes."""

    rig, calls = await let_go(behind=False)
    [(_, first)] = rig.api.tries
    pod = rig.api.pods[first]
    rig.store(replace(pod, node=NodeName(rig.place(pod.name)), phase="Failed"))
    await answer(rig)
    assert [call.answer for call in calls.values()] == ["", "", ""]


MEANWHILE = {
    "a member gone": lambda rig: rig.delete("g-1"),
    "minimum raised": lambda rig: rig.group("g", minimum=4),
}


@pytest.mark.parametrize("change", MEANWHILE.values(), ids=MEANWHILE.keys())
async def test_nobody_is_sent_again_for_a_gang_that_fell_apart_meanwhile(
    change: Callable[[Rig], object],
) -> None:
    """It stood when the pause after the first try was over, and then there was no connection."""

    rig = Rig(Limits(bindings_in_flight=1, binds_foreign=True))
    rig.node("n0", "n1", "n2", "another", cpu=1000)
    names = rig.gang("g", size=3)
    rig.pod("busy", scheduler="other")
    await rig.cycle()
    rig.api.fails["bind"] = [FAILING] * 3
    calls = [rig.bind(name) for name in names]
    await settle()
    rig.api.slow = asyncio.Event()
    rig.bind("busy", "another")
    await advance(1)
    change(rig)
    await answer(rig)
    assert set(rig.api.bound()) == {"busy"}
    assert all(call.answer for call in calls)


async def test_a_gang_that_is_as_it_was_is_bound() -> None:
    rig, calls = await let_go(behind=True)
    await answer(rig)
    assert set(rig.api.bound()) == {"busy", *calls}
    assert not [verb for verb, _ in rig.api.tries if verb == "read"], "nothing is looked up"
