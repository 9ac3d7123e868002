"""Groups that are parted (`subGroupPolicy`): sub-groups run whole, and enough of them or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.place import Place

PAIR = "example.com/pair"


def in_pairs(least: int) -> list[dict[str, Any]]:
    """Members with the same value of the label are a pair; so many pairs must be whole."""
    chosen = {"matchExpressions": [{"key": PAIR, "operator": "Exists"}]}
    return [
        {
            "name": "pairs",
            "labelSelector": chosen,
            "matchLabelKeys": [PAIR],
            "subGroupSize": 2,
            "minSubGroups": least,
        }
    ]


def pairs(group: str, *names: str) -> Iterator[Object]:
    """The pods of these pairs, the first of each before the second of any."""
    for member in "ab":
        for name in names:
            pod = workloads.pod(f"{group}-{name}-{member}", group=group)
            pod["metadata"]["labels"][PAIR] = name
            yield pod


def bound_pairs(place: Place, group: str) -> dict[str, int]:
    """How many members of each pair have nodes."""
    return dict(Counter(pod["metadata"]["labels"][PAIR] for pod in place.bound(group)))


def test_a_pair_is_bound_whole_and_another_waits_whole(place: Place) -> None:
    place.add_nodes(1, cpu="3")
    place.add_group("g", 2, subGroupPolicy=in_pairs(1))
    place.submit(pairs("g", "x", "y"))

    place.wait_bound("g", 2)
    place.wait_phase("g", "Running")
    place.add_gang("after", 1)
    place.wait_bound("after", 1)
    assert list(bound_pairs(place, "g").values()) == [2]

    place.delete_gang("after")
    place.add_nodes(1, cpu="1")
    place.wait_bound("g", 4)


def test_a_group_without_room_for_enough_pairs_waits_whole(place: Place) -> None:
    place.add_nodes(1, cpu="3")
    place.add_group("g", 2, subGroupPolicy=in_pairs(2))
    place.submit(pairs("g", "x", "y"))

    sentence = "4/4 tasks in gang unschedulable: queue default: cpu asked 4, free 3 of 3"
    place.wait_condition("g", "Unschedulable", says=sentence)
    assert not place.bound("g")
    place.add_nodes(1, cpu="1")
    place.wait_bound("g", 4)


def test_a_group_of_which_too_few_pairs_exist_waits_whole(place: Place) -> None:
    place.add_nodes(1, cpu="9")
    place.add_group("g", 2, subGroupPolicy=in_pairs(2))
    place.submit(pod for pod in pairs("g", "x", "y") if pod["metadata"]["name"] != "g-y-b")

    told = place.wait_condition(
        "g", "Unschedulable", says="Not enough valid subGroups of each task for gang-scheduling"
    )
    assert told["reason"] == "NotEnoughPodsOfTask"
    place.wait_summary("g", "task pairs: sub-groups asked 2, present 1")
    assert not place.bound("g")
    place.submit(pod for pod in pairs("g", "y") if pod["metadata"]["name"] == "g-y-b")
    place.wait_bound("g", 4)
