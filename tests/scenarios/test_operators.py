"""Groups as operators make them: with `minResources` of more pods than the minimum takes.

Spark and LeaderWorkerSet ask for one pod at once and name what all of them will ask for, so that no
two of them start where only one has room for its other pods.
"""

from __future__ import annotations

from tests.clusters import workloads
from tests.clusters.place import Place

ALL = {"cpu": "6"}
"""A driver and two executors of 2 cores each: more than a node has."""


def test_no_driver_starts_where_there_is_no_room_for_its_executors(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    place.add_group("first", 1, minResources=ALL)
    place.wait_phase("first", "Inqueue")
    place.add_group("second", 1, minResources=ALL)
    place.wait_condition("second", "Reserved", "False", says="cpu asked 6, free ")
    place.wait_phase("second", "Pending")
    place.submit([workloads.pod("first-0", group="first", cpu="2")])
    place.wait_pod_bound("first-0")
    place.submit([workloads.pod("second-0", group="second", cpu="2")])
    place.wait_summary("second", "cpu asked 6, free ")
    expect_all_executors_before_the_second(place)


def test_nor_where_the_driver_that_comes_first_is_of_the_group_that_came_later(
    place: Place,
) -> None:
    place.add_nodes(2, cpu="4")
    place.add_group("first", 1, minResources=ALL)
    place.wait_phase("first", "Inqueue")
    place.add_group("second", 1, minResources=ALL)
    place.submit([workloads.pod("second-0", group="second", cpu="2")])
    place.wait_summary("second", "cpu asked 6, free ")
    place.submit([workloads.pod("first-0", group="first", cpu="2")])
    place.wait_pod_bound("first-0")
    expect_all_executors_before_the_second(place)


def expect_all_executors_before_the_second(place: Place) -> None:
    """The first has its driver; the second waits until all of the first is gone."""
    assert not place.bound("second")

    place.submit(workloads.pod(f"first-{at}", group="first", cpu="2") for at in (1, 2))
    place.wait_bound("first", 3)
    assert not place.bound("second")
    place.delete_gang("first")
    place.wait_pod_bound("second-0")
