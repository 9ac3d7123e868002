"""gangpreempt and gangreclaim for gangs that need one domain of the network.

The scenarios are the specs of topology of ``gangevict/gangevict.go`` (volcano.md §9.2) by the names
they have there, on two racks of two nodes below one row. Every eviction is proven by its
certificate, and takes no pod that it could do without.
"""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.certificates import check
from app.model.topology import ALLOCATED
from tests.clusters import workloads
from tests.clusters.place import Place
from tests.scenarios.test_gang_eviction import CONF, Ground

WAYS = ("gangpreempt", "gangreclaim")
PREEMPT, RECLAIM = WAYS


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


class Racks:
    """Four single pods of one core fill two racks; a taker comes, of their queue or of another."""

    def __init__(self, place: Place, way: str) -> None:
        self.place, self.way = place, way
        self.ground = Ground(place, **({"q": 4} if way == PREEMPT else {"ours": 3, "theirs": 1}))
        self.nodes = self.ground.nodes
        names = [
            place.add_hyper_node(name, 1, *self.nodes[at : at + 2])
            for name, at in (("a", 0), ("b", 2))
        ]
        place.add_hyper_node("row", 2, *names)
        self.fill(range(4))

    def fill(self, rows: range, **given: Any) -> None:
        """A single pod of the lowest priority on each of these nodes."""
        queue = "q" if self.way == PREEMPT else "theirs"
        for row in rows:
            node = {"nodeSelector": {"kubernetes.io/hostname": self.nodes[row]}}
            self.ground.run(queue, f"low-{row}", 1, **node, **given)

    def take(self, size: int, tier: int, **given: Any) -> None:
        """Let a gang come whose members all have to be in one domain of that tier at most."""
        queue = "q" if self.way == PREEMPT else "ours"
        asked = {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}
        rank = "high" if self.way == PREEMPT else "low"
        self.ground.add(queue, "taker", size, rank=rank, spec=asked, **given)

    def rows(self) -> list[int]:
        """The nodes of the taker, by their numbers."""
        return sorted(self.nodes.index(workloads.node_of(p)) for p in self.place.bound("taker"))

    def left(self) -> list[int]:
        """The nodes whose first pods are still there."""
        return [row for row in range(4) if self.place.bound(f"low-{row}")]

    def wait_taken(self, size: int) -> None:
        """Wait until the taker runs; its eviction is proven, and took a pod for each member."""
        self.place.wait_bound("taker", size)
        assert sorted([*self.rows(), *self.left()]) == [0, 1, 2, 3]
        decided = self.place.cluster.extender.get("/debug/certificates")
        key = f"{self.place.name}/taker"
        [plan] = [each for each in decided if each["group"] == key]
        assert check(plan["certificate"]) == []
        inside = plan["certificate"]["preemptor"]["domain"]["nodes"]
        assert {self.nodes[row] for row in self.rows()} <= set(inside)


@pytest.fixture(params=WAYS)
def racks(place: Place, request: pytest.FixtureRequest) -> Racks:
    return Racks(place, request.param)


def test_a_gang_of_the_lowest_tier_takes_the_room_of_one_rack(racks: Racks) -> None:
    """GP-T1, GR-T1: hard tier-1 preemption (reclaim) places preemptor within one domain."""
    racks.take(2, 1)
    racks.wait_taken(2)
    assert racks.rows() in ([0, 1], [2, 3])


def test_no_pod_goes_for_a_gang_that_is_larger_than_a_rack(racks: Racks) -> None:
    """GP-T2, GR-T2: hard tier-1 preemption (reclaim) blocked when domain is too small."""
    racks.take(3, 1)
    racks.place.wait_summary("taker", "would have room for 2 if nothing ran there")
    assert (racks.rows(), racks.left()) == ([], [0, 1, 2, 3])


def test_a_gang_that_may_lie_in_a_row_takes_the_room_of_both_racks(racks: Racks) -> None:
    """GP-T3, GR-T3: hard tier-2 preemption (reclaim) succeeds at wider domain."""
    racks.take(3, 2)
    racks.wait_taken(3)


def test_a_gang_that_may_lie_in_a_row_takes_one_rack_if_that_is_enough(racks: Racks) -> None:
    """GP-T4, GR-T4: hard tier-2 constraint places preemptor (reclaimer) in tier-1 domain."""
    racks.take(2, 2)
    racks.wait_taken(2)
    assert racks.rows() in ([0, 1], [2, 3])
    wanted = f"{racks.place.name}-{'a' if 0 in racks.rows() else 'b'}"
    racks.place.wait_group(
        "taker", lambda group: group["metadata"]["annotations"].get(ALLOCATED) == wanted
    )
