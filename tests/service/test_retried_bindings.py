"""A gang changes while the API server fails: what its Bindings come to when it answers again.

Nobody is bound yet, or somebody is; all members come to the same decision, though they ask at
different moments.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.cache.gangs.members import Stage
from app.model.ids import NodeName, QueueName
from app.model.pod import GROUP_ANNOTATION, TASK_SPEC
from app.model.workload import GroupPhase
from app.service.limits import Limits
from app.service.ports import Reaction, WriteError
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import FAILING, REFUSED, Call, Rig
from tests.service.virtual_time import advance, settle

LONG = 10.0
NO_ANSWER = WriteError(Reaction.RETRY, "no answer")


def later(seconds: float) -> WriteError:
    """Too many requests: come back then."""
    return WriteError(Reaction.RETRY, "429", retry_after_s=seconds)


async def sent(
    *, minimum: int | None = None, limits: Limits | None = None, **errors: list[WriteError]
) -> tuple[Rig, list[Call]]:
    """A gang ``g``, each member on a node of its own; these are the first answers to Bindings."""
    size = len(errors)
    rig = Rig(limits)
    rig.node(*(f"n{i}" for i in range(size)), cpu=1000)
    names = rig.gang("g", size=size, minimum=minimum)
    await rig.cycle()
    for name, answers in zip(names, errors.values(), strict=True):
        rig.api.fails[f"bind default/{name}"] = answers
    calls = [rig.bind(name) for name in names]
    await settle()
    return rig, calls


def drop_group(rig: Rig) -> None:
    rig.unsee("podgroups", rig.cache.groups[rig.key("g")].pod_group)


def make_group_anew(rig: Rig, minimum: int = 4) -> None:
    drop_group(rig)
    rig.group("g", minimum=minimum, uid="second")


def raise_minimum(rig: Rig) -> None:
    rig.group("g", minimum=4)


def drop_node(rig: Rig) -> None:
    rig.unsee("nodes", rig.cache.node_usage.nodes[NodeName(rig.place("g-0"))])


def cordon(rig: Rig) -> None:
    rig.node(rig.place("g-0"), cpu=1000, unschedulable=True)


def take_room(rig: Rig) -> None:
    node = NodeName(rig.place("g-0"))
    rig.pod("x", scheduler="other", node=node, shape=make_shape(cpu=1000))


def move(rig: Rig) -> None:
    rig.store(replace(rig.api.pods["default/g-0"], annotations={GROUP_ANNOTATION: "b"}))


def move_to_a_full_queue(rig: Rig, **fields: Any) -> None:
    rig.queue(make_queue("full", capability=make_amounts(cpu=1)))
    rig.group("g", queue=QueueName("full"), **fields)


CHANGES: dict[str, Callable[[Rig], object]] = {
    "PodGroup deleted": drop_group,
    "PodGroup made anew with another minimum": make_group_anew,
    "PodGroup made anew as it was": lambda rig: make_group_anew(rig, 2),
    "minimum raised": raise_minimum,
    "a pod deleted": lambda rig: rig.delete("g-0"),
    "a pod moved": move,
    "a node gone": drop_node,
    "a node cordoned": cordon,
    "its room taken": take_room,
}
OF_ALL = [name for name in CHANGES if "PodGroup" in name or "minimum" in name]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_a_gang_of_which_nobody_is_bound_stops_when_it_is_not_whole_any_more(
    change: Callable[[Rig], object],
) -> None:
    rig, calls = await sent(first=[FAILING], second=[FAILING])
    change(rig)
    await advance(LONG)
    assert rig.api.bound() == {}
    assert all(call.answer for call in calls)
    stages = {member.stage for member in rig.cache.members.values() if not member.pod.node}
    assert stages <= {Stage.PLANNED, Stage.WAITING}
    assert (await rig.parts.audit()).drifts == ()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("hasty", [0, 1])
async def test_all_come_to_that_whoever_asks_first(
    change: Callable[[Rig], object], hasty: int
) -> None:
    first, second = (later(0.1 if number == hasty else 0.5) for number in range(2))
    rig, _ = await sent(first=[first], second=[second])
    change(rig)
    await advance(LONG)
    assert rig.api.bound() == {}


async def test_a_gang_that_is_as_it_was_goes_on() -> None:
    rig, calls = await sent(first=[FAILING] * 5, second=[FAILING] * 3)
    await advance(LONG)
    assert [call.answer for call in calls] == ["", ""]
    assert set(rig.api.bound()) == {"g-0", "g-1"}
    assert not [verb for verb, _ in rig.api.tries if verb == "read"], "nothing is looked up"


@pytest.mark.parametrize("change", [CHANGES[name] for name in OF_ALL[1:]], ids=OF_ALL[1:])
async def test_a_gang_that_was_begun_is_finished_whatever_it_has_become(
    change: Callable[[Rig], object],
) -> None:
    """The watch has not shown yet that one is bound."""

    rig, calls = await sent(first=[FAILING], second=[])
    assert len(rig.api.bound()) == 1
    change(rig)
    await advance(LONG)
    assert [call.answer for call in calls] == ["", ""]
    assert set(rig.api.bound()) == {"g-0", "g-1"}


async def test_one_that_was_bound_and_failed_since_has_begun_its_gang_too() -> None:
    """Had the API server been well, all of them would be bound."""

    rig, calls = await sent(first=[], second=[FAILING] * 4)
    await advance(0.1)
    rig.store(replace(rig.api.pods["default/g-0"], phase="Failed"))
    await advance(LONG)
    assert calls[1].answer == ""
    assert set(rig.api.bound()) == {"g-0", "g-1"}


async def test_one_that_failed_before_has_not() -> None:
    """The gang was let go without it."""

    rig = Rig()
    rig.node("n0", "n1", cpu=1000)
    rig.group("g", minimum=2)
    old = rig.pod("g-old", group="g", node=NodeName("n0"), phase="Running")
    rig.store(replace(old, phase="Failed"))
    await advance(1)
    for name in ("g-0", "g-1"):
        rig.pod(name, group="g")
        rig.api.fails[f"bind default/{name}"] = [FAILING]
    await rig.cycle()
    calls = [rig.bind(name) for name in ("g-0", "g-1")]
    await settle()
    drop_node(rig)
    await advance(LONG)
    assert rig.api.bound() == {}
    assert all(call.answer for call in calls)


async def test_nobody_is_bound_for_a_group_that_is_gone() -> None:
    rig, calls = await sent(first=[FAILING], second=[])
    drop_group(rig)
    await advance(LONG)
    assert sum(call.answer == "" for call in calls) == len(rig.api.bound()) == 1


@pytest.mark.parametrize("change", [drop_node, cordon, take_room])
async def test_no_member_of_a_begun_gang_goes_where_it_cannot(
    change: Callable[[Rig], object],
) -> None:
    rig, _ = await sent(first=[FAILING], second=[])
    assert set(rig.api.bound()) == {"g-1"}
    change(rig)
    await advance(LONG)
    assert set(rig.api.bound()) == {"g-1"}
    assert rig.member("g-0").stage is Stage.WAITING, "and is planned first"


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_binding_whose_answer_was_lost_decides_for_all(arrived: bool) -> None:
    """g-1 asks first; whether g-0 is bound is found out by its own call, and later."""

    rig, calls = await sent(first=[later(0.5)], second=[FAILING])
    if arrived:
        pod = rig.api.pods["default/g-0"]
        rig.api.pods["default/g-0"] = replace(pod, node=NodeName(rig.place("g-0")))
    raise_minimum(rig)
    await advance(0.4)
    assert not calls[1].done
    await advance(LONG)
    assert [call.answer == "" for call in calls] == [arrived] * 2
    assert set(rig.api.bound()) == ({"g-1"} if arrived else set())


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_binding_that_is_under_way_decides_for_all(arrives: bool) -> None:
    rig, calls = await sent(first=[FAILING], second=[later(0.5)])
    rig.api.slow = asyncio.Event()
    await advance(0.2)  # g-0's second try has left
    raise_minimum(rig)
    await advance(0.5)
    assert not calls[1].done
    if not arrives:
        rig.api.pods.pop("default/g-0")
    rig.api.slow.set()
    await advance(LONG)
    assert [call.answer == "" for call in calls] == [arrives] * 2
    assert set(rig.api.bound()) == ({"g-0", "g-1"} if arrives else set())


async def test_a_gang_that_becomes_whole_again_while_some_are_in_doubt_goes_on() -> None:
    rig, calls = await sent(first=[later(2.0)], second=[FAILING])
    raise_minimum(rig)
    await advance(1)
    rig.group("g", minimum=2)
    await advance(LONG)
    assert [call.answer for call in calls] == ["", ""]


async def test_a_member_that_is_in_doubt_does_not_outstay_its_time_or_its_client() -> None:
    rig, calls = await sent(first=[later(5.9)], second=[NO_ANSWER], third=[FAILING])
    raise_minimum(rig)
    rig.api.fails["read"] = [FAILING] * 100
    await advance(1)
    calls[1].hang_up()
    await settle()
    assert calls[1].answer == "client is gone"
    assert not calls[2].done
    await advance(5)
    assert all(call.answer for call in calls)
    assert rig.api.bound() == {}


async def test_one_whose_time_is_up_takes_those_along_that_counted_on_it() -> None:
    rig, calls = await sent(first=[later(7.0)], second=[FAILING])
    assert calls[0].done
    await advance(LONG)
    assert calls[1].answer
    assert rig.api.bound() == {}


async def test_members_above_the_minimum_stop_when_their_place_is_void() -> None:
    """The minimum is on nodes: nothing has to be finished."""

    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=1)
    rig.pod("g-0", group="g", node=NodeName("n1"), phase="Running")
    rig.pod("g-1", group="g")
    await rig.cycle()
    rig.api.fails["bind"] = [FAILING]
    call = rig.bind("g-1")
    await settle()
    make_group_anew(rig, 1)
    await advance(LONG)
    assert call.answer.startswith("500: internal error; ")
    assert rig.api.bound() == {}


@pytest.mark.parametrize("shown", [False, True])
async def test_those_that_the_watch_has_not_shown_yet_make_up_the_minimum_too(shown: bool) -> None:
    """Else a queue without room would get one more than it may have, while the watch is late."""

    rig, calls = await sent(first=[], second=[], third=[FAILING], minimum=2)
    if shown:
        rig.show_bindings()
    move_to_a_full_queue(rig, minimum=2)
    await advance(LONG)
    assert calls[2].answer.startswith("500: internal error; ")
    assert set(rig.api.bound()) == {"g-0", "g-1"}


@pytest.mark.parametrize(("answers", "bound"), [("master", {"g-0", "g-1"}), ("worker", {"g-0"})])
async def test_a_role_whose_minimum_is_bound_does_not_make_up_for_another(
    answers: str, bound: set[str]
) -> None:
    """The first member is bound; who is tried again is the master it lacks, or one too many."""

    rig = Rig()
    rig.node("n0", "n1", cpu=1000)
    rig.group("g", minimum=1, role_minimum={"master": 1})
    first = "worker" if answers == "master" else "master"
    for name, role in (("g-0", first), ("g-1", answers)):
        rig.pod(name, group="g", annotations={TASK_SPEC: role})
    await rig.cycle()
    rig.api.fails["bind default/g-1"] = [FAILING]
    for name in ("g-0", "g-1"):
        rig.bind(name)
    await settle()
    assert set(rig.api.bound()) == {"g-0"}
    move_to_a_full_queue(rig, minimum=1, role_minimum={"master": 1})
    await advance(LONG)
    assert set(rig.api.bound()) == bound


async def test_a_single_pod_goes_on_as_long_as_its_node_takes_it() -> None:
    for cordoned in (False, True):
        rig = Rig()
        rig.node("n1")
        rig.pod("p")
        await rig.cycle()
        rig.api.fails["bind"] = [FAILING]
        rig.bind("p")
        await settle()
        rig.node("n1", unschedulable=cordoned)
        await advance(LONG)
        assert bool(rig.api.bound()) is not cordoned


async def test_a_single_pod_goes_on_when_it_is_given_a_pod_group_meanwhile() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("alone")
    rig.api.fails["bind"] = [FAILING]
    await rig.cycle()
    call = rig.bind("alone")
    await settle()
    rig.group("made", minimum=1, phase=GroupPhase.PENDING)
    rig.pod("alone", group="made")
    await advance(1)
    assert call.answer == ""
    assert rig.api.bound() == {"alone": "n1"}


async def test_a_pod_of_others_is_tried_again_whatever_happens_to_ours() -> None:
    rig, _ = await sent(limits=Limits(binds_foreign=True), first=[], second=[])
    rig.pod("x", scheduler="other")
    rig.api.fails["bind"] = [FAILING]
    call = rig.bind("x", "n0")
    await settle()
    drop_group(rig)
    await advance(LONG)
    assert call.answer == ""


async def test_a_second_call_does_not_send_a_binding_that_an_earlier_one_is_trying() -> None:
    rig, calls = await sent(first=[FAILING], second=[FAILING])
    again = rig.bind("g-0")
    await settle()
    assert again.answer == "its Binding is under way for an earlier call"
    await advance(LONG)
    assert [call.answer for call in calls] == ["", ""]


async def test_one_that_is_refused_for_good_leaves_those_that_were_to_be_bound_with_it() -> None:
    """They are tried again only if somebody is bound already; then it comes back alone."""

    rig, calls = await sent(first=[REFUSED], second=[FAILING])
    await advance(LONG)
    assert all(call.answer for call in calls)
    assert rig.api.bound() == {}
