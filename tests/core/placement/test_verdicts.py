"""Why no node takes a task."""

from app.model.ids import NodeName
from app.model.node import Taint
from app.model.reason import Cause, Shortfall
from app.model.shape import HostPort
from app.model.snapshot import Veto
from tests.builders import GIB, make_node, make_shape
from tests.core.placement.rigs import Rig


def test_every_node_has_its_verdict() -> None:
    nodes = (
        make_node("gone", ready=False),
        make_node("cordoned", unschedulable=True),
        make_node(
            "spot", taints=(Taint("a", "", "PreferNoSchedule"), Taint("b", "c", "NoExecute"))
        ),
        make_node("gpu", taints=(Taint("gpu", "yes", "NoSchedule"),)),
        make_node("other", labels={"zone": "other"}),
        make_node("vetoed", labels={"zone": "here"}),
        make_node("small", labels={"zone": "here"}, cpu=100, memory=100),
        make_node("crowded", labels={"zone": "here"}, pods=0),
    )
    shape = make_shape(node_selector=(("zone", "here"),))
    rig = Rig(nodes, vetoes=frozenset({Veto(shape, NodeName("vetoed"))}))
    assert rig.find(shape) is None
    assert rig.verdicts(shape) == {
        "node(s) are not ready": 1,
        "node(s) were unschedulable": 1,
        "node(s) had untolerated taint {b: c}": 1,
        "node(s) had untolerated taint {gpu: yes}": 1,
        "node(s) didn't match Pod's node affinity/selector": 1,
        "node(s) were refused by the scheduler's own filters": 1,
        "Insufficient cpu": 1,
        "Insufficient memory": 1,
        "node(s) pod number exceeded": 1,
    }


def test_shortfalls_tell_the_most_that_is_free_on_a_node_that_is_short() -> None:
    nodes = (
        make_node("a", cpu=3000, memory=64 * GIB),
        make_node("b", cpu=2000, memory=GIB),
        make_node("c", cpu=90_000, taints=(Taint("gpu", "", "NoSchedule"),)),
    )
    rig = Rig(nodes)
    rig.put(make_shape(cpu=2500, memory=0), "b")
    task = rig.task(make_shape(cpu=4000, memory=2 * GIB), role="worker")
    refusal = rig.placer.explain(rig.gang, task)
    assert refusal.cause is Cause.NOT_ENOUGH_RESOURCES
    assert refusal.where == "worker"
    assert refusal.total_nodes == 3
    assert refusal.shortfalls == (
        Shortfall("cpu", asked=4000, free=3000, limit=3000),
        Shortfall("memory", asked=2 * GIB, free=GIB),
    )


def test_free_room_is_never_said_to_be_negative() -> None:
    rig = Rig((make_node("a", cpu=1000),))
    rig.put(make_shape(cpu=3000), "a")
    assert rig.placer.explain(rig.gang, rig.task()).shortfalls == (
        Shortfall("cpu", asked=1000, free=0),
    )


def test_the_cause_is_no_node_fits_when_room_would_not_help() -> None:
    rig = Rig((make_node("a"),))
    refusal = rig.placer.explain(rig.gang, rig.task(make_shape(node_selector=(("x", "y"),))))
    assert refusal.cause is Cause.NO_NODE_FITS
    assert refusal.shortfalls == ()


def test_the_cause_is_vetoed_when_the_stock_filters_took_the_last_node() -> None:
    shape = make_shape()
    rig = Rig((make_node("a"),), vetoes=frozenset({Veto(shape, NodeName("a"))}))
    assert rig.placer.explain(rig.gang, rig.task(shape)).cause is Cause.VETOED


def test_a_pinned_task_is_refused_by_its_own_nodes_reason() -> None:
    rig = Rig((make_node("a"), make_node("b", cpu=10), make_node("c")))
    assert rig.verdicts(pinned=NodeName("b")) == {
        "node(s) didn't match Pod's node affinity/selector": 2,
        "Insufficient cpu": 1,
    }
    assert rig.verdicts(pinned=NodeName("gone")) == {
        "node(s) didn't match Pod's node affinity/selector": 3
    }


def test_ports_are_named() -> None:
    port = HostPort("", "TCP", 80)
    rig = Rig((make_node("a"),), ports={0: frozenset({port})})
    assert rig.verdicts(make_shape(host_ports=(port,))) == {
        "node(s) didn't have free ports for the requested pod ports": 1
    }
