"""capacity with enableHierarchy: limits up the tree, order at the fork."""

from dataclasses import replace
from typing import Any

import pytest

from app.core.ledger import Ledger
from app.core.policy import Hooks, Vote
from app.core.shares import hierarchy
from app.model.amounts import UNLIMITED
from app.model.ids import QueueName
from app.model.reason import Cause, Holder, Refusal, Shortfall
from app.model.workload import Queue
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


def child(name: str, parent: str, **fields: Any) -> Queue:
    return make_queue(name, parent=QueueName(parent), **fields)


TREE = (
    child("eng", "root", capability=amounts_of(cpu=6)),
    child("dev", "eng", guarantee=amounts_of(cpu=2)),
    child("prod", "eng", capability=amounts_of(cpu=5)),
    child("sci", ""),
)


def opened(queues: tuple[Queue, ...], *gangs: Any) -> tuple[Hooks, Ledger]:
    return open_plugin(
        "capacity",
        make_snapshot(nodes=NODES, queues=queues, gangs=gangs),
        switches={"enableHierarchy": True},
    )


def real_cpu(queues: tuple[Queue, ...]) -> dict[str, int]:
    tree = hierarchy.plant(Ledger(make_snapshot(nodes=NODES, queues=queues)))
    return {name: int(vector[0]) for name, vector in tree.real.items()}


def test_limits_flow_down_less_what_siblings_are_guaranteed() -> None:
    assert real_cpu(TREE) == {
        "root": UNLIMITED,
        "default": UNLIMITED,
        "sci": UNLIMITED,
        "eng": 6000,
        "dev": 6000,
        "prod": 4000,
    }


def room_cpu(queues: tuple[Queue, ...]) -> dict[str, int]:
    tree = hierarchy.plant(Ledger(make_snapshot(nodes=NODES, queues=queues)))
    return {name: int(vector[0]) for name, vector in tree.room.items()}


IDLE = tuple(child(name, "root", guarantee=amounts_of(cpu=4)) for name in ("a", "b"))
"""Queues of which nothing is seen but that each keeps four of the ten cores."""


def test_a_queue_may_hold_what_the_cluster_leaves_of_what_its_siblings_are_guaranteed() -> None:
    assert room_cpu((*IDLE, child("c", "root"))) == {
        "root": UNLIMITED,
        "default": 2000,
        "a": 6000,
        "b": 6000,
        "c": 2000,
    }
    assert room_cpu(TREE) == real_cpu(TREE)


def test_guarantees_below_a_queue_without_a_limit_keep_room_there() -> None:
    queues = (child("eng", "root"), child("dev", "eng", guarantee=amounts_of(cpu=2)))
    assert room_cpu((*queues, child("prod", "eng"))) == {
        "root": UNLIMITED,
        "default": UNLIMITED,
        "eng": UNLIMITED,
        "dev": UNLIMITED,
        "prod": 8000,
    }


def test_guarantees_of_idle_queues_keep_no_group_from_being_admitted() -> None:
    hooks, _ = opened((*IDLE, child("c", "root")))
    assert hooks.enqueueable
    assert hooks.allocatable
    assert hooks.permitted
    assert hooks.enqueueable(claiming("big", cpu=500, queue="c")).vote is Vote.PERMIT
    assert hooks.allocatable(QueueName("c"), sized_task(cpu=2)) is None
    refusal = hooks.allocatable(QueueName("c"), sized_task(cpu=3))
    assert refusal is not None
    assert (refusal.cause, refusal.where) == (Cause.QUEUE_ROOM, "c")
    assert [holder.who for holder in refusal.holders] == [
        "guarantee of queue a",
        "guarantee of queue b",
    ]
    assert hooks.permitted(QueueName("c"), sized_task(cpu=3)) is None
    assert hooks.allocatable(QueueName("a"), sized_task(cpu=6)) is None


def test_a_limit_of_the_root_limits_all() -> None:
    queues = (make_queue("root", capability=amounts_of(cpu=3)), *TREE)
    assert real_cpu(queues) == {
        "root": 3000,
        "default": 3000,
        "sci": 3000,
        "eng": 3000,
        "dev": 3000,
        "prod": 1000,
    }


def test_what_the_root_deserves_is_the_sum_of_its_children() -> None:
    queues = (
        child("a", "root", deserved=amounts_of(cpu=3)),
        child("b", "root", deserved=amounts_of(cpu=1), guarantee=amounts_of(cpu=2)),
    )
    tree = hierarchy.plant(Ledger(make_snapshot(nodes=NODES, queues=queues)))
    assert tree.deserved[QueueName("root")][0] == 5000


def test_the_cluster_itself_is_no_limit() -> None:
    hooks, _ = opened(TREE)
    assert hooks.enqueueable
    assert hooks.enqueueable(claiming("big", cpu=500, queue="sci")).vote is Vote.PERMIT


