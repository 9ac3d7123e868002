"""proportion: queues take back what they deserve by weight."""

import pytest

from app.model.eviction import EvictionAction
from app.model.reason import Cause
from app.model.workload import Queue
from tests.builders import GIB, make_node, make_queue
from tests.core.contests import RECLAIM, Contest, cluster, contest, preemptor, runs, wants
from tests.core.plugins.sessions import amounts_of

NODES = (make_node("n1", cpu=8000, memory=80 * GIB),)
A, B = make_queue("a"), make_queue("b")


def game(*, held: int, asked: int, queues: tuple[Queue, ...] = (A, B), cpu: float = 1) -> Contest:
    """``b`` holds so many cores in pods of ``cpu``, ``a`` asks for so many."""
    new = wants("new", asked, queue="a")
    runner = runs("g", int(held / cpu), cpu=cpu, queue="b")
    return contest("proportion", cluster(runner, waits=(new,), queues=queues, nodes=NODES))


@pytest.mark.parametrize(
    ("held", "asked", "may_go"),
    [
        (8, 4, True),
        (8, 1, True),
        (5, 4, True),
        (4, 4, False),
        (3, 4, False),
        (6, 2, False),
    ],
)
def test_a_pod_goes_while_its_queue_holds_more_than_it_deserves(
    held: int, asked: int, may_go: bool
) -> None:
    contest_ = game(held=held, asked=asked)
    new = contest_.ledger.snapshot.gangs["default/new"]  # type: ignore[index]
    assert contest_.reclaims(new, "g-0") is may_go


def test_a_queue_is_taken_from_down_to_its_share() -> None:
    contest_ = game(held=8, asked=8)
    new = wants("new", 8, queue="a")
    by = preemptor(new, RECLAIM)
    gone = 0
    while contest_.asks(contest_.hooks.reclaimable, by, f"g-{gone}"):
        contest_.evicts(f"g-{gone}")
        gone += 1
    assert gone == 4


def test_a_pod_that_frees_nothing_that_is_asked_for_stays() -> None:
    new = wants("new", 4, cpu=0, gib=10, queue="a")
    runner = runs("g", 8, cpu=1, gib=0, queue="b")
    contest_ = contest("proportion", cluster(runner, waits=(new,), queues=(A, B), nodes=NODES))
    assert contest_.reclaims(new, "g-0") is False


def test_pods_of_its_own_queue_are_no_matter_of_shares() -> None:
    new = wants("new", 4, queue="b")
    contest_ = contest(
        "proportion", cluster(runs("g", 8, queue="b"), waits=(new,), queues=(A, B), nodes=NODES)
    )
    assert contest_.reclaims(new, "g-0") is None


@pytest.mark.parametrize(
    ("holds", "asks", "may_take"), [(0, 4, True), (0, 5, False), (3, 2, False)]
)
def test_a_queue_takes_no_more_than_it_deserves(holds: int, asks: int, may_take: bool) -> None:
    new = wants("new", asks, queue="a")
    runners = [runs("g", 8 - holds, queue="b"), runs("mine", holds, queue="a")]
    contest_ = contest("proportion", cluster(*runners, waits=(new,), queues=(A, B), nodes=NODES))
    assert contest_.hooks.preemptive
    refusal = contest_.hooks.preemptive(preemptor(new, RECLAIM))
    assert (refusal is None) is may_take
    assert refusal is None or refusal.cause is Cause.QUEUE_OVERUSED


def test_a_queue_never_takes_more_than_its_capability() -> None:
    small = make_queue("a", capability=amounts_of(cpu=2))
    new = wants("new", 3, queue="a")
    contest_ = contest(
        "proportion",
        cluster(runs("g", 8, queue="b"), waits=(new,), queues=(small, B), nodes=NODES),
    )
    assert contest_.hooks.preemptive
    refusal = contest_.hooks.preemptive(preemptor(new, RECLAIM))
    assert refusal is not None
    assert refusal.cause is Cause.QUEUE_QUOTA


def test_queues_that_nobody_asks_beside_keep_what_they_hold() -> None:
    contest_ = contest("proportion", cluster(runs("g", 8, queue="b"), queues=(A, B), nodes=NODES))
    other = wants("other", 4, queue="a")
    assert contest_.reclaims(other, "g-0") is False


def test_actions_that_take_gangs_ask_the_same_between_queues_only() -> None:
    contest_ = game(held=8, asked=4)
    new = wants("new", 4, queue="a")
    rule = contest_.hooks.unified_evictable
    assert contest_.asks(rule, preemptor(new, EvictionAction.GANG_RECLAIM), "g-0")
    assert contest_.asks(rule, preemptor(new, EvictionAction.GANG_PREEMPT), "g-0") is None
