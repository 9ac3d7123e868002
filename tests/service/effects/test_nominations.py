"""A nomination does not outlive the reservation it told of."""

from dataclasses import replace

import pytest

from app.model.ids import NodeName
from app.model.pod import GATE
from app.model.workload import PriorityClass
from app.service.cycle.allowed_victims import KEPT_S
from app.service.effects.nominations import PATIENCE_S
from tests.builders import make_shape
from tests.service.replicas import lead, replica
from tests.service.rig import FAILING, GONE, Rig, working
from tests.service.virtual_time import advance

N1 = NodeName("n1")


def taken_back(rig: Rig) -> set[str]:
    """The pods whose nomination was cleared."""
    return {
        write.target
        for write in rig.api.of("pod-status")
        if write.body["status"].get("nominatedNodeName", "") is None
    }


async def test_a_nomination_is_taken_back_when_the_place_is_lost_for_good() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=2, gated=True)
    with working(rig):
        await advance(1)
        for name in names:
            rig.store(replace(rig.api.pods[f"default/{name}"], gates=(), nominated=N1))
        await advance(3 * PATIENCE_S)
        assert rig.place("g-0") == N1
        assert taken_back(rig) == set()

        rig.unsee("nodes", rig.cache.node_usage.nodes[N1])
        await advance(PATIENCE_S / 2)
        assert taken_back(rig) == set(), "the place may come back"
        await advance(2 * PATIENCE_S)
        assert taken_back(rig) == {"default/g-0", "default/g-1"}


@pytest.mark.parametrize("node", ["n1", "n2"])
async def test_one_of_kube_scheduler_for_whom_it_evicts_stays_as_long_as_the_victims_do(
    node: str,
) -> None:
    """On the node that we had told the pod, which others took, or on another one."""

    rig = Rig()
    two = make_shape(cpu=2000)
    rig.node("n1", cpu=2000)
    rig.pod("urgent", gates=(GATE,), priority=1000, shape=two, created=2.0)
    with working(rig):
        await advance(1)
        rig.store(replace(rig.api.pods["default/urgent"], gates=(), nominated=N1))
        rig.node("n2", cpu=2000)
        for name in ("n1", "n2"):
            stock = {"scheduler": "default-scheduler", "phase": "Running"}
            rig.pod(f"low-{name}", node=NodeName(name), shape=two, **stock)
        rig.see("priorityclasses", PriorityClass("urgent", 1000, False))
        rig.group("older", minimum=1, created=1.0, priority_class="urgent")
        rig.pod("older", group="older", priority=1000, shape=two, created=1.0)
        assert rig.preempt("urgent", **{node: [f"low-{node}"]}) is None
        rig.nominate("urgent", node)
        await advance(2 * KEPT_S)
        assert taken_back(rig) == set()
        rig.delete(f"low-{node}")
        await advance(1)
        assert (rig.place("urgent"), rig.place("older")) == (node, "")


async def test_what_was_nominated_before_a_restart_is_taken_back_but_not_for_whom_others_go() -> (
    None
):
    rig = Rig()
    rig.gang("g", size=2, nominated=N1)
    rig.pod("preempting")
    rig.nominate("preempting", "n1")
    with working(rig):
        await advance(3 * PATIENCE_S)
        assert taken_back(rig) == {"default/g-0", "default/g-1"}


@pytest.mark.parametrize(("gates", "whose"), [((GATE,), {"default/p"}), ((), set())])
async def test_one_that_shows_later_is_ours_on_a_pod_behind_its_gate_only(
    gates: tuple[str, ...], whose: set[str]
) -> None:
    """The leader before may write late; kube-scheduler nominates whom it is about to bind."""

    rig = Rig()
    rig.node("n1", cpu=1000)
    pod = rig.pod("p", gates=gates, shape=make_shape(cpu=2000))
    with working(rig):
        await advance(1)
        rig.store(replace(pod, nominated=N1))
        await advance(3 * PATIENCE_S)
        assert taken_back(rig) == whose


async def test_a_pod_that_is_gone_needs_nothing_and_a_failure_comes_back() -> None:
    rig = Rig()
    rig.gang("g", size=2, nominated=N1)
    rig.api.fails["pod-status"] = [GONE, FAILING]
    with working(rig):
        await advance(3 * PATIENCE_S)
        assert taken_back(rig) == {"default/g-0", "default/g-1"}


async def test_a_pod_that_was_bound_meanwhile_is_left_alone() -> None:
    rig = Rig()
    rig.gang("g", size=2, nominated=N1)
    with working(rig):
        await advance(PATIENCE_S / 2)
        for name in ("g-0", "g-1"):
            rig.store(replace(rig.api.pods[f"default/{name}"], node=N1, nominated=NodeName("")))
        await advance(3 * PATIENCE_S)
        assert taken_back(rig) == set()


def nowhere(rig: Rig) -> None:
    """A gang that was nominated by another process, and fits no node."""
    rig.gang("g", size=2, nominated=N1, shape=make_shape(cpu=50_000))


async def test_a_replica_that_leads_again_looks_for_what_the_other_left() -> None:
    rig = replica()
    with working(rig):
        for holder in ("host-a", "host-b"):
            lead(rig, holder)
            await advance(2)
        nowhere(rig)
        await advance(2)
        assert taken_back(rig) == set()
        lead(rig, "host-a")
        await advance(PATIENCE_S / 2)
        assert taken_back(rig) == set(), "the place may come back"
        await advance(3 * PATIENCE_S)
        assert taken_back(rig) == {"default/g-0", "default/g-1"}


async def test_a_replica_that_stands_by_takes_nothing_back() -> None:
    """Not even what it was about to: the other may have given the pod that place anew."""

    rig = replica()
    lead(rig, "host-a")
    nowhere(rig)
    rig.api.fails["pod-status"] = [FAILING] * 50
    with working(rig):
        await advance(1.2 * PATIENCE_S)
        assert rig.api.tries.count(("pod-status", "default/g-0")) > 0
        lead(rig, "host-b")
        await advance(0.1)
        rig.api.fails.clear()
        await advance(10)
        assert taken_back(rig) == set()
