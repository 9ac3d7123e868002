"""Gangs of hard topology when pods, nodes and HyperNodes change under them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.scenarios.confs import conf

IN_A_RACK = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf("predicates", "proportion", "nodeorder", "binpack", "network-topology-aware")


class Racks:
    """Six nodes of one core in two racks of three, and a gang ``g`` that needs a rack."""

    def __init__(self, place: Place, size: int, *, full: Sequence[int] = ()) -> None:
        """Other pods run on the nodes of the numbers ``full``."""
        self.place = place
        self.nodes = place.add_nodes(6, cpu="1")
        self.names = {
            name: place.add_hyper_node(name, 1, *self.nodes[at : at + 3])
            for name, at in (("a", 0), ("b", 3))
        }
        for row in full:
            self.fill(row)
        place.add_gang("g", size, spec=IN_A_RACK)

    def fill(self, row: int) -> None:
        pod = workloads.pod(f"other-{row}", scheduler="other", nodeName=self.nodes[row])
        self.place.submit_one(pod)

    def rows(self) -> list[int]:
        """The numbers of the nodes of the gang."""
        return sorted(self.nodes.index(workloads.node_of(p)) for p in self.place.bound("g"))

    def make_anew(self, *, on: int) -> None:
        """Kill the gang's member on that node; its owner makes another one."""
        [name] = [
            pod["metadata"]["name"]
            for pod in self.place.bound("g")
            if workloads.node_of(pod) == self.nodes[on]
        ]
        self.place.delete_pod(name)
        self.place.submit_one(workloads.pod(name, group="g"))

    def close(self, row: int) -> None:
        """The node takes no pods any more, as if it were about to be lost."""
        self.place.change_node(self.nodes[row], {"spec": {"unschedulable": True}})
        self.place.wait_node(self.nodes[row], takes_pods=False)


def test_a_killed_pod_comes_back_into_its_rack(place: Place) -> None:
    """Volcano's cases 2.3, 5.3, 9.5: pod of job will be rescheduled to same hypernode."""
    racks = Racks(place, 2, full=[0])
    place.wait_bound("g", 2)
    [first, last] = racks.rows()
    racks.make_anew(on=last)
    place.wait_bound("g", 2)
    assert {first // 3} == {row // 3 for row in racks.rows()}


def test_the_member_of_a_lost_node_is_replaced_inside_its_rack(place: Place) -> None:
    racks = Racks(place, 2, full=[1])
    place.wait_bound("g", 2)
    assert racks.rows() == [0, 2]
    place.delete_pod("other-1")
    racks.close(2)
    racks.make_anew(on=2)
    place.wait_bound("g", 2)
    assert racks.rows() == [0, 1]


def test_the_member_of_a_node_that_is_deleted_is_replaced_inside_its_rack(place: Place) -> None:
    """Its pod goes by force, as its node cannot tell that it has ended."""
    racks = Racks(place, 2, full=[1])
    place.wait_bound("g", 2)
    assert racks.rows() == [0, 2]
    place.delete_pod("other-1")
    [lost] = [p for p in place.bound("g") if workloads.node_of(p) == racks.nodes[2]]
    place.drop_node(racks.nodes[2])
    name = lost["metadata"]["name"]
    place.delete_pod(name)
    place.submit_one(workloads.pod(name, group="g"))
    place.wait_bound("g", 2)
    assert racks.rows() == [0, 1]


def test_no_member_leaves_its_rack_when_a_deleted_node_has_left_no_room_there(
    place: Place,
) -> None:
    racks = Racks(place, 2, full=[1])
    place.wait_bound("g", 2)
    [lost] = [p for p in place.bound("g") if workloads.node_of(p) == racks.nodes[2]]
    place.drop_node(racks.nodes[2])
    name = lost["metadata"]["name"]
    place.delete_pod(name)
    place.submit_one(workloads.pod(name, group="g"))
    place.wait_summary("g", "no domain of tier <= 1 has room for 1 pod of cpu 1")
    assert racks.rows() == [0]
    place.delete_pod("other-1")
    place.wait_bound("g", 2)
    assert racks.rows() == [0, 1]


def test_a_rack_that_cannot_hold_the_lost_member_is_told_of_with_numbers(place: Place) -> None:
    """The other rack is empty, and no member goes there."""
    racks = Racks(place, 2, full=[1])
    place.wait_bound("g", 2)
    assert racks.rows() == [0, 2]
    racks.close(2)
    racks.make_anew(on=2)
    told = place.wait_summary("g", f"no node of {racks.names['a']} takes any of them")
    assert "no domain of tier <= 1 has room for 1 pod of cpu 1" in told
    place.delete_pod("other-1")
    place.wait_bound("g", 2)
    assert racks.rows() == [0, 1]


def test_a_gang_that_waits_is_placed_by_the_tree_as_it_is_by_then(place: Place) -> None:
    racks = Racks(place, 4)
    says = "no domain of tier <= 1 has room for 4 pods of cpu 1"
    place.wait_summary("g", says)
    place.add_hyper_node("c", 1, *racks.nodes[1:5])
    place.wait_bound("g", 4)
    assert racks.rows() == [1, 2, 3, 4]


def test_a_gang_that_comes_before_all_hyper_nodes_says_so_and_starts_with_them(
    place: Place,
) -> None:
    nodes = place.add_nodes(4, cpu="1")
    place.add_gang("g", 2, spec={"networkTopology": {"mode": "hard", "highestTierName": "rack"}})
    place.wait_summary("g", "the network has no tier rack; the cluster has no HyperNodes yet")
    assert not place.bound("g")
    place.add_hyper_node("a", 1, *nodes[::2], tier_name="rack")
    place.wait_bound("g", 2)
    assert {workloads.node_of(pod) for pod in place.bound("g")} == set(nodes[::2])


def test_a_gang_that_waits_does_not_get_a_rack_that_is_gone(place: Place) -> None:
    racks = Racks(place, 3, full=[0, 3])
    place.wait_summary("g", "no domain of tier <= 1 has room for 3 pods of cpu 1")
    place.drop_hyper_node(racks.names["a"])
    place.delete_pod("other-0")
    place.add_gang("rest", 5)
    place.wait_bound("rest", 5)
    assert not place.bound("g")
    place.wait_summary("g", "no domain of tier <= 1 has room for 3 pods of cpu 1")


def test_members_that_run_stay_when_the_tree_changes_and_new_ones_follow_them(place: Place) -> None:
    racks = Racks(place, 2, full=[2])
    place.wait_bound("g", 2)
    assert racks.rows() == [0, 1]
    place.drop_hyper_node(racks.names["a"])
    place.drop_hyper_node(racks.names["b"])
    place.add_hyper_node("c", 1, racks.nodes[0], racks.nodes[5])
    place.add_hyper_node("d", 1, *racks.nodes[1:5])
    assert racks.rows() == [0, 1]
    racks.close(1)
    racks.make_anew(on=1)
    place.wait_bound("g", 2)
    assert racks.rows() == [0, 5]


def test_members_that_are_in_no_common_rack_any_more_stay_and_are_told_of(place: Place) -> None:
    racks = Racks(place, 3)
    place.wait_bound("g", 3)
    (low,) = {row // 3 * 3 for row in racks.rows()}
    place.drop_hyper_node(racks.names["ab"[low // 3]])
    place.add_hyper_node("c", 1, racks.nodes[low])
    racks.close(low + 2)
    racks.make_anew(on=low + 2)
    says = "no domain of tier <= 1 has the nodes of all its running members"
    place.wait_summary("g", says)
    assert racks.rows() == [low, low + 1]
