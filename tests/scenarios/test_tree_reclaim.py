"""reclaim in a tree of queues: capacity with `enableHierarchy`."""

from __future__ import annotations

import pytest

from tests.clusters.place import Place
from tests.clusters.workloads import deserves
from tests.scenarios.confs import evicting


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    actions = "enqueue, allocate, preempt, reclaim, backfill"
    return evicting(actions, name="capacity", enableHierarchy=True)


def test_a_queue_beside_the_tree_gives_back_and_a_sibling_does_not(place: Place) -> None:
    """Case 12: Multi reclaimed queue, of a tree.

    In Volcano's test there is room for all; here the queue beside holds two more than it deserves.
    What that frees beyond the need is idle, and the sibling borrows it.
    """
    place.add_nodes(4, cpu="2")
    above = place.add_queue("above", parent="root", **deserves(4))
    beside = place.add_queue("beside", parent="root", **deserves(4))
    one, two = (place.add_queue(name, parent=above, **deserves(2)) for name in ("one", "two"))
    place.add_gang("beside", 3, minimum=1, cpu="2", spec={"queue": beside})
    place.wait_bound("beside", 3)
    place.add_gang("one", 1, cpu="2", spec={"queue": one})
    place.wait_bound("one", 1)

    place.add_gang("two", 1, spec={"queue": two})
    place.wait_bound("two", 1)
    place.add_gang("more", 1, spec={"queue": one})
    place.wait_bound("more", 1)
    assert len(place.bound("beside")) == 2
    assert len(place.bound("one")) == 1
