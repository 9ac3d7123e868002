"""Queues in a tree: the capacity plugin with `enableHierarchy`."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.resources import PODS
from tests.scenarios.confs import conf

CONF = conf("predicates", {"name": "capacity", "enableHierarchy": True}, "nodeorder")


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


def test_children_share_what_their_parent_may_hold(place: Place) -> None:
    place.add_nodes(2, cpu="8")
    parent = place.add_queue("parent", parent="root", capability={"cpu": "4"})
    one = place.add_queue("one", parent=parent)
    two = place.add_queue("two", parent=parent)
    place.add_gang("first", 3, spec={"queue": one})
    place.wait_bound("first", 3)
    place.add_gang("second", 2, spec={"queue": two})

    place.wait_condition(
        "second", "Reserved", "False", says=f"queue {parent}: cpu asked 2, free 1 of 4"
    )
    assert not place.bound("second")

    place.delete_gang("first")
    place.wait_bound("second", 2)


def test_terminating_pods_of_one_child_count_for_the_other(place: Place) -> None:
    place.add_nodes(2, cpu="8")
    parent = place.add_queue("parent", parent="root", capability={"cpu": "4"})
    one = place.add_queue("one", parent=parent)
    two = place.add_queue("two", parent=parent)
    place.add_gang("first", 3, spec={"queue": one}, **workloads.lingering())
    place.wait_bound("first", 3)
    for pod in place.pods("first"):
        place.api.delete(PODS, pod["metadata"]["name"], namespace=place.name)
    place.add_gang("second", 2, spec={"queue": two})

    says = f"queue {parent}: cpu asked 2, free 1 of 4, of which 3 are terminating"
    place.wait_condition("second", "Reserved", "False", reason="QueueQuota", says=says)
    place.delete_gang("first")
    place.wait_bound("second", 2)


def test_a_group_in_a_queue_with_children_stops_the_tree_as_it_does_in_volcano(
    place: Place,
) -> None:
    place.add_nodes(1, cpu="4")
    parent = place.add_queue("parent", parent="root")
    child = place.add_queue("child", parent=parent)
    place.add_gang("above", 1, spec={"queue": parent})
    says = f"queue {parent} has child queues and groups of its own"
    place.wait_condition("above", "Reserved", "False", reason="QueueTreeInvalid", says=says)
    place.add_gang("below", 1, spec={"queue": child})
    place.wait_condition("below", "Reserved", "False", reason="QueueTreeInvalid", says=says)

    place.delete_gang("above")
    place.wait_bound("below", 1)


def test_what_a_sibling_is_guaranteed_is_left_free(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    parent = place.add_queue("parent", parent="root", capability={"cpu": "4"})
    three = {"cpu": "3"}
    sure = place.add_queue("sure", parent=parent, deserved=three, guarantee={"resource": three})
    loose = place.add_queue("loose", parent=parent)
    place.add_gang("loose", 2, spec={"queue": loose})
    held = f"held by guarantee of queue {sure} (cpu 3)"
    place.wait_condition("loose", "Reserved", "False", reason="QueueRoom", says=held)
    place.add_gang("sure", 3, spec={"queue": sure})

    place.wait_bound("sure", 3)
    assert not place.bound("loose")
