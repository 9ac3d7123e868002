"""A job whose pods need one rack loses a node there: its policy decides, on both clusters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import nodes, workloads
from tests.clusters.client import Objects
from tests.clusters.resources import HYPER_NODES, JOBS, PODS
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.shapes import make_job, policy, task

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(200)

RACKS = {"x": ("x0", "x1"), "y": ("y0", "y1")}
"""Seats by rack; each takes one pod."""


@pytest.fixture
def tier(ground: Ground) -> Iterator[str]:
    """The name of the tier of two racks of two nodes."""
    name = f"rack-of-{ground.name}"
    for rack, seats in RACKS.items():
        for seat in seats:
            ground.add_seat(seat)
        inside = [node_of(ground, seat) for seat in seats]
        rack_object = workloads.hyper_node(
            f"{ground.name}-{rack}", 1, "Node", inside, tier_name=name
        )
        ground.api.create(rack_object, resource=HYPER_NODES)
    yield name
    for rack, seats in RACKS.items():
        ground.api.delete(HYPER_NODES, f"{ground.name}-{rack}")
        nodes.delete(ground.api, [node_of(ground, seat) for seat in seats])


def node_of(ground: Ground, seat: str) -> str:
    return f"{ground.name}-seat-{seat}-0"


def test_the_policy_takes_a_job_to_another_rack_when_its_own_cannot_hold_it(
    ground: Ground, tier: str
) -> None:
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "3"}},
    }
    pod = {"containers": [container], "tolerations": [{"key": "seat", "operator": "Exists"}]}
    two = task("up", 2, command=["sleep", "infinity"], pod=pod)
    asked = {"networkTopology": {"mode": "hard", "highestTierName": tier}}
    restart = [policy("PodEvicted", "RestartJob")]
    ground.submit("wide", make_job(two, needs=2, policies=restart) | asked)
    ground.wait(PODS, lambda pods: len(places(pods)) == 2, what="the job is bound")
    before = places(ground.api.list(PODS, namespace=ground.name))
    first, lost = min(before.items())
    rack = rack_of(ground, before)
    [seat] = [each for each in RACKS[rack] if node_of(ground, each) == lost]

    ground.close_seat(seat)
    ground.bury(first)
    wanted = {node_of(ground, each) for each in RACKS["y" if rack == "x" else "x"]}
    ground.wait(
        PODS, lambda pods: set(places(pods).values()) == wanted, what="the job is in the other rack"
    )
    ground.wait(
        JOBS, lambda jobs: jobs[0]["status"].get("retryCount") == 1, what="it was restarted once"
    )


def places(pods: Objects) -> dict[str, str]:
    """The nodes of bound pods that stay, by name."""
    stay = [pod for pod in pods if not workloads.is_leaving(pod)]
    return {pod["metadata"]["name"]: workloads.node_of(pod) for pod in workloads.bound(stay)}


def rack_of(ground: Ground, nodes: dict[str, str]) -> str:
    """The one rack that all of these nodes are in."""
    [rack] = [
        rack
        for rack, seats in RACKS.items()
        if set(nodes.values()) == {node_of(ground, seat) for seat in seats}
    ]
    return rack
