"""What a cycle decides, and what of a plan takes effect."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.ids import GroupKey, NodeName, QueueName
from app.model.job import JobTemplate, Template
from app.model.plan import Loan
from app.model.reason import Cause
from app.model.shape import PodShape
from app.model.workload import GroupPhase
from app.service.calls.filtering import Chosen
from app.service.limits import Limits
from app.telemetry import metrics
from tests.builders import make_amounts, make_node, make_queue, make_shape
from tests.scale import examples
from tests.service.rig import Rig

TREE = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
    enableHierarchy: true
"""

ALWAYS_YIELD = Limits(slice_s=-1.0)
"""Virtual time does not pass while a cycle computes: give the loop a turn at every step."""


async def test_refusals_are_counted_by_cause_and_forgotten_when_nobody_waits() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=1, queue=QueueName("missing"), phase=GroupPhase.PENDING)
    rig.pod("g-0", group="g")
    gauge = metrics.GROUPS_REFUSED.labels(Cause.QUEUE_MISSING.value)
    await rig.cycle()
    assert gauge._value.get() == 1
    rig.delete("g-0")
    rig.unsee("podgroups", rig.cache.groups[rig.key("g")].pod_group)
    await rig.cycle()
    assert gauge._value.get() == 0
    assert rig.refusals == {}


async def during_a_cycle(rig: Rig, happens: Callable[[], object]) -> None:
    """Let something happen while the cycle plans on its snapshot."""
    cycle = asyncio.create_task(rig.cycle())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not cycle.done()
    happens()
    await cycle


async def test_no_room_is_kept_for_a_member_that_gets_its_node_meanwhile() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1")
    rig.node("n2")
    rig.group("g", minimum=1, min_resources=make_amounts(cpu=1000), phase=GroupPhase.PENDING)
    await during_a_cycle(rig, lambda: rig.pod("p", group="g", node=NodeName("n1")))
    assert rig.has_reservations() == 0


@pytest.mark.parametrize(("owner", "kept"), [("ReplicaSet", 1), ("Pod", 0)])
async def test_the_group_that_a_plain_pod_owns_waits_for_nobody_else(owner: str, kept: int) -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=1, min_resources=make_amounts(cpu=1000), owner_kind=owner)
    await rig.cycle()
    assert rig.has_reservations() == kept


async def test_a_plain_pod_does_not_wait_for_what_its_own_group_asks_for() -> None:
    """The PodGroup is there, and let in; that the pod is its member the watch has not shown yet."""

    rig = Rig()
    rig.node("n1", cpu=4000)
    rig.pod("other", shape=make_shape(cpu=2000), node=NodeName("n1"))
    rig.group("g", minimum=1, min_resources=make_amounts(cpu=2000), owner_kind="Pod")
    rig.pod("p", shape=make_shape(cpu=2000))
    await rig.cycle()
    assert rig.place("p") == "n1"


async def test_the_groups_of_plain_pods_are_not_all_admitted_before_their_pods_are_told() -> None:
    """An empty one claims nothing, and there is room, stretched, for two only."""

    rig = Rig()
    rig.node("n1", cpu=2000)
    for name in "abc":
        rig.group(
            name,
            minimum=1,
            min_resources=make_amounts(cpu=1000),
            owner_kind="Pod",
            phase=GroupPhase.PENDING,
        )
    await rig.cycle()
    for name in "abc":
        rig.pod(f"pod-{name}", group=name, shape=make_shape(cpu=1000))
    await rig.cycle()
    phases = [rig.cache.groups[rig.key(name)].phase for name in "abc"]
    assert phases == [GroupPhase.INQUEUE, GroupPhase.INQUEUE, GroupPhase.PENDING]
    assert rig.refusals[rig.key("c")].cause is Cause.CLUSTER_OVERUSED


async def test_a_node_that_goes_away_meanwhile_is_not_reserved() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1")
    names = rig.gang("g", size=3)
    await during_a_cycle(rig, lambda: rig.unsee("nodes", make_node("n1")))
    assert rig.has_reservations() == 0
    assert rig.planning.log.stale == 1
    rig.node("n2")
    await rig.cycle()
    assert {rig.place(name) for name in names} == {"n2"}


async def test_a_gang_that_lost_a_member_meanwhile_is_planned_again_at_once() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1")
    names = rig.gang("g", size=3, minimum=2)
    await during_a_cycle(rig, lambda: rig.delete(names[0]))
    assert rig.cache.signals.dirty
    await rig.cycle()
    assert rig.place(names[1]) == rig.place(names[2]) == "n1"


async def test_room_that_is_taken_meanwhile_is_not_reserved_twice() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1")
    rig.gang("g", size=3)

    def take() -> None:
        rig.pod("x", scheduler="other", node=NodeName("n1"), shape=make_shape(cpu=6000))

    await during_a_cycle(rig, take)
    assert rig.has_reservations() == 0
    await rig.cycle()
    assert rig.has_reservations() == 0
    assert (rig.cache.node_usage.idle(NodeName("n1")) >= 0).all()


async def test_less_of_the_cluster_is_left_when_pods_meanwhile_go_from_an_unready_node() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1", cpu=4000)
    rig.node("away", cpu=4000, ready=False)
    shape = make_shape(cpu=4000)
    rig.pod("theirs", scheduler="other", node=NodeName("away"), shape=shape)
    rig.queue(make_queue("q", guarantee=make_amounts(cpu=4000)))
    rig.gang("g", size=3)
    await during_a_cycle(rig, lambda: rig.delete("theirs"))
    assert rig.has_reservations() == 0, "all there is now is guaranteed to others"
    await rig.cycle()
    assert rig.has_reservations() == 0


