"""Pods that are not ours are left alone and counted; pods that others hold back are waited for."""

from __future__ import annotations

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.resources import PODS

HOLD = "example.com/hold"


def test_pods_of_another_scheduler_are_neither_gated_nor_bound_nor_written(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.submit_one(workloads.pod("foreign", scheduler="other"))
    before = place.pod("foreign")
    place.add_gang("ours", 2)
    place.wait_bound("ours", 2)
    place.wait_phase("ours", "Running")

    after = place.pod("foreign")
    assert "schedulingGates" not in after["spec"]
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_what_others_take_is_counted(place: Place) -> None:
    (node,) = place.add_nodes(1, cpu="4")
    place.submit_one(workloads.pod("foreign", cpu="3", scheduler="other", nodeName=node))
    place.add_gang("ours", 2)
    place.wait_condition("ours", "Reserved", "False", says="cpu asked 2, free 1 of 4")
    assert not place.bound("ours")

    place.delete_pod("foreign")
    place.wait_bound("ours", 2)


def test_a_member_behind_a_gate_of_others_is_waited_for(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    held = workloads.pod("gang-1", group="gang", schedulingGates=[{"name": HOLD}])
    place.add_group("gang", 2)
    place.submit([workloads.pod("gang-0", group="gang"), held])
    place.wait_condition("gang", "Reserved", "False")
    assert not place.bound("gang")

    gates = [g for g in place.pod("gang-1")["spec"]["schedulingGates"] if g["name"] != HOLD]
    place.api.patch(PODS, "gang-1", {"spec": {"schedulingGates": gates}}, namespace=place.name)
    place.wait_bound("gang", 2)


def test_no_member_is_opened_while_another_is_behind_a_gate_of_others(place: Place) -> None:
    """Though room was kept for all of them before they came."""
    place.add_nodes(1, cpu="4")
    place.add_group("gang", 3, minResources={"cpu": "3", "memory": "192Mi"})
    place.wait_condition("gang", "Reserved")
    held = workloads.pod("gang-0", group="gang", schedulingGates=[{"name": HOLD}])
    place.submit_one(held)
    place.wait_known("gang", pods=1)
    place.submit(workloads.pod(f"gang-{i}", group="gang") for i in (1, 2))

    place.wait_condition("gang", "Reserved", "False", says="ungated 2")
    for name in ("gang-1", "gang-2"):
        assert place.pod(name)["spec"]["schedulingGates"] == [{"name": workloads.GATE}]


def test_no_room_is_kept_for_members_under_another_scheduler(place: Place) -> None:
    (node,) = place.add_nodes(1, cpu="8")
    place.add_group("gang", 3, minResources={"cpu": "6", "memory": "192Mi"})
    place.wait_condition("gang", "Reserved")
    place.submit(
        workloads.pod(f"gang-{i}", group="gang", cpu="2", scheduler="other", nodeName=node)
        for i in range(3)
    )
    place.wait_condition("gang", "Reserved", "False", says="held by scheduler other (pods 3)")
    place.add_gang("rival", 2)
    place.wait_bound("rival", 2)


def test_a_gang_created_without_gates_runs_whole_too(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    place.add_group("open", 8)
    place.submit_ungated("open", 8)
    place.wait_bound("open", 8)


def test_a_gang_without_gates_that_does_not_fit_is_woken_when_there_is_room(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_group("open", 6)
    place.submit_ungated("open", 6)
    place.wait_condition("open", "Reserved", "False", says="cpu asked 6, free 4 of 4")
    assert not place.bound("open")

    place.add_nodes(1, cpu="2")
    place.wait_bound("open", 6)
