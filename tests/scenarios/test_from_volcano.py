"""Objects as Volcano's scheduler and controllers leave them: Pumice goes on with them."""

from __future__ import annotations

from typing import Any

from tests.clusters.place import Place


def least(pods: int) -> dict[str, Any]:
    """`minResources` of that many pods of one core: all that a quota would count (v1.15)."""
    count = str(pods)
    return {
        "count/pods": count,
        "cpu": count,
        "limits.cpu": count,
        "pods": count,
        "requests.cpu": count,
    }


def test_a_group_that_its_controllers_made_is_admitted(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    place.add_gang("made", 8, spec={"minResources": least(8)})
    place.wait_bound("made", 8)
    place.wait_phase("made", "Running")


def test_room_is_kept_for_pods_that_its_controllers_have_not_made(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    place.add_group("empty", 8, minResources=least(8))
    place.wait_condition("empty", "Reserved")
    slots = place.gang_state("empty")["slots"]
    assert sum(map(len, slots.values())) == 8


def test_what_it_waits_for_is_what_nodes_have(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_gang("made", 8, spec={"minResources": least(8)})
    assert place.wait_summary("made", "asked 8").startswith("cluster: cpu asked 8, free 4")
