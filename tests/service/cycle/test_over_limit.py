"""Promises that a queue may not hold any more are given back before they are used."""

import asyncio
from typing import Any

from app.model.ids import NodeName, QueueName
from app.model.pod import QUEUE_ANNOTATION
from app.model.reason import Cause, Shortfall
from app.model.workload import GroupPhase
from app.service.limits import Limits
from app.telemetry import metrics
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import FAILING, Call, Rig, working
from tests.service.virtual_time import advance, settle

WHY = "its queue holds more than its limit"
TREE = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: capacity
    enableHierarchy: true
"""


def limit(rig: Rig, cpu: int | None, name: str = "small", **fields: Any) -> None:
    """The queue may hold so many cores; None: as many as there are."""
    capability = () if cpu is None else make_amounts(cpu=cpu * 1000)
    rig.queue(make_queue(name, capability=capability, **fields))


def gang(rig: Rig, name: str, size: int, *, pods: int | None = None, **fields: Any) -> list[str]:
    """A PodGroup in the queue ``small`` with pods of one core each; their names."""
    rig.group(name, minimum=size, **({"queue": QueueName("small")} | fields))
    names = [f"{name}-{number}" for number in range(size if pods is None else pods)]
    for each in names:
        rig.pod(each, group=name)
    return names


def running(rig: Rig, name: str, *, minimum: int, waiting: int, queue: str = "small") -> list[str]:
    """A gang of which one member runs; the names of the others, which wait."""
    rig.group(name, minimum=minimum, queue=QueueName(queue))
    rig.pod(f"{name}-0", group=name, node=NodeName("n1"), phase="Running")
    others = [f"{name}-{number}" for number in range(1, waiting + 1)]
    for each in others:
        rig.pod(each, group=name)
    return others


def run_alone(rig: Rig, *, queue: str) -> None:
    """A pod without a PodGroup that takes two cores of the queue of its annotation."""
    limit(rig, None, "wide")
    in_queue = {QUEUE_ANNOTATION: queue}
    shape = make_shape(cpu=2000)
    rig.pod("alone", annotations=in_queue, shape=shape, node=NodeName("n1"), phase="Running")


def bind_all(rig: Rig, names: list[str]) -> list[Call]:
    return [rig.bind(name) for name in names]


def place_all(rig: Rig, *names: str) -> list[bool]:
    return [bool(rig.place(name)) for name in names]


def small(cpu: int = 3, limits: Limits | None = None) -> Rig:
    """A large node, and the queue ``small``."""
    rig = Rig(limits)
    rig.node("n1", cpu=32_000)
    limit(rig, cpu)
    return rig


def released() -> float:
    return float(metrics.GANGS_RELEASED.labels("over-limit")._value.get())


async def held_gang(rig: Rig) -> list[Call]:
    """Three members of a gang of four hold at the barrier, room is kept for the fourth."""
    names = gang(rig, "g", 4, pods=3, min_resources=make_amounts(cpu=4000))
    await rig.cycle()
    calls = bind_all(rig, names)
    await settle()
    assert not any(call.done for call in calls)
    assert rig.has_reservations() == 4
    return calls


async def test_a_held_gang_is_given_back_when_its_queue_is_lowered_and_runs_when_it_is_raised() -> (
    None
):
    rig = small(4)
    calls = await held_gang(rig)
    before = released()
    limit(rig, 1)
    await rig.cycle()
    await settle()
    assert [call.answer for call in calls] == [WHY] * 3
    assert rig.has_reservations() == 0
    assert released() == before + 1
    rig.pod("g-3", group="g")
    await rig.cycle()
    refusal = rig.refusals[rig.key("g")]
    assert (refusal.cause, refusal.where) == (Cause.QUEUE_QUOTA, "small")
    assert refusal.shortfalls == (Shortfall("cpu", 4000, 1000, 1000),)
    assert not rig.api.bound()

    limit(rig, 4)
    await rig.cycle()
    bind_all(rig, ["g-0", "g-1", "g-2", "g-3"])
    await settle()
    assert len(rig.api.bound()) == 4


async def test_a_member_that_comes_after_that_finds_its_gang_given_back() -> None:
    """The cycle begins at once, where there was none just before."""

    rig = small(4)
    calls = await held_gang(rig)
    with working(rig):
        await advance(1.5)
        limit(rig, 1)
        rig.pod("g-3", group="g")
        await settle()
        last = rig.bind("g-3")
        await settle()
        assert [call.answer for call in calls] == [WHY] * 3
        assert last.answer == "the place was given back; the pod is planned again"
    assert not rig.api.bound()


async def test_a_gang_that_is_complete_before_the_next_cycle_goes() -> None:
    """As it would if its queue were lowered so much later."""

    rig = small(4)
    calls = await held_gang(rig)
    rig.pod("g-3", group="g")
    limit(rig, 1)
    calls.append(rig.bind("g-3"))
    await settle()
    await rig.cycle()
    assert [call.answer for call in calls] == [""] * 4


async def test_nothing_is_given_back_while_the_limit_is_still_enough() -> None:
    rig = small(8)
    await held_gang(rig)
    for cpu in (6, 4, None, 4):
        limit(rig, cpu)
        await rig.cycle()
        assert rig.has_reservations() == 4


async def test_nobody_looks_when_a_status_is_written_or_a_gang_comes_and_is_bound() -> None:
    rig = small(8)
    await rig.cycle()
    limit(rig, 8, allocated=make_amounts(cpu=4000))
    names = gang(rig, "g", 2)
    await rig.cycle()
    bind_all(rig, names)
    await settle()
    rig.show_bindings()
    assert not rig.cache.signals.overfull


async def test_room_for_members_that_do_not_exist_yet_is_given_back() -> None:
    rig = small()
    wants = make_amounts(cpu=3000)
    gang(rig, "g", 3, pods=0, min_resources=wants, phase=GroupPhase.PENDING)
    await rig.cycle()
    assert rig.has_reservations() == 3
    limit(rig, 2)
    await rig.cycle()
    assert rig.has_reservations() == 0
    await advance(2)
    await rig.cycle()
    assert rig.has_reservations() == 0, "it would be taken again and again"
    assert rig.refusals[rig.key("g")].cause is Cause.QUEUE_QUOTA
    limit(rig, 3)
    await rig.cycle()
    assert rig.has_reservations() == 3


async def test_the_latest_planned_goes_first_and_no_more_than_must() -> None:
    rig = small(6)
    for name in ("first", "second", "third"):
        gang(rig, name, 2)
        await rig.cycle()
        await advance(1)
    limit(rig, 5)
    await rig.cycle()
    assert place_all(rig, "first-0", "second-0", "third-0") == [True, True, False]
    limit(rig, 2)
    await rig.cycle()
    assert place_all(rig, "first-0", "second-0", "third-0") == [True, False, False]


async def test_pods_that_somebody_else_bound_push_out_what_is_only_planned() -> None:
    rig = small(3)
    names = gang(rig, "g", 2)
    await rig.cycle()
    gang(rig, "other", 0)
    rig.pod("other-0", group="other", node=NodeName("n1"), phase="Running")
    await rig.cycle()
    assert place_all(rig, *names) == [True, True]
    rig.pod("other-1", group="other", node=NodeName("n1"), phase="Running")
    await rig.cycle()
    assert place_all(rig, *names) == [False, False]


async def test_a_single_pod_that_moves_into_the_queue_pushes_out_what_is_only_planned() -> None:
    rig = small(3)
    run_alone(rig, queue="wide")
    names = gang(rig, "g", 2)
    await rig.cycle()
    await rig.cycle()
    assert place_all(rig, *names) == [True, True]
    run_alone(rig, queue="small")
    await rig.cycle()
    assert place_all(rig, *names) == [False, False]


async def test_a_queue_above_is_lowered() -> None:
    rig = small(8)
    assert rig.parts.configuration.load(TREE)
    limit(rig, 8, "top")
    limit(rig, None, parent=QueueName("top"))
    limit(rig, None, "other", parent=QueueName("top"))
    names = gang(rig, "g", 2)
    later = gang(rig, "later", 2, queue=QueueName("other"), created=1.0)
    await rig.cycle()
    limit(rig, 3, "top")
    await rig.cycle()
    assert place_all(rig, *names, *later) == [True, True, False, False]


async def test_limits_that_a_new_configuration_counts_apply_to_what_was_reserved() -> None:
    rig = small(1)
    without = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n'
    assert rig.parts.configuration.load(without)
    names = gang(rig, "g", 2)
    await rig.cycle()
    assert place_all(rig, *names) == [True, True]
    assert rig.parts.configuration.load(TREE)
    await rig.cycle()
    assert place_all(rig, *names) == [False, False]


async def test_what_a_queue_deserves_is_no_limit() -> None:
    """It shrinks when others come."""

    rig = small(32)
    names = gang(rig, "g", 24)
    await rig.cycle()
    gang(rig, "rival", 24, queue=QueueName("default"))
    rig.cache.signals.overfull = True
    await rig.cycle()
    assert all(place_all(rig, *names))


async def test_a_gang_whose_bindings_are_under_way_goes_on() -> None:
    rig = small()
    names = gang(rig, "g", 3)
    await rig.cycle()
    rig.api.slow = asyncio.Event()
    calls = bind_all(rig, names)
    await settle()
    limit(rig, 1)
    await rig.cycle()
    rig.api.slow.set()
    await settle()
    assert [call.answer for call in calls] == [""] * 3


async def test_the_rest_of_a_gang_that_is_bound_in_part_keeps_its_places() -> None:
    rig = small()
    rest = running(rig, "g", minimum=3, waiting=2)
    await rig.cycle()
    limit(rig, 1)
    await rig.cycle()
    assert place_all(rig, *rest) == [True, True]


async def test_members_beyond_the_minimum_of_a_gang_that_runs_go_one_by_one() -> None:
    rig = small(8)
    extras = running(rig, "g", minimum=1, waiting=4)
    await rig.cycle()
    before = released()
    limit(rig, 3)
    await rig.cycle()
    assert place_all(rig, *extras) == [True, True, False, False]
    assert released() == before, "the gang was not"


async def test_members_beyond_the_minimum_are_looked_at_again_when_that_is_there() -> None:
    """Before, nobody knows which of them will be the minimum."""

    rig = small(8)
    others = running(rig, "g", minimum=2, waiting=2)
    await rig.cycle()
    limit(rig, 2)
    await rig.cycle()
    assert place_all(rig, *others) == [True, True]
    rig.bind("g-1")
    await settle()
    rig.show_bindings()
    await rig.cycle()
    assert place_all(rig, "g-2") == [False]


async def test_a_queue_that_runs_too_much_is_not_looked_at_for_what_others_do() -> None:
    rig = small(3)
    for name in ("small", "default"):
        running(rig, name, minimum=2, waiting=1, queue=name)
    await rig.cycle()
    assert place_all(rig, "small-1", "default-1") == [True, True]
    limit(rig, 1)
    await rig.cycle()
    assert rig.cache.signals.overfull, "its rest is on its way"
    rig.bind("small-1")
    await settle()
    rig.show_bindings()
    await rig.cycle()
    assert not rig.cache.signals.overfull


async def test_a_gang_whose_bindings_all_failed_is_looked_at_again() -> None:
    rig = small(3, Limits(bind_patience_s=1.0))
    names = gang(rig, "g", 2)
    await rig.cycle()
    rig.api.fails["bind"] += [FAILING] * 100
    calls = bind_all(rig, names)
    await settle()
    limit(rig, 1)
    await rig.cycle()
    assert place_all(rig, *names) == [True, True]
    await advance(3)
    await settle()
    assert all(call.done and call.answer for call in calls)
    await rig.cycle()
    assert place_all(rig, *names) == [False, False]
