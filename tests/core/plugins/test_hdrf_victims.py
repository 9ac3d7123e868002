"""drf with enableHierarchy: branches of the tree give room to smaller ones."""

import pytest

from app.core.victim_rules import Preemptor
from app.model.eviction import EvictionAction
from app.model.gang import Gang
from app.model.workload import Queue
from tests.builders import GIB, make_node, make_queue
from tests.core.contests import RECLAIM, Contest, Runner, cluster, contest, preemptor, runs, wants

NODES = (make_node("n1", cpu=12_000, memory=100 * GIB),)


def placed(name: str, path: str, weights: str = "") -> Queue:
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return make_queue(name, annotations=annotations)


def game(queues: tuple[Queue, ...], *runners: Runner, waits: tuple[Gang, ...]) -> Contest:
    snapshot = cluster(*runners, waits=waits, queues=queues, nodes=NODES)
    return contest("drf", snapshot, switches={"enableHierarchy": True})


@pytest.mark.parametrize(
    ("weights", "held", "asked", "may_go"),
    [
        ("1/1", 4, 2, True),
        ("1/1", 4, 3, False),
        ("1/1", 4, 4, False),
        ("1/3", 7, 1, True),
        ("1/3", 7, 2, False),
        ("1/3", 3, 1, False),
    ],
)
def test_a_branch_takes_while_it_stays_the_smaller_by_its_weight(
    weights: str, held: int, asked: int, may_go: bool
) -> None:
    queues = (placed("a", "root/a", "1/1"), placed("b", "root/b", weights))
    new = wants("new", asked, queue="a")
    contest_ = game(queues, runs("g", held, queue="b"), waits=(new,))
    assert contest_.reclaims(new, "g-0") is may_go


def test_the_branches_below_the_parting_count_and_not_the_leaves() -> None:
    queues = (
        placed("a", "root/one/a"),
        placed("b", "root/two/b"),
        placed("c", "root/two/c"),
        placed("d", "root/one/d"),
    )
    new, more = wants("new", 2, queue="a"), wants("more", 6, queue="a")
    siblings = runs("m", 6, queue="d")
    contest_ = game(queues, siblings, runs("g", 4, queue="b"), waits=(new, more))

    assert contest_.reclaims(new, "m-0")
    assert not contest_.reclaims(more, "m-0")
    assert not contest_.reclaims(new, "g-0"), "both leaves of the other branch hold less"


def test_each_eviction_makes_the_other_branch_smaller() -> None:
    queues = (placed("a", "root/a"), placed("b", "root/b"))
    new = wants("new", 2, queue="a")
    contest_ = game(queues, runs("g", 5, queue="b"), waits=(new,))
    by: Preemptor = preemptor(new, RECLAIM)
    rule = contest_.hooks.reclaimable
    assert contest_.asks(rule, by, "g-0")
    contest_.evicts("g-0")
    assert contest_.asks(rule, by, "g-1")
    contest_.evicts("g-1")
    assert not contest_.asks(rule, by, "g-2")


def test_queues_without_a_place_in_the_tree_take_nothing() -> None:
    queues = (make_queue("a"), placed("b", "root/b"))
    new = wants("new", queue="a")
    contest_ = game(queues, runs("g", 5, queue="b"), waits=(new,))
    assert contest_.reclaims(new, "g-0") is False


def test_the_actions_that_take_gangs_ask_the_same_between_queues_only() -> None:
    queues = (placed("a", "root/a"), placed("b", "root/b"))
    new = wants("new", queue="a")
    contest_ = game(queues, runs("g", 5, queue="b"), waits=(new,))
    rule = contest_.hooks.unified_evictable
    assert contest_.asks(rule, preemptor(new, EvictionAction.GANG_RECLAIM), "g-0")
    assert contest_.asks(rule, preemptor(new, EvictionAction.GANG_PREEMPT), "g-0") is None


def test_the_question_changes_nothing_in_the_order_of_queues() -> None:
    queues = (placed("a", "root/a"), placed("b", "root/b"))
    new = wants("new", 2, queue="a")
    contest_ = game(queues, runs("g", 5, queue="b"), runs("h", 1, queue="a"), waits=(new,))
    order = contest_.hooks.queue_order
    assert order
    names = [queue.name for queue in queues]
    before = order(names[0], names[1])
    contest_.reclaims(new, "g-0")
    assert order(names[0], names[1]) == before == -1
