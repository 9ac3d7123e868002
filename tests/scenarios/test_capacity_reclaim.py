"""reclaim with capacity: queues say themselves what they deserve."""

from __future__ import annotations

import pytest

from tests.clusters.place import Place
from tests.clusters.workloads import deserves
from tests.scenarios.confs import evicting


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return evicting("enqueue, allocate, preempt, reclaim, backfill", name="capacity")


def test_two_queues_give_back_what_two_others_deserve(place: Place) -> None:
    """Case 11: Multi reclaimed queue.

    They hold eight between them and keep what they deserve, one each.
    """
    low, high = place.add_priority_class("low", 10), place.add_priority_class("high", 10000)
    place.add_nodes(4, cpu="2")
    amounts = {"one": 1, "two": 1, "three": 2, "four": 4}
    queues = {name: place.add_queue(name, **deserves(cpu)) for name, cpu in amounts.items()}
    for name in ("one", "two"):
        place.add_gang(name, 4, minimum=1, rank=low, spec={"queue": queues[name]})
        place.wait_bound(name, 4)
    jobs = {
        "third": ("three", "2"),
        "fourth": ("four", "2"),
        "a": ("four", "1"),
        "b": ("four", "1"),
    }
    for name, (queue, cpu) in jobs.items():
        place.add_gang(name, 1, cpu=cpu, rank=high, spec={"queue": queues[queue]})
        place.wait_bound(name, 1)
    assert len(place.bound("one")) == len(place.bound("two")) == 1
