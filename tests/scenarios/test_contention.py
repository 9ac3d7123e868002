"""Room is taken back: by priority inside a queue, and by share between queues."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clusters.place import Place

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    """The conf beside the shipped one, which evicts."""
    path = ROOT / "scheduler-config" / "volcano-scheduler-preempting.conf"
    return path.read_text(encoding="utf-8")


def test_a_gang_takes_the_room_of_a_lower_one_whole(place: Place) -> None:
    urgent = place.add_priority_class("urgent", 1000)
    place.add_nodes(2, cpu="2")
    place.add_gang("low", 4)
    place.wait_bound("low", 4)
    place.add_gang("high", 3, spec={"priorityClassName": urgent}, priorityClassName=urgent)
    place.wait_bound("high", 3)
    assert place.bound("low") == []


def test_a_gang_of_the_same_priority_waits(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.add_gang("first", 2)
    place.wait_bound("first", 2)
    place.add_gang("second", 2)
    place.wait_summary("second", "same priority")
    assert len(place.bound("first")) == 2


def test_a_queue_takes_back_its_share(place: Place) -> None:
    place.add_nodes(2, cpu="2")
    ours, theirs = place.add_queue("ours"), place.add_queue("theirs")
    for number in range(4):
        place.add_gang(f"theirs-{number}", 1, spec={"queue": theirs})
        place.wait_bound(f"theirs-{number}", 1)
    place.add_gang("ours", 2, spec={"queue": ours})
    place.wait_bound("ours", 2)
    assert sum(len(place.bound(f"theirs-{number}")) for number in range(4)) == 2
