"""Room for pods that do not exist yet, served to whoever creates them."""

from __future__ import annotations

from typing import Any

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.processes import wait_until


def slots(place: Place, group: str, count: int) -> list[str]:
    """The nodes that `GET /plan` tells, once they are that many."""
    path = f"/plan/{place.name}/{group}"
    found: dict[str, Any] = {}

    def are_there() -> bool:
        if place.cluster.extender.status(path) != 200:
            return False
        found.update(place.cluster.extender.get(path))
        return sum(map(len, found["slots"].values())) == count

    wait_until(are_there, timeout_s=30, what=f"{count} slots of {group}")
    return [node for nodes in found["slots"].values() for node in nodes]


def test_pods_created_into_their_slots_are_bound_there_without_a_gate(place: Place) -> None:
    place.add_nodes(2, cpu="3")
    place.add_group("made", 5, minResources={"cpu": "5", "memory": "320Mi"})
    nodes = slots(place, "made", 5)
    pods = [workloads.pod(f"made-{i}", group="made", pin=node) for i, node in enumerate(nodes)]
    place.submit(pods)

    bound = place.wait_bound("made", 5)
    assert sorted(map(workloads.node_of, bound)) == sorted(nodes)
    assert not any(pod["spec"].get("schedulingGates") for pod in bound)
    place.wait_phase("made", "Running")


def test_slots_shrink_as_pods_come_and_nobody_else_gets_them(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_group("made", 4, minResources={"cpu": "4", "memory": "256Mi"})
    node = slots(place, "made", 4)[0]
    place.submit_one(workloads.pod("made-0", group="made", pin=node))
    slots(place, "made", 3)
    place.submit_one(workloads.pod("greedy"))

    place.submit(workloads.pod(f"made-{i}", group="made", pin=node) for i in range(1, 4))
    place.wait_bound("made", 4)
    assert not workloads.node_of(place.pod("greedy"))


def test_a_pod_that_asks_for_more_than_its_slot_does_not_break_the_gang(place: Place) -> None:
    place.add_nodes(2, cpu="2")
    place.add_group("made", 3, minResources={"cpu": "3", "memory": "192Mi"})
    nodes = slots(place, "made", 3)
    place.submit(
        workloads.pod(f"made-{i}", group="made", cpu="2", pin=node) for i, node in enumerate(nodes)
    )
    place.wait_condition("made", "Reserved", "False", says="cpu asked")
    assert not place.bound("made")


def test_workers_get_the_room_that_was_kept_for_more_launchers(place: Place) -> None:
    """While the launcher is alone nobody knows that the rest of the gang is of another kind."""
    place.add_nodes(1, cpu="4")
    place.add_group("roles", 4)
    place.submit_one(workloads.pod("launcher", group="roles", role="launcher"))
    slots(place, "roles", 3)

    place.submit(
        workloads.pod(f"worker-{i}", group="roles", role="worker", memory="32Mi") for i in range(3)
    )
    place.wait_phase("roles", "Running")
