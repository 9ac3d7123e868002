"""Groups that no end of other pods helps: out of planning, and still explained and counted."""

import pytest

from app.model.ids import DEFAULT_QUEUE, NodeName, QueueName
from app.model.job import JobTemplate, Template
from app.model.pod import QUEUE_GATE
from app.model.reason import Cause, Never
from app.model.workload import GroupPhase
from app.service.cycle.leadership import take_over
from app.telemetry import metrics
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance

SMALL = QueueName("small")
MANY = 50


def node_and_queue() -> Rig:
    """Two nodes of 4 cores, and a queue that may hold both."""
    rig = Rig()
    rig.node("n1", "n2", cpu=4000)
    rig.queue(make_queue("small", capability=make_amounts(cpu=8000)))
    return rig


def ask(rig: Rig, name: str, cpu: int, **fields: object) -> None:
    """A group of one pod, not let in yet."""
    needs = make_amounts(cpu=cpu)
    group = {"phase": GroupPhase.PENDING, "min_resources": needs, "queue": SMALL}
    rig.group(name, minimum=1, **(group | fields))
    rig.pod(name, group=name, shape=make_shape(cpu=cpu))


def counted(cause: Cause) -> float:
    return float(metrics.GROUPS_REFUSED.labels(cause.value)._value.get())


async def test_what_fits_no_node_leaves_its_queue_to_others_and_keeps_its_reason() -> None:
    rig = node_and_queue()
    ask(rig, "big", 5000)
    with working(rig):
        await advance(1)
        ask(rig, "fits", 4000)
        await advance(1)
        assert (rig.place("fits"), rig.place("big")) == ("n1", "")
        assert rig.cache.groups[rig.key("big")].phase is GroupPhase.INQUEUE
        assert rig.refusals[rig.key("big")].never is Never.NODES
        assert rig.cache.registry.usage()[SMALL].inqueue[0] == 0


async def test_a_job_that_its_queue_can_hold_comes_in_when_others_end() -> None:
    rig = node_and_queue()
    rig.queue(make_queue("small", capability=make_amounts(cpu=1000)))
    for name, queue, cpu in (("small", SMALL, 200), ("other", DEFAULT_QUEUE, 1000)):
        rig.group(name, minimum=1, queue=queue, phase=GroupPhase.RUNNING)
        there = {"node": NodeName("n1"), "phase": "Running"}
        rig.pod(name, group=name, shape=make_shape(cpu=cpu), **there)
    claim = rig.group("claim", minimum=3, min_resources=make_amounts(cpu=7800))
    sizes = {"a": (100, 4), "b": (250, 2)}
    roles = {
        role: Template(make_shape(cpu=cpu), {}, replicas=count)
        for role, (cpu, count) in sizes.items()
    }
    rig.see("jobs", JobTemplate("uid-job", "default", "job", roles))
    rig.group(
        "job",
        minimum=6,
        role_minimum={"a": 1, "b": 2},
        min_resources=make_amounts(cpu=900),
        owner_uid="uid-job",
        phase=GroupPhase.PENDING,
        queue=SMALL,
    )
    with working(rig):
        await advance(1)
        assert rig.cache.groups[rig.key("job")].phase is GroupPhase.PENDING
        assert rig.refusals[rig.key("job")].never is None
        rig.delete("small", "other")
        rig.unsee("podgroups", claim)
        await advance(1)
        assert rig.cache.groups[rig.key("job")].phase is GroupPhase.INQUEUE


async def test_it_is_placed_when_a_node_comes_that_could_take_it() -> None:
    rig = node_and_queue()
    ask(rig, "big", 5000)
    with working(rig):
        await advance(10)
        rig.node("n3", cpu=6000)
        await advance(1)
        assert rig.place("big") == "n3"


@pytest.mark.parametrize("change", ["pod", "queue", "grown node"])
async def test_it_is_planned_again_when_it_or_its_queue_or_a_node_changes(change: str) -> None:
    rig = node_and_queue()
    rig.queue(make_queue("small", capability=make_amounts(cpu=4000)))
    ask(rig, "big", 5000)
    with working(rig):
        await advance(2)
        assert rig.key("big") in rig.cache.registry.aside
        if change != "pod":
            rig.queue(make_queue("small", capability=make_amounts(cpu=8000)))
        if change == "queue":
            await advance(1)
            assert rig.refusals[rig.key("big")].never is Never.NODES
        if change == "grown node":
            rig.node("n2", cpu=5000)
        if change == "pod":
            rig.group("big", minimum=1, queue=SMALL, min_resources=make_amounts(cpu=1000))
            rig.delete("big")
            rig.pod("small", group="big", shape=make_shape(cpu=1000))
        await advance(1)
        placed = rig.place("small") if change == "pod" else rig.place("big")
        assert bool(placed) is (change != "queue")


async def test_many_that_fit_no_node_are_not_planned_again_and_again() -> None:
    rig = node_and_queue()
    for number in range(MANY):
        ask(rig, f"big-{number}", 5000)
    with working(rig):
        await advance(1)
        assert not rig.cache.registry.pending
        ask(rig, "fits", 4000)
        await advance(1)
        assert rig.place("fits")
        assert len(rig.refusals) == MANY
        assert {why.never for why in rig.refusals.values()} == {Never.NODES}
        assert counted(Cause.NOT_ENOUGH_RESOURCES) == MANY


async def test_changes_of_nodes_admit_no_more_of_them() -> None:
    """Their claims would come back together when a node comes that could take them."""

    rig = node_and_queue()
    for number in range(MANY):
        ask(rig, f"big-{number}", 5000)
    with working(rig):
        await advance(1)
        groups = rig.cache.groups.values()
        inside = [group.key for group in groups if group.phase is GroupPhase.INQUEUE]
        for number in range(5):
            rig.node("n2", cpu=4000 + number)
            await advance(1)
        assert [g.key for g in groups if g.phase is GroupPhase.INQUEUE] == inside
        assert not rig.cache.registry.pending


async def test_pods_that_wait_for_an_autoscaler_keep_their_claim() -> None:
    rig = node_and_queue()
    rig.group("big", minimum=1, queue=SMALL, min_resources=make_amounts(cpu=5000))
    gate = {QUEUE_GATE: "true"}
    rig.pod("big", group="big", shape=make_shape(cpu=5000), annotations=gate)
    with working(rig):
        await advance(2)
        assert rig.key("big") in rig.cache.registry.pending
        assert rig.cache.registry.usage()[SMALL].inqueue[0] == 5000


async def test_who_leads_anew_looks_at_all_of_them() -> None:
    rig = node_and_queue()
    ask(rig, "big", 5000)
    await rig.cycle()
    assert rig.key("big") in rig.cache.registry.aside
    take_over(rig.cache)
    assert rig.key("big") in rig.cache.registry.pending