def test_a_group_must_fit_every_queue_above() -> None:
    held = holding("d", cpu=4, queue="dev", min_request=room(cpu=4))
    hooks, ledger = opened(TREE, held)
    assert hooks.enqueueable
    assert hooks.allocatable
    assert hooks.enqueueable(claiming("fits", cpu=2, queue="prod")).vote is Vote.PERMIT
    refusal = hooks.enqueueable(claiming("big", cpu=3, queue="prod")).refusal

    assert refusal is not None
    assert (refusal.cause, refusal.where) == (Cause.QUEUE_QUOTA, "eng")
    assert refusal.shortfalls == (Shortfall("cpu", asked=3000, free=2000, limit=6000),)

    ledger.admit(claiming("fits", cpu=2, queue="prod"))
    assert hooks.enqueueable(claiming("more", cpu=1, queue="dev")).vote is Vote.REJECT
    too_much = hooks.allocatable(QueueName("prod"), sized_task(cpu=3))
    assert too_much is not None
    assert too_much.where == "eng"
    assert hooks.allocatable(QueueName("prod"), sized_task(cpu=2)) is None
    assert hooks.enqueueable(make_gang("free", queue=QueueName("dev"))).vote is Vote.PERMIT


def test_queues_with_children_take_no_groups() -> None:
    hooks, _ = opened(TREE)
    assert hooks.enqueueable
    assert hooks.allocatable
    expected = Refusal(
        Cause.QUEUE_NOT_LEAF,
        where="eng",
        detail="queue eng has child queues: only leaf queues take groups",
    )
    assert hooks.enqueueable(claiming("g", cpu=1, queue="eng")).refusal == expected
    assert hooks.allocatable(QueueName("eng"), sized_task()) == expected


@pytest.mark.parametrize(
    ("queues", "gangs", "where", "detail"),
    [
        pytest.param(
            (child("a", "b"), child("b", "a")),
            (),
            "a",
            "queue a is its own ancestor or below a queue that is",
            id="cycle",
        ),
        pytest.param(
            (child("a", "lost"), child("b", "a")),
            (),
            "a",
            "queue a names lost as its parent, which does not exist",
            id="missing parent",
        ),
        pytest.param(
            TREE,
            (holding("g", cpu=1, queue="eng"),),
            "eng",
            "queue eng has child queues and groups of its own",
            id="group in an inner queue",
        ),
    ],
)
def test_a_broken_tree_admits_and_places_nothing(
    queues: tuple[Queue, ...], gangs: tuple[Any, ...], where: str, detail: str
) -> None:
    hooks, _ = opened(queues, *gangs)
    assert hooks.enqueueable
    assert hooks.allocatable
    expected = Refusal(Cause.QUEUE_BROKEN, where=where, detail=detail)

    assert hooks.enqueueable(claiming("g", cpu=1)).refusal == expected
    assert hooks.enqueueable(make_gang("free")).refusal == expected
    assert hooks.allocatable(QueueName("default"), sized_task()) == expected


def test_a_tree_without_a_root_is_broken() -> None:
    snapshot = make_snapshot(nodes=NODES)
    queues = {name: queue for name, queue in snapshot.queues.items() if name != "root"}
    rootless = replace(snapshot, queues=queues)
    fault = hierarchy.find_fault(Ledger(rootless))

    assert fault == Refusal(Cause.QUEUE_BROKEN, where="root", detail="queue root does not exist")


class TestOrder:
    QUEUES = (
        child("a", "root", deserved=amounts_of(cpu=4)),
        child("a1", "a", deserved=amounts_of(cpu=1)),
        child("a2", "a", deserved=amounts_of(cpu=3)),
        child("b", "root", deserved=amounts_of(cpu=4)),
        child("b1", "b", priority=0),
    )

    def compare(self, left: str, right: str, *gangs: Any) -> int:
        hooks, _ = opened(self.QUEUES, *gangs)
        assert hooks.queue_order
        forth = hooks.queue_order(QueueName(left), QueueName(right))
        assert hooks.queue_order(QueueName(right), QueueName(left)) == -forth
        return forth

    def test_leaves_compare_by_their_ancestors_below_the_common_one(self) -> None:
        gangs = (holding("x", cpu=1, queue="a1"), holding("y", cpu=2, queue="b1"))
        # a holds 1 of 4, b 2 of 4, though a1 has all it deserves and b1 deserves nothing.
        assert self.compare("a1", "b1", *gangs) == -1
        assert self.compare("a2", "a1", *gangs) == -1

    def test_leaves_go_before_inner_queues(self) -> None:
        assert self.compare("a1", "b") == -1
        assert self.compare("a", "b", holding("y", cpu=2, queue="b1")) == -1

    def test_a_queue_is_equal_to_itself(self) -> None:
        assert self.compare("a1", "a1") == 0

    def test_priority_decides_first(self) -> None:
        hooks, _ = opened((*TREE, child("vip", "root", priority=5)))
        assert hooks.queue_order
        assert hooks.queue_order(QueueName("vip"), QueueName("sci")) < 0


def test_a_queue_that_its_siblings_guarantees_keep_small_is_told_whose() -> None:
    hooks, _ = opened((*TREE, child("far", "sci", guarantee=amounts_of(cpu=1))))
    assert hooks.allocatable
    refusal = hooks.allocatable(QueueName("prod"), sized_task(cpu=5))
    assert refusal is not None
    assert (refusal.cause, refusal.where) == (Cause.QUEUE_ROOM, "prod")
    assert refusal.holders == (Holder("guarantee of queue dev", "cpu", 2000),)
