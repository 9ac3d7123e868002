"""gangpreempt and gangreclaim: members that a gang can do without go first, then whole gangs.

The scenarios are the specs of ``gangevict/gangevict.go`` (volcano.md §9.2) by the names they have
there, with the configuration that they have. A tight gang never goes in part here, whatever
switches say, and no gang goes that could have stayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.workloads import deserves
from tests.scenarios.test_sub_groups import bound_pairs, in_pairs, pairs

CONF = """
actions: "allocate, backfill, gangreclaim, gangpreempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
  - name: capacity
    enableHierarchy: false
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
"""
ROLES = {"ps": 1, "worker": 2}


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


class Ground:
    """Four nodes of one core, three priority classes, and queues that deserve so many cores."""

    def __init__(self, place: Place, **deserved: int) -> None:
        self.place = place
        self.nodes = place.add_nodes(4, cpu="1")
        self.queues = {
            name: place.add_queue(name, **deserves(cpu)) for name, cpu in deserved.items()
        }
        values = {"low": 10, "middle": 50, "high": 100}
        self.ranks = {name: place.add_priority_class(name, value) for name, value in values.items()}

    def add(self, queue: str, name: str, size: int, *, rank: str = "low", **given: Any) -> None:
        """A gang of the queue whose members ask for a core each."""
        spec = {"queue": self.queues[queue], **given.pop("spec", {})}
        self.place.add_gang(name, size, rank=self.ranks[rank], spec=spec, **given)

    def run(self, queue: str, name: str, size: int, **given: Any) -> None:
        """The same, and wait until all its members are bound."""
        self.add(queue, name, size, **given)
        self.place.wait_bound(name, size)

    def bound(self, *names: str) -> tuple[int, ...]:
        """How many members each gang has on nodes."""
        return tuple(len(self.place.bound(name)) for name in names)

    def run_in_roles(self, queue: str, name: str) -> None:
        """A gang of one ps and three workers, which needs three of them: the ps and two."""
        roles = ["ps", "worker", "worker", "worker"]
        spec: dict[str, Any] = {"queue": self.queues[queue], "minTaskMember": ROLES}
        self.place.add_group(name, 3, priorityClassName=self.ranks["low"], **spec)
        self.place.submit(
            workloads.pod(
                f"{name}-{role}-{number}",
                group=name,
                role=role,
                priorityClassName=self.ranks["low"],
            )
            for number, role in enumerate(roles)
        )
        self.place.wait_bound(name, 4)

    def run_in_pairs(self, queue: str, name: str) -> None:
        """A gang of two pairs, which needs one of them."""
        spec: dict[str, Any] = {"queue": self.queues[queue], "subGroupPolicy": in_pairs(1)}
        self.place.add_group(name, 2, priorityClassName=self.ranks["low"], **spec)
        pods = list(pairs(name, "x", "y"))
        for pod in pods:
            pod["spec"]["priorityClassName"] = self.ranks["low"]
        self.place.submit(pods)
        self.place.wait_bound(name, 4)

    def roles(self, name: str) -> Mapping[str, int]:
        """How many members of each role are on nodes."""
        return Counter(workloads.role_of(pod) for pod in self.place.bound(name))


# gangpreempt ------------------------------------------------------------------------------------


def test_members_beyond_the_minimum_go_and_the_gang_stays(place: Place) -> None:
    """GP-1: safe-bundle preemption evicts surplus tasks, victim gang survives."""
    ground = Ground(place, q=4)
    ground.run("q", "low", 4, minimum=2)
    ground.run("q", "high", 2, rank="high")
    assert ground.bound("low") == (2,)
    place.wait_event("low", "Evict", says="because of gangpreempt")


def test_each_of_two_gangs_gives_what_it_can_do_without(place: Place) -> None:
    """GP-2: safe bundles harvested across multiple gangs, zero gangs broken."""
    ground = Ground(place, q=4)
    ground.run("q", "a", 2, minimum=1)
    ground.run("q", "b", 2, minimum=1)
    ground.run("q", "high", 2, rank="high")
    assert ground.bound("a", "b") == (1, 1)


def test_one_of_two_tight_gangs_goes_whole(place: Place) -> None:
    """GP-3: whole-bundle eviction breaks exactly one gang when no surplus exists."""
    ground = Ground(place, q=4)
    ground.run("q", "a", 2)
    ground.run("q", "b", 2)
    ground.run("q", "high", 2, rank="high")
    assert sorted(ground.bound("a", "b")) == [0, 2]


def test_two_tight_gangs_go_where_both_are_needed(place: Place) -> None:
    """GP-4: whole-bundle eviction breaks both gangs for large preemptor."""
    ground = Ground(place, q=4)
    ground.run("q", "a", 2)
    ground.run("q", "b", 2)
    ground.run("q", "high", 4, rank="high")
    assert ground.bound("a", "b") == (0, 0)


def test_a_tight_gang_goes_whole_for_half_of_its_room(place: Place) -> None:
    """GP-5: basic gang preemption of a lower-priority gang.

    The room of two is left over: no part of a gang runs.
    """
    ground = Ground(place, q=4)
    ground.run("q", "low", 4)
    ground.run("q", "high", 2, rank="high")
    assert ground.bound("low") == (0,)


def test_no_gang_is_preempted_in_another_queue(place: Place) -> None:
    """GP-6: gang preemption does not cross queue boundaries."""
    ground = Ground(place, q=2)
    kept = place.add_queue("kept", reclaimable=False, **deserves(2))
    ground.queues["kept"] = kept
    ground.run("kept", "low", 4)
    ground.add("q", "high", 2, rank="high")
    place.wait_summary("high", "gangreclaim: 4 candidates: 4 of queues that are not reclaimable")
    assert ground.bound("low", "high") == (4, 0)


def test_no_gang_of_equal_priority_is_preempted(place: Place) -> None:
    """GP-7: equal-priority gang is not preempted."""
    ground = Ground(place, q=4)
    ground.run("q", "first", 4, rank="middle")
    ground.add("q", "second", 2, rank="middle")
    place.wait_summary("second", "gangpreempt: 4 candidates: 4 same priority")
    assert ground.bound("first", "second") == (4, 0)


def test_no_gang_goes_for_one_that_needs_more_than_lower_gangs_have(place: Place) -> None:
    """GP-8: medium-priority preemptor cannot evict high-priority victims."""
    ground = Ground(place, q=4)
    ground.run("q", "high", 2, rank="high")
    ground.run("q", "low", 2)
    ground.add("q", "middle", 4, rank="middle")
    place.wait_summary("middle", "gangpreempt: 4 candidates: 2 higher priority")
    assert ground.bound("high", "low", "middle") == (2, 2, 0)


def test_a_role_that_has_its_minimum_stays_when_others_are_preempted(place: Place) -> None:
    """GP-R1: per-role surplus gate keeps role-tight tasks safe."""
    ground = Ground(place, q=4)
    ground.run_in_roles("q", "low")
    ground.run("q", "high", 1, rank="high")
    assert ground.roles("low") == ROLES


def test_pods_are_preempted_of_one_sub_group_and_the_other_stays_whole(place: Place) -> None:
    """GP-S1: sub-group group-slack caps safe, gang preserved."""
    ground = Ground(place, q=4)
    ground.run_in_pairs("q", "low")
    ground.run("q", "high", 2, rank="high")
    assert list(bound_pairs(place, "low").values()) == [2]


# gangreclaim ------------------------------------------------------------------------------------


def test_members_beyond_the_minimum_are_reclaimed_and_the_gang_stays(place: Place) -> None:
    """GR-1: safe-bundle reclaim evicts surplus, victim gang survives."""
    ground = Ground(place, ours=2, theirs=2)
    ground.run("theirs", "low", 4, minimum=2)
    ground.run("ours", "taker", 2)
    assert ground.bound("low") == (2,)
    place.wait_event("low", "Evict", says="because of gangreclaim")


def test_one_of_two_tight_gangs_is_reclaimed_whole(place: Place) -> None:
    """GR-2: whole-bundle reclaim breaks exactly one gang when no surplus exists."""
    ground = Ground(place, ours=2, theirs=2)
    ground.run("theirs", "a", 2)
    ground.run("theirs", "b", 2)
    ground.run("ours", "taker", 2)
    assert sorted(ground.bound("a", "b")) == [0, 2]


def test_a_gang_takes_back_what_a_queue_holds_too_much(place: Place) -> None:
    """GR-3: basic gang reclaim from overusing queue.

    One gang of three and one of one hold the queue's four: the one that must go least does.
    """
    ground = Ground(place, ours=1, theirs=3)
    ground.run("theirs", "three", 3)
    ground.run("theirs", "one", 1)
    ground.run("ours", "taker", 1)
    assert ground.bound("three", "one") == (3, 0)


def test_queues_keep_what_they_deserve(place: Place) -> None:
    """GR-4: no reclaim from queues within their deserved."""
    ground = Ground(place, ours=2, second=2, third=2)
    ground.run("second", "b", 2)
    ground.run("third", "c", 2)
    ground.add("ours", "taker", 2)
    place.wait_summary("taker", "gangreclaim: 4 candidates: 4 of queues that hold no more than")
    assert ground.bound("b", "c", "taker") == (2, 2, 0)


def test_a_queue_that_is_not_reclaimable_keeps_more_than_it_deserves(place: Place) -> None:
    """GR-5: reclaim blocked when victim queue is not reclaimable."""
    ground = Ground(place, ours=2)
    ground.queues["kept"] = place.add_queue("kept", reclaimable=False, **deserves(2))
    ground.run("kept", "low", 4, minimum=2)
    ground.add("ours", "taker", 2)
    place.wait_summary("taker", "gangreclaim: 4 candidates: 4 of queues that are not reclaimable")
    assert ground.bound("low", "taker") == (4, 0)


def test_no_pod_is_reclaimed_that_a_guarantee_covers(place: Place) -> None:
    """GR-6: reclaim stops at guarantee boundary.

    Beside the guarantee of another queue a queue deserves what is left of the cluster, two here.
    """
    ground = Ground(place, ours=4)
    two = {"cpu": "2"}
    ground.queues["sure"] = place.add_queue("sure", guarantee={"resource": two}, **deserves(2))
    ground.run("sure", "low", 4, minimum=2)
    ground.add("ours", "taker", 4)
    place.wait_summary("taker", f"queue {ground.queues['ours']} would hold more than it deserves")
    assert ground.bound("low", "taker") == (4, 0)

    place.delete_gang("taker")
    ground.run("ours", "half", 2)
    assert ground.bound("low") == (2,)


def test_a_queue_that_holds_more_than_it_deserves_takes_none_back(place: Place) -> None:
    """GR-7: overused queue is skipped as reclaimer."""
    ground = Ground(place, ours=1, theirs=3)
    ground.run("ours", "a", 2)
    ground.run("theirs", "b", 2)
    ground.add("ours", "taker", 2)
    place.wait_summary("taker", f"queue {ground.queues['ours']} would hold more than it deserves")
    assert ground.bound("a", "b", "taker") == (2, 2, 0)


def test_a_role_that_has_its_minimum_stays_when_others_are_reclaimed(place: Place) -> None:
    """GR-R1: per-role surplus gate keeps role-tight tasks safe."""
    ground = Ground(place, ours=1, theirs=3)
    ground.run_in_roles("theirs", "low")
    ground.run("ours", "taker", 1)
    assert ground.roles("low") == ROLES


def test_pods_are_reclaimed_of_one_sub_group_and_the_other_stays_whole(place: Place) -> None:
    """GR-S1: sub-group group-slack caps safe, gang preserved."""
    ground = Ground(place, ours=2, theirs=2)
    ground.run_in_pairs("theirs", "low")
    ground.run("ours", "taker", 2)
    assert list(bound_pairs(place, "low").values()) == [2]
