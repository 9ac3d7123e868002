"""What a queue may hold is freed by victims on any node, and the answer says so in numbers."""

from dataclasses import replace

import numpy as np
import pytest

from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.workload import Queue
from tests.builders import make_queue
from tests.core.actions.rigs import Outcome, cores, gang_of, policies
from tests.core.contended import (
    RunningGang,
    contended,
    eviction_for,
    running_gang,
    terminating,
    victims,
)

ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
WHOLE = PluginConf("gang", switches={"enablePreemptable": False, "enableReclaimable": False})
FLAT = policies((("priority", WHOLE), ("predicates", "capacity")), ACTIONS)
TREE = policies(
    (
        ("priority", WHOLE),
        ("predicates", PluginConf("capacity", switches={"enableHierarchy": True})),
    ),
    ACTIONS,
)
SHARED = policies((("priority", WHOLE), ("predicates", "proportion")), ACTIONS)
CAPPED = make_queue("a", capability=(("cpu", 4000),))
ROOT = make_queue("root")
TOP = make_queue("top", parent=QueueName("root"), capability=(("cpu", 4000),))


def below(name: str, *, cpu: int) -> Queue:
    """A queue below ``top`` that deserves so many cores."""
    return make_queue(name, parent=QueueName("top"), deserved=(("cpu", cpu * 1000),))


def singles(count: int, *, nodes: int, queue: str = "a", priority: int = 0) -> list[RunningGang]:
    """Single pods of one core, spread over the nodes."""
    return [
        running_gang(f"{queue}{priority}{i}", [i % nodes], queue=queue, priority=priority)
        for i in range(count)
    ]


def asks(count: int, *, queue: str = "a", priority: int = 9) -> Gang:
    """A gang of that many cores."""
    return gang_of("high", count, queue=QueueName(queue), priority=priority)


def witnesses(outcome: Outcome) -> list[tuple[object, object, object]]:
    """Why each victim is needed: the bound, the queue, and how much there would be."""
    units = eviction_for(outcome, "high").certificate["units"]
    assert isinstance(units, list)
    found = [unit["witness"] for unit in units]
    return [(each.get("bound"), each.get("of"), each.get("have")) for each in found]


def test_a_full_queue_is_freed_though_nodes_have_room() -> None:
    outcome = contended(
        asks(2), running=singles(4, nodes=2), nodes=cores(8, 8), queues=(CAPPED,), by=FLAT
    )
    assert witnesses(outcome) == [("queue", "a", 1000)] * 2


def test_pods_of_other_queues_do_not_free_a_full_queue() -> None:
    running = [
        *singles(3, nodes=1, priority=9),
        *singles(1, nodes=1),
        *singles(4, nodes=1, queue="b"),
    ]
    outcome = contended(
        asks(2), running=running, nodes=cores(16), queues=(CAPPED, make_queue("b")), by=FLAT
    )
    assert victims(outcome) == set()
    assert "they hold cpu 1 of queue a, whose limit is short of 2" in outcome.text("high")


def test_a_full_ancestor_is_freed_by_the_queues_below_it() -> None:
    queues = (ROOT, TOP, below("a", cpu=2), below("b", cpu=2))
    outcome = contended(
        asks(2), running=singles(4, nodes=2, queue="b"), nodes=cores(8, 8), queues=queues, by=TREE
    )
    assert witnesses(outcome) == [("queue", "top", 1000)] * 2


def ending(name: str, row: int, *, queue: str = "default") -> RunningGang:
    """A pod of one core that terminates: its group holds nothing more."""
    there = terminating(running_gang(name, [row], queue=queue, priority=9))
    gang = there.gang
    nothing = np.zeros_like(gang.allocated)
    gone = replace(gang, allocated=nothing, releasing=gang.allocated, request=nothing)
    return replace(there, gang=gone)


@pytest.mark.parametrize("by", [SHARED, FLAT], ids=["proportion", "capacity"])
def test_a_full_queue_waits_for_its_terminating_pods_instead_of_evicting(by: Policies) -> None:
    low = running_gang("low", [1])
    high = gang_of("high", 1, priority=9)
    outcome = contended(high, running=[ending("end", 0), low], nodes=cores(1, 1), by=by)
    assert victims(outcome) == set()


@pytest.mark.parametrize("by", [FLAT, TREE], ids=["flat", "tree"])
def test_a_queue_at_its_limit_waits_for_its_terminating_pods_though_nodes_have_room(
    by: Policies,
) -> None:
    queues = (ROOT, make_queue("a", parent=QueueName("root"), capability=(("cpu", 2000),)))
    running = [ending("end", 0, queue="a"), *singles(1, nodes=1)]
    outcome = contended(asks(1), running=running, nodes=cores(4, 4), queues=queues, by=by)
    assert victims(outcome) == set()


def test_what_terminates_is_not_freed_once_more_by_victims() -> None:
    running = [ending("end", 0, queue="a"), *singles(3, nodes=1)]
    outcome = contended(asks(2), running=running, nodes=cores(8), queues=(CAPPED,), by=FLAT)
    assert len(victims(outcome)) == 1
