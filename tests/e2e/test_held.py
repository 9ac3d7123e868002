"""What may happen while a gang's Bind calls are held: nobody is bound alone, the gang runs later.

Each test has a gang of four of which three have come; room is kept for the fourth.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import NODES, POD_GROUPS
from tests.clusters.rig import Rig

pytestmark = pytest.mark.real

GANG = "gang"
SIZE = 4
FOURTH = f"{GANG}-3"
AT_ONCE_S = 12
"""Well before the time of the barrier, 20 s, which would end what is held anyway."""


@pytest.fixture
def held(rig: Rig) -> Iterator[Place]:
    """Three nodes of 2 cpu; three members of four hold at the barrier."""
    with Place(rig) as place:
        place.add_nodes(3, cpu="2")
        place.add_group(GANG, SIZE)
        place.submit(workloads.members(GANG, SIZE - 1))
        place.wait_held(GANG, SIZE - 1)
        yield place


def submit_fourth(place: Place) -> None:
    assert not place.bound(GANG)
    place.submit_one(workloads.pod(FOURTH, group=GANG))


def node_of_a_held_member(place: Place) -> str:
    """The node with the most of them."""
    nodes = [member["node"] for member in place.explain(GANG)["members"]]
    return str(max(nodes, key=nodes.count))


def test_the_fourth_lets_all_go(held: Place) -> None:
    submit_fourth(held)
    held.wait_bound(GANG, SIZE)
    held.wait_phase(GANG, "Running")


def test_a_member_is_deleted_and_another_comes_in_its_place(held: Place) -> None:
    held.delete_pod(f"{GANG}-0")
    wait_until(
        lambda: held.gang_state(GANG)["heldBinds"] == SIZE - 2,
        timeout_s=AT_ONCE_S,
        what="2 Binds held",
    )
    submit_fourth(held)
    held.submit_one(workloads.pod(f"{GANG}-4", group=GANG))
    held.wait_bound(GANG, SIZE)


def test_a_node_with_held_members_vanishes(held: Place) -> None:
    gone = node_of_a_held_member(held)
    held.api.delete(NODES, gone)
    submit_fourth(held)
    bound = held.wait_bound(GANG, SIZE)
    assert gone not in {workloads.node_of(pod) for pod in bound}


def test_a_node_with_held_members_is_cordoned(held: Place) -> None:
    cordoned = node_of_a_held_member(held)
    held.change_node(cordoned, {"spec": {"unschedulable": True}})
    submit_fourth(held)
    held.wait_bound(GANG, SIZE)
    held.change_node(cordoned, {"spec": {"unschedulable": False}})


def test_a_node_with_held_members_is_tainted(held: Place) -> None:
    """As autoscalers do with nodes that they are about to take away."""
    tainted = node_of_a_held_member(held)
    taint = {"key": "example.com/going", "effect": "NoSchedule"}
    held.change_node(tainted, {"spec": {"taints": [taint]}})
    wait_until(
        lambda: held.gang_state(GANG).get("heldBinds") != SIZE - 1,
        timeout_s=AT_ONCE_S,
        what="Binds ended",
    )
    submit_fourth(held)
    bound = held.wait_bound(GANG, SIZE)
    assert tainted not in {workloads.node_of(pod) for pod in bound}


def test_a_foreign_pod_takes_the_room(held: Place) -> None:
    taken = node_of_a_held_member(held)
    held.submit_one(workloads.pod("foreign", cpu="2", scheduler="other", nodeName=taken))
    submit_fourth(held)
    bound = held.wait_bound(GANG, SIZE)
    assert taken not in {workloads.node_of(pod) for pod in bound}


def test_a_foreign_pod_takes_room_that_the_gang_cannot_do_without(held: Place) -> None:
    names = sorted(held.cluster.extender.get("/debug/snapshot")["nodes"])
    for name in names[:2]:
        held.submit_one(workloads.pod(f"on-{name}", cpu="2", scheduler="other", nodeName=name))
    wait_until(lambda: not held.gang_state(GANG), timeout_s=AT_ONCE_S, what="all is given back")
    submit_fourth(held)
    held.wait_condition(GANG, "Unschedulable", says="cpu asked 4, free 2 of 6")
    assert not held.bound(GANG)

    held.delete_pod(f"on-{names[0]}")
    held.wait_bound(GANG, SIZE)


def test_somebody_else_binds_a_member(held: Place) -> None:
    node = node_of_a_held_member(held)
    others = set(held.cluster.extender.get("/debug/snapshot")["nodes"]) - {node}
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": f"{GANG}-0"},
        "target": {"kind": "Node", "name": sorted(others)[0]},
    }
    path = f"/api/v1/namespaces/{held.name}/pods/{GANG}-0/binding"
    held.api.request("POST", path, body=binding)
    held.submit_one(workloads.pod(FOURTH, group=GANG))
    held.wait_bound(GANG, SIZE)


def test_the_group_is_deleted_and_comes_back(held: Place) -> None:
    held.api.delete(POD_GROUPS, GANG, namespace=held.name)
    wait_until(lambda: not held.gang_state(GANG), timeout_s=AT_ONCE_S, what="all is given back")
    submit_fourth(held)
    held.wait_summary(FOURTH, "waiting for the pod group to exist")
    assert not held.bound(GANG)

    held.add_group(GANG, SIZE)
    held.wait_bound(GANG, SIZE)


def test_the_minimum_is_raised(held: Place) -> None:
    held.api.patch(POD_GROUPS, GANG, {"spec": {"minMember": SIZE + 1}}, namespace=held.name)
    wait_until(
        lambda: held.gang_state(GANG)["minMember"] == SIZE + 1,
        timeout_s=AT_ONCE_S,
        what="it is known",
    )
    submit_fourth(held)
    held.wait_held(GANG, SIZE)
    assert not held.bound(GANG)

    held.submit_one(workloads.pod(f"{GANG}-4", group=GANG))
    held.wait_bound(GANG, SIZE + 1)


def test_the_minimum_is_lowered_to_those_who_are_there(held: Place) -> None:
    held.api.patch(POD_GROUPS, GANG, {"spec": {"minMember": SIZE - 1}}, namespace=held.name)
    held.wait_bound(GANG, SIZE - 1)


def test_the_scheduler_is_killed(rig: Rig, held: Place) -> None:
    rig.scheduler.kill()
    wait_until(
        lambda: not held.gang_state(GANG).get("heldBinds"),
        timeout_s=AT_ONCE_S,
        what="nobody is held",
    )
    assert not held.bound(GANG)
    rig.start_scheduler()
    held.wait_held(GANG, SIZE - 1)
    submit_fourth(held)
    held.wait_bound(GANG, SIZE)


def test_the_extender_is_killed(rig: Rig, held: Place) -> None:
    rig.extender.kill()
    rig.restart_extender()
    submit_fourth(held)
    held.wait_bound(GANG, SIZE)


def test_the_extender_is_told_to_stop(rig: Rig, held: Place) -> None:
    assert rig.extender.stop(grace_s=10) == 0
    assert not held.bound(GANG)
    held.submit_one(workloads.pod(FOURTH, group=GANG))
    rig.restart_extender()
    held.wait_bound(GANG, SIZE)
