"""reclaim: a queue takes back what it deserves from queues that hold more (volcano.md §9.2).

The cases are those of ``schedulingaction/reclaim.go``, by the numbers they have there. In several
of those a node is left free, so that nothing had to be evicted: here the cluster is full.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.resources import QUEUES
from tests.scenarios.confs import evicting

ACTIONS = "enqueue, allocate, preempt, reclaim, backfill"


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return evicting(ACTIONS)


def run(place: Place, queue: str, name: str, size: int = 1, **given: Any) -> None:
    """Add a group of the queue that needs one of its members, and wait until all are bound."""
    place.add_gang(name, size, minimum=1, spec={"queue": queue}, **given)
    place.wait_bound(name, size)


def test_a_new_queue_takes_free_room_first(place: Place) -> None:
    """Case 1: no reclaim when resource is enough."""
    place.add_nodes(4, cpu="1")
    for name in ("one", "two", "three"):
        run(place, place.add_queue(name), name)
    assert all(len(place.bound(name)) == 1 for name in ("one", "two", "three"))


def test_a_group_that_asks_for_more_than_its_queue_deserves_stays_pending(place: Place) -> None:
    """Case 3: no reclaim when job.PodGroup.Status.Phase pending.

    In Volcano no Pending group reclaims. Ours does when all it asks for is admitted with the
    evictions, which these minResources are not.
    """
    place.add_nodes(4, cpu="1")
    one, two = place.add_queue("one"), place.add_queue("two")
    run(place, one, "one", 4)
    place.add_gang("much", 1, spec={"queue": two, "minResources": {"cpu": "3"}})
    place.wait_summary("much", "reclaim: 4 candidates")
    place.wait_phase("much", "Pending")
    assert len(place.bound("one")) == 4

    place.add_gang("little", 1, spec={"queue": two, "minResources": {"cpu": "2"}})
    place.wait_bound("little", 1)
    assert len(place.bound("one")) == 2


def test_no_room_is_taken_back_for_a_queue_that_does_not_exist(place: Place) -> None:
    """Case 4: no reclaim when new queue is not created.

    Volcano's webhook does not let the job in, nor does ours; a PodGroup may be there all the same.
    """
    place.add_nodes(3, cpu="1")
    run(place, place.add_queue("one"), "one", 2)
    run(place, place.add_queue("two"), "two")
    place.add_gang("lost", 1, spec={"queue": f"{place.name}-three"})
    place.wait_condition("lost", "Reserved", "False", reason="QueueMissing")
    assert len(place.bound("one")) == 2
    assert len(place.bound("two")) == 1


def test_priority_counts_for_nothing_between_queues(place: Place) -> None:
    """Case 5: no reclaim when job or task is low-priority.

    Volcano's own test calls that a bug, and passes as the queue does not exist. What a queue
    deserves is its own for jobs of any priority, in Volcano's plugins as in ours.
    """
    low, high = place.add_priority_class("low", 10), place.add_priority_class("high", 10000)
    place.add_nodes(3, cpu="1")
    run(place, place.add_queue("one"), "one", 2, rank=high)
    run(place, place.add_queue("two"), "two", rank=high)
    run(place, place.add_queue("three"), "three", rank=low)
    assert len(place.bound("one")) == len(place.bound("two")) == 1


def test_a_queue_that_holds_what_it_deserves_takes_nothing_back(place: Place) -> None:
    """Case 6: no reclaim when overused."""
    place.add_nodes(3, cpu="1")
    queues = {name: place.add_queue(name) for name in ("one", "two", "three")}
    for name, queue in queues.items():
        run(place, queue, name)
    place.add_gang("more", 1, spec={"queue": queues["three"]})
    place.wait_summary("more", "would hold more than it deserves")
    place.wait_phase("more", "Inqueue")
    assert all(len(place.bound(name)) == 1 for name in queues)


def test_no_room_is_taken_back_on_nodes_that_do_not_suit(place: Place) -> None:
    """Case 7: no reclaim when job not satisfied with predicates.

    A node that suits is no help while its pods are of a queue that holds no more than it deserves.
    """
    ssd = {"disk": "ssd"}
    place.add_nodes(2, cpu="1")
    run(place, place.add_queue("one"), "one", 2)
    place.add_nodes(1, cpu="1", labels=ssd)
    run(place, place.add_queue("two"), "two")
    queue = {"queue": place.add_queue("three")}
    place.add_gang("nowhere", 1, spec=queue, nodeSelector={"disk": "tape"})
    place.wait_summary("nowhere", "never: selector, affinity or taints rule out every node")
    place.delete_gang("nowhere")
    place.add_gang("picky", 1, spec=queue, nodeSelector=ssd)
    place.wait_summary(
        "picky", "reclaim: 3 candidates: 1 of queues that hold no more than they deserve; with"
    )
    assert len(place.bound("one")) == 2
    assert len(place.bound("two")) == 1


def test_no_room_is_taken_back_that_is_too_little(place: Place) -> None:
    """Case 8: no reclaim when task resources less than reclaimable resource."""
    place.add_nodes(3, cpu="1")
    run(place, place.add_queue("one"), "one", 2)
    run(place, place.add_queue("two"), "two")
    place.add_gang("large", 1, cpu="4", spec={"queue": place.add_queue("three")})
    place.wait_summary("large", "cpu asked 4, free 3 of 3; never: more than the whole cluster has")
    place.wait_phase("large", "Inqueue")
    assert len(place.bound("one")) == 2
    assert len(place.bound("two")) == 1


def test_queues_that_are_not_reclaimable_keep_what_they_hold(place: Place) -> None:
    """Case 9: all queues.spec.reclaimable is false, no reclaim."""
    place.add_nodes(3, cpu="1")
    one, two = (place.add_queue(name, reclaimable=False) for name in ("one", "two"))
    run(place, one, "one", 2)
    run(place, two, "two")
    place.add_gang("three", 1, spec={"queue": place.add_queue("three")})
    place.wait_summary("three", "reclaim: 3 candidates: 3 of queues that are not reclaimable")
    assert len(place.bound("one")) == 2

    place.api.patch(QUEUES, one, {"spec": {"reclaimable": True}})
    place.wait_bound("three", 1)
    assert len(place.bound("one")) == len(place.bound("two")) == 1


def test_two_queues_give_back_to_two_others(place: Place) -> None:
    """Case 10: Multi reclaimed queue.

    Replacements of the victims wait: their queues hold what they deserve by now.
    """
    low, high = place.add_priority_class("low", 10), place.add_priority_class("high", 10000)
    place.add_nodes(4, cpu="1")
    queues = {name: place.add_queue(name) for name in ("one", "two", "three", "four")}
    run(place, queues["one"], "one", 2, rank=low)
    run(place, queues["two"], "two", 2, rank=low)
    run(place, queues["three"], "three", rank=high)
    run(place, queues["four"], "four", rank=high)
    assert len(place.bound("one")) == len(place.bound("two")) == 1

    for name in ("one", "two"):
        place.submit_one(workloads.pod(f"{name}-again", group=name, priorityClassName=low))
        place.wait_pod_condition(f"{name}-again", "PodScheduled", "False")
    assert all(len(place.bound(name)) == 1 for name in queues)
