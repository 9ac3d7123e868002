"""Queues with ``dequeueStrategy: fifo``: no group goes before one that is ahead of it."""

from typing import Any

from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.workload import Queue
from tests.builders import make_queue
from tests.core.actions.rigs import HELM, Outcome, cores, cycle, gang_of, newcomer, policies

FIFO = make_queue("a", in_order=True)
TRAVERSE = make_queue("a")


def of(name: str, size: int, *, created: float, **fields: Any) -> Gang:
    return gang_of(name, size, queue=QueueName("a"), created=created, **fields)


def planned(queue: Queue, *gangs: Gang) -> Outcome:
    """On 10 cores."""
    return cycle(*gangs, nodes=cores(10), queues=[queue, make_queue("b")], by=policies(HELM))


def test_a_younger_gang_that_fits_waits_behind_an_older_one_that_does_not() -> None:
    older, younger = of("older", 11, created=1.0), of("younger", 2, created=2.0)
    outcome = planned(FIFO, older, younger)
    assert outcome.order == []
    assert outcome.refusal("younger").cause is Cause.QUEUE_ORDER
    assert outcome.text("younger") == (
        "queue a keeps the order of its groups: default/older is before it"
    )
    assert planned(TRAVERSE, older, younger).order == ["younger"]


def test_those_ahead_of_the_first_that_does_not_fit_get_their_places() -> None:
    gangs = [of("one", 3, created=1.0), of("two", 8, created=2.0), of("three", 1, created=3.0)]
    assert planned(FIFO, *gangs).order == ["one"]


def test_a_higher_priority_is_ahead() -> None:
    gangs = [of("older", 11, created=1.0), of("urgent", 2, created=2.0, priority=5)]
    assert planned(FIFO, *gangs).order == ["urgent"]


def test_other_queues_do_not_wait() -> None:
    other = gang_of("other", 2, queue=QueueName("b"), created=3.0)
    assert planned(FIFO, of("older", 11, created=1.0), other).order == ["other"]


def test_members_beyond_the_minimum_do_not_stop_the_queue() -> None:
    elastic = of("elastic", 12, created=1.0, min_member=2)
    outcome = planned(FIFO, elastic, of("next", 2, created=2.0))
    assert set(outcome.order) == {"elastic", "next"}


def test_no_group_is_admitted_ahead_of_an_earlier_one() -> None:
    first = newcomer("first", cpu=13, queue="a", created=1.0)
    second = newcomer("second", cpu=2, queue="a", created=2.0)
    assert planned(TRAVERSE, first, second).admitted == ["second"]
    outcome = planned(FIFO, first, second)
    assert outcome.admitted == []
    assert outcome.refusal("second").cause is Cause.QUEUE_ORDER