async def test_a_gang_planned_on_demand_meanwhile_keeps_its_place_and_the_queue_its_limit() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1")
    rig.queue(make_queue("q", capability=make_amounts(cpu=3000)))
    for name in ("planned", "asked"):
        rig.group(name, minimum=2, queue=QueueName("q"))
        for i in range(2):
            rig.pod(f"{name}-{i}", group=name)

    def ask() -> None:
        assert rig.filter("asked-0") == Chosen(NodeName("n1"))

    await during_a_cycle(rig, ask)
    assert rig.place("asked-0") == rig.place("asked-1") == "n1"
    assert rig.has_reservations() == 2, "both would be over the queue's limit"
    await rig.cycle()
    assert rig.has_reservations() == 2


async def test_a_job_that_asks_for_what_no_node_has_keeps_nobody_else_from_being_planned() -> None:
    rig = Rig()
    rig.node("n1")
    gpu = PodShape(requests=make_amounts(cpu=1000, pods=1, **{"nvidia.com/gpu": 1}))
    rig.see("jobs", JobTemplate("uid-job", "default", "job", {"worker": Template(gpu, {})}))
    rig.group("job", minimum=2, phase=GroupPhase.PENDING, owner_uid="uid-job")
    others = rig.gang("others", size=2)
    await rig.cycle()
    assert {rig.place(name) for name in others} == {"n1"}
    (lacks,) = rig.refusals[rig.key("job")].shortfalls
    assert (lacks.resource, lacks.asked, lacks.free) == ("nvidia.com/gpu", 2, 0)
    rig.pod("alone")
    assert rig.filter("alone") == Chosen(NodeName("n1"))


async def test_what_a_cycle_placed_stands_when_the_queue_can_hold_it_besides_what_was_asked() -> (
    None
):
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1", cpu=20_000)
    rig.queue(make_queue("q", capability=make_amounts(cpu=4000)))
    for name in ("planned", "asked"):
        rig.group(name, minimum=2, queue=QueueName("q"))
        for i in range(2):
            rig.pod(f"{name}-{i}", group=name)
    await during_a_cycle(rig, lambda: rig.filter("asked-0"))
    assert rig.has_reservations() == 4
    assert not rig.cache.signals.dirty, "there is nothing to plan again"
    assert rig.refusals == {}


async def test_queues_below_one_limit_do_not_exceed_it_together() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.parts.configuration.load(TREE)
    rig.node("n1", cpu=20_000)
    rig.queue(make_queue("top", capability=make_amounts(cpu=3000)))
    for name in ("first", "second"):
        rig.queue(make_queue(name, parent=QueueName("top")))
        rig.group(name, minimum=2, queue=QueueName(name))
        for i in range(2):
            rig.pod(f"{name}-{i}", group=name)
    await during_a_cycle(rig, lambda: rig.filter("second-0"))
    assert rig.place("second-0") == rig.place("second-1") == "n1"
    assert rig.has_reservations() == 2, "both would be over the limit of the queue above"
    await rig.cycle()
    assert rig.has_reservations() == 2
    assert rig.refusals[rig.key("first")].cause is Cause.QUEUE_QUOTA


@examples(60)
@given(st.data())
async def test_no_interleaving_reserves_more_than_there_is(data: st.DataObject) -> None:
    """Cycles, Filter calls and new room in any order: no node and no queue over its limit."""
    steps = data.draw(
        st.lists(st.tuples(st.sampled_from("fcnx"), st.integers(0, 5)), min_size=3, max_size=25)
    )

    rig = Rig(ALWAYS_YIELD)
    rig.node("n1", "n2", cpu=3000)
    rig.queue(make_queue("q", capability=make_amounts(cpu=4000)))
    for number in range(6):
        rig.group(f"g{number}", minimum=2, queue=QueueName("q" if number % 2 else "default"))
        for i in range(2):
            rig.pod(f"g{number}-{i}", group=f"g{number}")
    cycles: list[asyncio.Task[None]] = []
    for step, (kind, number) in enumerate(steps):
        if kind == "f":
            rig.filter(f"g{number}-0")
        elif kind == "c" and all(cycle.done() for cycle in cycles):
            cycles.append(asyncio.create_task(rig.cycle()))
        elif kind == "x":
            rig.node(f"new-{step}", cpu=1000 * number)
        await asyncio.sleep(0)
        limited = rig.cache.registry.usage()
        for name in ("n1", "n2"):
            assert (rig.cache.node_usage.idle(NodeName(name)) >= 0).all()
        assert limited[QueueName("q")].allocated[0] <= 4000
        for group in rig.cache.groups.values():
            assert len(group.waiting) in (0, 2), "whole or not at all"
        await asyncio.sleep(0)
    await asyncio.gather(*cycles)


async def test_a_gang_whose_loan_is_over_as_nobody_waits_any_more_is_told_of() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=1, node=NodeName("n1"), phase="Running")
    await rig.cycle()
    told: list[set[GroupKey]] = []
    rig.planning.cycle.after.append(lambda changed: told.append(set(changed)))
    lent = rig.planning.last_plan
    lent.loans = {rig.key("g"): Loan(QueueName("root"), rig.cache.node_usage.vector(()))}
    rig.cache.signals.dirty = True
    await rig.cycle()
    assert (told, lent.loans) == ([{rig.key("g")}], {})
