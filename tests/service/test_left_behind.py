"""What a process before this one left on pods: it knew whom it had nominated, this one does not."""

from typing import Any

import pytest

from app.model.ids import NodeName
from app.model.pod import GATE
from app.model.workload import GroupPhase
from app.service.cycle.allowed_victims import KEPT_S
from app.service.effects.nominations import PATIENCE_S
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.effects.test_nominations import taken_back
from tests.service.replicas import lead, replica
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance

N1 = NodeName("n1")
TWO = make_shape(cpu=2000)
STOCK = "default-scheduler"
REFUSED = "0/1 nodes are available: 1 Insufficient cpu. preemption: "


async def test_who_was_nominated_before_a_restart_takes_its_turn() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.pod("older", shape=TWO, created=1.0)
    rig.pod("told", shape=TWO, created=2.0, nominated=N1)
    await rig.cycle()
    assert (rig.place("older"), rig.place("told")) == ("n1", "")


async def test_who_was_nominated_before_a_restart_is_voted_on() -> None:
    rig = Rig()
    rig.queue(make_queue("default", capability=make_amounts(cpu=2000)))
    rig.node("n1", cpu=8000)
    rig.group("in", minimum=1, min_resources=make_amounts(cpu=2000))
    wish = {"phase": GroupPhase.PENDING, "min_resources": make_amounts(cpu=2000)}
    rig.group("told", minimum=1, **wish)
    rig.pod("told", group="told", shape=TWO, nominated=N1)
    await rig.cycle()
    assert rig.cache.groups[rig.key("told")].phase is GroupPhase.PENDING


async def test_room_is_held_for_nobody_who_was_only_nominated() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    rig.pod("taken", scheduler=STOCK, node=N1, phase="Running", shape=TWO)
    rig.pod("told", gates=(GATE,), shape=make_shape(cpu=3000), nominated=N1, created=1.0)
    rig.pod("fits", shape=TWO, created=2.0)
    await rig.cycle()
    assert rig.place("fits") == "n1"


@pytest.mark.parametrize(
    "fields",
    [
        {"gates": (GATE,)},
        {},
        {"complaint": REFUSED + "no candidate node for preemption"},
        {"complaint": REFUSED + "not eligible due to preemptionPolicy=Never.", "preempts": False},
    ],
    ids=["gated", "ungated", "every node was struck out", "it may evict nobody"],
)
async def test_its_nomination_is_taken_back_when_it_has_no_place(fields: dict[str, Any]) -> None:
    """kube-scheduler keeps that room too, and would refuse a pod that it is reserved for.

    It leaves a nomination as it is where it evicts nobody.
    """

    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.pod("taken", scheduler=STOCK, node=N1, phase="Running", shape=TWO)
    rig.pod("told", shape=TWO, nominated=N1, **fields)
    with working(rig):
        await advance(3 * PATIENCE_S)
        assert taken_back(rig) == {"default/told"}


async def test_whom_others_were_evicted_for_while_another_led_keeps_its_room() -> None:
    """On the node that this replica had nominated it to when it led before."""

    rig = replica()
    rig.unsee("nodes", rig.cache.node_usage.nodes[NodeName("n2")])
    rig.node("n1", cpu=2000)
    lead(rig, "host-a")
    rig.pod("urgent", gates=(GATE,), shape=TWO)
    with working(rig):
        await advance(1)
        assert rig.member("urgent").hinted == N1
        lead(rig, "host-b")
        await advance(1)
        low = rig.pod("low", scheduler=STOCK, node=N1, phase="Running", shape=TWO)
        rig.nominate("urgent", "n1")
        lead(rig, "host-a")
        await advance(2 * KEPT_S)
        assert taken_back(rig) == set()
        rig.delete(low.name)


async def test_a_pod_that_was_refused_before_a_restart_is_woken_when_it_gets_its_place() -> None:
    """Nothing that kube-scheduler watches changes: it would come again after five minutes."""

    rig = Rig()
    rig.queue(make_queue("default", capability=make_amounts(cpu=1000)))
    rig.node("n1", cpu=8000)
    rig.pod("asked", shape=TWO, complaint="0/1 nodes are available: 1 queue is full.")
    with working(rig):
        await advance(1)
        assert not rig.api.of("wake")
        rig.queue(make_queue("default", capability=make_amounts(cpu=4000)))
        await advance(1)
        assert rig.place("asked") == "n1"
        assert len(rig.api.of("wake")) == 1


async def test_a_single_pod_that_was_admitted_before_another_led_is_voted_on_again() -> None:
    rig = replica()
    rig.queue(make_queue("default", capability=make_amounts(cpu=2000)))
    lead(rig, "host-a")
    rig.pod("alone", shape=TWO, pinned=NodeName("n9"))
    await rig.cycle()
    key = rig.member("alone").group
    assert rig.cache.groups[key].phase is GroupPhase.INQUEUE
    with working(rig):
        lead(rig, "host-b")
        await advance(1)
        rig.group("g", minimum=1, min_resources=make_amounts(cpu=2000))
        lead(rig, "host-a")
        await advance(1)
        assert rig.cache.groups[key].phase is not GroupPhase.INQUEUE
