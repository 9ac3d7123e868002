"""capacity, flat: deserved for the order, capability for the limit."""

import pytest

from app.core.policy import Vote
from app.model.ids import QueueName
from app.model.reason import Cause, Holder, Shortfall
from app.model.snapshot import QueueUsage
from tests.builders import GIB, make_gang, make_node, make_queue, make_snapshot
from tests.core.plugins.sessions import (
    amounts_of,
    claiming,
    holding,
    open_plugin,
    room,
    sized_task,
)

NODES = (make_node("n", cpu=10_000, memory=100 * GIB, pods=1000),)
A, B = QueueName("a"), QueueName("b")


def test_the_smaller_share_of_what_is_deserved_goes_first() -> None:
    queues = (
        make_queue("a", deserved=amounts_of(cpu=8)),
        make_queue("b", deserved=amounts_of(cpu=2)),
    )
    gangs = (holding("a", cpu=3, queue="a"), holding("b", cpu=1, queue="b"))
    hooks, _ = open_plugin("capacity", make_snapshot(nodes=NODES, queues=queues, gangs=gangs))
    assert hooks.queue_order
    assert hooks.queue_order(A, B) < 0


def test_higher_queue_priority_goes_first() -> None:
    queues = (make_queue("a"), make_queue("b", priority=2))
    hooks, _ = open_plugin("capacity", make_snapshot(nodes=NODES, queues=queues))
    assert hooks.queue_order
    assert hooks.queue_order(A, B) > 0


def test_of_equal_shares_the_queue_that_deserves_something_goes_first() -> None:
    queues = (make_queue("a"), make_queue("b", deserved=amounts_of(cpu=2)))
    gangs = (holding("b", cpu=2, queue="b"),)
    hooks, _ = open_plugin("capacity", make_snapshot(nodes=NODES, queues=queues, gangs=gangs))
    assert hooks.queue_order
    assert hooks.queue_order(B, A) < 0
    assert hooks.queue_order(A, QueueName("default")) == 0


def test_deserved_is_at_least_the_guarantee_and_at_most_the_capability() -> None:
    queues = (
        make_queue("a", deserved=amounts_of(cpu=8), capability=amounts_of(cpu=4)),
        make_queue("b", deserved=amounts_of(cpu=1), guarantee=amounts_of(cpu=4)),
    )
    gangs = (holding("a", cpu=2, queue="a"), holding("b", cpu=2, queue="b"))
    hooks, _ = open_plugin("capacity", make_snapshot(nodes=NODES, queues=queues, gangs=gangs))
    assert hooks.queue_order
    assert hooks.queue_order(A, B) == 0


def test_claims_and_placements_stay_within_the_capability() -> None:
    queue = make_queue("a", deserved=amounts_of(cpu=1), capability=amounts_of(cpu=4))
    gang = make_gang(
        "g", queue=A, waiting=tuple(sized_task(f"g-{i}", cpu=2, gib=0) for i in range(3))
    )
    snapshot = make_snapshot(nodes=NODES, queues=(queue,), gangs=(gang,))
    hooks, ledger = open_plugin("capacity", snapshot)
    assert hooks.enqueueable
    assert hooks.allocatable
    assert hooks.overused is None
    assert hooks.enqueueable(claiming("fits", cpu=4, queue="a")).vote is Vote.PERMIT
    assert hooks.enqueueable(make_gang("free", queue=A)).vote is Vote.PERMIT
    for task in gang.waiting[:2]:
        assert hooks.allocatable(A, task) is None
        ledger.place(gang, task, node=0)

    refusal = hooks.allocatable(A, gang.waiting[2])
    assert refusal is not None
    assert refusal.cause is Cause.QUEUE_QUOTA
    assert refusal.shortfalls == (Shortfall("cpu", asked=2000, free=0, limit=4000),)
    assert hooks.enqueueable(claiming("late", cpu=1, queue="a")).refusal == refusal.__class__(
        cause=Cause.QUEUE_QUOTA,
        where="a",
        shortfalls=(Shortfall("cpu", asked=1000, free=0, limit=4000),),
        detail="queue resource quota insufficient: insufficient cpu",
    )


@pytest.mark.parametrize("tree", [False, True], ids=["flat", "tree"])
@pytest.mark.parametrize(("cpu", "expected"), [(2, Vote.PERMIT), (2.001, Vote.REJECT)])
def test_claims_count_and_members_beyond_the_minimums_do_not(
    tree: bool, cpu: float, expected: Vote
) -> None:
    queue = make_queue("a", capability=amounts_of(cpu=4))
    usage = QueueUsage(room(cpu=3), room(cpu=3), room(cpu=1), room(cpu=2), groups=3)
    snapshot = make_snapshot(nodes=NODES, queues=(queue,), usage={A: usage})
    hooks, _ = open_plugin("capacity", snapshot, switches={"enableHierarchy": tree})
    assert hooks.enqueueable
    assert hooks.enqueueable(claiming("g", cpu=cpu, queue="a")).vote is expected


def test_resources_that_the_capability_does_not_name_are_unlimited_but_for_the_cluster() -> None:
    queue = make_queue("a", capability=amounts_of(cpu=4))
    hooks, _ = open_plugin("capacity", make_snapshot(nodes=NODES, queues=(queue,)))
    assert hooks.enqueueable
    assert hooks.enqueueable(claiming("fits", cpu=1, gib=100, queue="a")).vote is Vote.PERMIT
    assert hooks.enqueueable(claiming("big", cpu=1, gib=101, queue="a")).vote is Vote.REJECT


def test_a_queue_that_caps_a_resource_no_node_has_is_no_obstacle() -> None:
    queue = make_queue("a", capability=amounts_of(cpu=4, **{"example.com/fpga": 3}))
    hooks, _ = open_plugin("capacity", make_snapshot(nodes=NODES, queues=(queue,)))
    assert hooks.enqueueable
    assert hooks.enqueueable(claiming("fits", cpu=4, queue="a")).vote is Vote.PERMIT


def test_a_queue_that_others_guarantees_keep_small_is_told_whose() -> None:
    queues = (
        make_queue("a", capability=amounts_of(cpu=8)),
        make_queue("b", guarantee=amounts_of(cpu=6)),
    )
    hooks, _ = open_plugin("capacity", make_snapshot(nodes=NODES, queues=queues))
    assert hooks.enqueueable
    refusal = hooks.enqueueable(claiming("big", cpu=5, queue="a")).refusal
    assert refusal is not None
    assert (refusal.cause, refusal.where) == (Cause.QUEUE_ROOM, "a")
    assert refusal.shortfalls == (Shortfall("cpu", asked=5000, free=4000, limit=4000),)
    assert refusal.holders == (Holder("guarantee of queue b", "cpu", 6000),)
