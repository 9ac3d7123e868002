"""Groups that no node could take, whatever runs there: they keep nothing from others."""

from __future__ import annotations

from tests.clusters import workloads
from tests.clusters.place import Place

GPU = "example.com/card"


def test_a_pod_larger_than_any_node_keeps_its_queue_for_nobody(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    queue = place.add_queue("eight", capability={"cpu": "8"})
    place.submit_one(workloads.pod("big", queue=queue, cpu="5"))
    place.wait_summary("big", says="more than any node has that the pod may go to")

    place.add_gang("fits", 2, cpu="4", spec={"queue": queue, "minResources": {"cpu": "8"}})
    place.wait_bound("fits", 2)
    assert not workloads.node_of(place.pod("big"))

    place.delete_gang("fits")
    place.add_nodes(1, cpu="6")
    place.wait_pod_bound("big")


def test_a_group_without_pods_that_asks_for_more_than_all_nodes_have_claims_nothing(
    place: Place,
) -> None:
    place.add_nodes(4, cpu="4", extra={GPU: "2"})
    place.add_group("left", 1, minResources={GPU: "9"})
    place.wait_condition("left", "Reserved", "False", says="more than the whole cluster has")
    _wait_for_three(place)


def test_a_group_without_pods_that_would_fit_no_node_as_one_pod_keeps_room_as_a_sum(
    place: Place,
) -> None:
    """It may be of Spark, and ask for a driver and its executors: their time is limited."""
    place.add_nodes(4, cpu="4", extra={GPU: "2"})
    place.add_group("left", 1, minResources={GPU: "4"})
    place.wait_condition("left", "Reserved", "False", says="pods asked 1, present 0")
    place.submit([workloads.pod("small", resources=_cards("2"))])
    place.wait_pod_bound("small")
    place.submit([workloads.pod("large", resources=_cards("2"))])
    place.wait_pod_bound("large")
    place.add_gang("job", 2, spec={"minResources": {GPU: "4"}}, resources=_cards("2"))
    place.wait_summary("job", says=f"held by {place.name}/left ({GPU} 4)")
    place.delete_gang("left")
    place.wait_bound("job", 2)


def _wait_for_three(place: Place) -> None:
    place.add_gang("job", 3, spec={"minResources": {GPU: "6"}}, resources=_cards("2"))
    place.wait_bound("job", 3)


def _cards(count: str) -> dict[str, dict[str, str]]:
    return {"requests": {"cpu": "1", GPU: count}, "limits": {GPU: count}}
