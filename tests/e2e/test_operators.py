"""Pods of operators, replayed object by object in their order: what is there late, changes or goes.

The operators are those that Volcano's users run: Spark makes a driver that makes its executors, Ray
moves a group's minimum with its autoscaler, others make pods anew under the same names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.clusters import workloads
from tests.clusters.client import ApiError
from tests.clusters.place import Place
from tests.clusters.resources import POD_GROUPS, PODS
from tests.clusters.rig import Rig

pytestmark = pytest.mark.real

KEPT = "example.com/keep"


@pytest.fixture
def place(rig: Rig) -> Iterator[Place]:
    """Two nodes of 4 cpus."""
    with Place(rig) as made:
        made.add_nodes(2, cpu="4")
        yield made


def set_minimum(place: Place, group: str, minimum: int) -> None:
    place.api.patch(POD_GROUPS, group, {"spec": {"minMember": minimum}}, namespace=place.name)


def assign(place: Place, pod: str, group: str) -> None:
    annotation = {"metadata": {"annotations": {workloads.GROUP: group}, "labels": {"group": group}}}
    place.api.patch(PODS, pod, annotation, namespace=place.name)


def wait_waiting(place: Place, group: str, *, says: str) -> None:
    place.wait_condition(group, "Reserved", "False", says=says)
    assert not place.bound(group)


def test_executors_follow_their_driver_as_far_as_there_is_room(place: Place) -> None:
    place.add_group("spark", 1, minResources={"cpu": "4", "memory": "256Mi"})
    place.submit_one(workloads.pod("driver", group="spark"))
    place.wait_pod_bound("driver")
    place.submit(workloads.members("spark", 10))
    place.wait_bound("spark", 8)
    place.wait_summary("spark", "cpu asked 1, free 0")

    place.delete_pod("driver")
    place.wait_bound("spark", 8)


def test_a_minimum_follows_an_autoscaler_up_and_down(place: Place) -> None:
    place.add_gang("ray", 3)
    place.wait_bound("ray", 3)
    set_minimum(place, "ray", 5)
    place.submit(workloads.members("ray", 5)[3:])
    place.wait_bound("ray", 5)

    set_minimum(place, "ray", 12)
    place.submit(workloads.members("ray", 12)[5:])
    place.wait_summary("ray", "cpu asked 7, free 3 of 8")
    assert len(place.bound("ray")) == 5

    set_minimum(place, "ray", 6)
    place.wait_bound("ray", 8)


def test_pods_made_anew_under_their_names_become_one_gang(place: Place) -> None:
    place.add_gang("again", 4)
    for pod in workloads.members("again", 4) * 5:
        place.delete_pod(pod["metadata"]["name"])
        with contextlib.suppress(ApiError):
            place.submit_one(pod)
    there = {pod["metadata"]["name"] for pod in place.pods("again")}
    place.submit(p for p in workloads.members("again", 4) if p["metadata"]["name"] not in there)
    place.wait_bound("again", 4)
    place.wait_phase("again", "Running")


def test_members_that_change_sides_go_with_their_new_group(place: Place) -> None:
    place.add_gang("block", 7)
    place.wait_bound("block", 7)
    place.add_gang("three", 3)
    place.add_gang("two", 2)
    wait_waiting(place, "two", says="cpu asked 2, free 1")

    for name in ("three-0", "three-1", "three-2"):
        assign(place, name, "two")
    for name in ("two-0", "two-1"):
        assign(place, name, "three")
    wait_waiting(place, "three", says="cpu asked 3, free 1")
    set_minimum(place, "two", 3)
    place.delete_gang("block")
    assert {p["metadata"]["name"] for p in place.wait_bound("two", 3)} == {
        f"three-{index}" for index in range(3)
    }
    assert not place.bound("three")
    set_minimum(place, "three", 2)
    place.wait_bound("three", 2)


def test_a_group_made_anew_finds_its_members_running_or_waiting(place: Place) -> None:
    place.add_gang("runs", 8)
    place.wait_bound("runs", 8)
    place.add_gang("waits", 8)
    wait_waiting(place, "waits", says="cpu asked 8, free 0")

    for name in ("runs", "waits"):
        place.api.delete(POD_GROUPS, name, namespace=place.name)
        place.add_group(name, 8)
    place.wait_phase("runs", "Running")
    wait_waiting(place, "waits", says="cpu asked 8, free 0")
    place.delete_gang("runs")
    place.wait_bound("waits", 8)


def test_pods_kept_by_a_finalizer_hold_their_room_until_they_are_over(place: Place) -> None:
    kept = workloads.members("kept", 8)
    for pod in kept:
        pod["metadata"]["finalizers"] = [KEPT]
    place.add_group("kept", 8)
    place.submit(kept)
    names = [pod["metadata"]["name"] for pod in place.wait_bound("kept", 8)]
    place.add_gang("next", 8)
    for name in names:
        place.delete_pod(name)
    try:
        wait_waiting(place, "next", says="cpu asked 8, free 0")
        place.api.delete(POD_GROUPS, "kept", namespace=place.name)
        for name in names:
            place.set_pod_phase(name, "Succeeded")
        place.wait_bound("next", 8)
    finally:
        free = {"metadata": {"finalizers": None}}
        for name in names:
            place.api.patch(PODS, name, free, namespace=place.name)


def test_a_victim_that_is_over_has_left_its_room_though_it_is_still_there(place: Place) -> None:
    """Its kubelet says first that it has ended, and takes it away later."""
    urgent = place.add_priority_class("urgent", 1000)
    place.add_gang("low", 2, minimum=1, cpu="4", terminationGracePeriodSeconds=60)
    lows = {workloads.node_of(pod): pod["metadata"]["name"] for pod in place.wait_bound("low", 2)}
    pod = workloads.pod("urgent", cpu="4", priorityClassName=urgent)
    pod["metadata"]["annotations"] |= workloads.UNGATED
    place.submit_one(pod)
    victim = lows[place.wait_nominated("urgent")]
    place.wait_leaving(victim)
    place.set_pod_phase(victim, "Failed")
    place.wait_pod_bound("urgent", timeout_s=5)
    assert workloads.is_leaving(place.pod(victim))


def test_a_gate_that_somebody_takes_away_lets_nobody_go_alone(place: Place) -> None:
    place.add_group("open", 3)
    place.submit(workloads.members("open", 2))
    for name in ("open-0", "open-1"):
        ungated = {"spec": {"schedulingGates": None}}
        place.api.patch(PODS, name, ungated, namespace=place.name)
    place.wait_held("open", 2)
    assert not place.bound("open")
    place.submit(workloads.members("open", 3)[2:])
    place.wait_bound("open", 3)


def test_pods_told_another_node_behind_a_gate_go_there(place: Place) -> None:
    (other,) = place.add_nodes(1, cpu="4", labels={"example.com/only": place.name})
    gates = [{"name": KEPT}]
    place.add_group("told", 3)
    place.submit(workloads.members("told", 3, schedulingGates=gates))
    wait_waiting(place, "told", says=f"held by gate {KEPT} (pods 3)")
    for name in ("told-0", "told-1", "told-2"):
        selector = {"example.com/only": place.name}
        place.api.patch(PODS, name, {"spec": {"nodeSelector": selector}}, namespace=place.name)
        ours = {"spec": {"schedulingGates": [{"name": workloads.GATE}]}}
        place.api.patch(PODS, name, ours, namespace=place.name)
    nodes = {workloads.node_of(pod) for pod in place.wait_bound("told", 3)}
    assert nodes == {other}


def resize(place: Place, name: str, cpu: str) -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    change = {"spec": {"containers": [container]}}
    place.api.patch(
        PODS, name, change, namespace=place.name, subresource="resize", kind="strategic"
    )


def tell_resources(place: Place, name: str, cpu: str) -> None:
    """Write what the kubelet has given to the container."""
    given = {"cpu": cpu, "memory": "64Mi"}
    container = {
        "name": "main",
        "image": "none",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "resources": {"requests": given},
        "allocatedResources": given,
    }
    status = {"phase": "Running", "containerStatuses": [container]}
    place.api.patch(PODS, name, {"status": status}, namespace=place.name, subresource="status")


def test_a_pod_resized_in_place_counts_with_what_it_asks_for_or_still_has(place: Place) -> None:
    place.add_gang("grown", 2)
    place.wait_bound("grown", 2)
    tell_resources(place, "grown-0", "1")
    resize(place, "grown-0", "3")
    place.add_gang("next", 5)
    wait_waiting(place, "next", says="cpu asked 5, free 4")

    tell_resources(place, "grown-0", "3")
    resize(place, "grown-0", "1")
    # Seen after the resize, as it is created after it.
    place.submit_one(workloads.pod("later", cpu="10m"))
    place.wait_pod_bound("later")
    assert not place.bound("next")
    tell_resources(place, "grown-0", "1")
    place.wait_bound("next", 5)
