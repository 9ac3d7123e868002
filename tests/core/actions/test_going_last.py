"""allocate: members beyond the minimum that had a place before, and that nobody came for."""

from typing import Any

import pytest

from app.model.gang import Gang
from app.model.ids import PodUid, QueueName
from app.model.reason import Cause
from app.model.workload import GroupPhase
from tests.builders import make_amounts, make_gang, make_queue
from tests.core.actions.rigs import cores, counts_of, cycle, gang_of, members, policies, vector

NOW = 100.0


def elastic(name: str, extras: int, *, unused: tuple[int, ...] = (), **fields: Any) -> Gang:
    """A gang that has its minimum of one, and members for a core each beyond that."""
    waiting = members(name, extras)
    defaults: dict[str, Any] = {
        "min_member": 1,
        "phase": GroupPhase.RUNNING,
        "counts": counts_of(waiting, running=1),
        "unused": frozenset(PodUid(f"uid-{name}-{number}") for number in unused),
    }
    return make_gang(name, waiting=waiting, **(defaults | fields))


def test_they_come_after_all_others() -> None:
    first = elastic("a", 2, unused=(0, 1), created=1.0)
    second = elastic("b", 2, created=2.0)
    third = gang_of("c", 1, created=3.0)
    outcome = cycle(first, second, third, nodes=cores(4))
    assert outcome.order == ["c", "b", "b", "a"]
    assert outcome.refusal("a").cause is Cause.NOT_ENOUGH_RESOURCES


def test_those_of_other_queues_go_before_them_too() -> None:
    first = elastic("a", 1, unused=(0,), queue=QueueName("q"))
    second = elastic("b", 1)
    queues = (make_queue("q", priority=10),)
    by = policies((("priority", "gang"), ("predicates", "capacity")))
    assert cycle(first, second, nodes=cores(1), queues=queues, by=by).order == ["b"]


def test_among_themselves_they_keep_their_order() -> None:
    first = elastic("a", 2, unused=(0, 1), created=1.0)
    second = elastic("b", 2, unused=(0, 1), created=2.0)
    outcome = cycle(first, second, nodes=cores(3))
    assert [*outcome.members("a"), *outcome.members("b")] == ["a-0", "a-1", "b-0"]


def test_others_of_their_gang_go_before_them() -> None:
    outcome = cycle(elastic("a", 3, unused=(0,)), nodes=cores(3))
    assert outcome.members("a") == ["a-1", "a-2", "a-0"]


@pytest.mark.parametrize(("now", "first"), [(NOW - 1, "b"), (NOW + 1, "a")])
def test_all_of_the_gang_go_last_for_a_moment(now: float, first: str) -> None:
    yielding = elastic("a", 3, unused=(0,), created=1.0, yields_until=NOW)
    outcome = cycle(yielding, elastic("b", 1, created=2.0), nodes=cores(1), now=now)
    assert outcome.order == [first]


def test_in_its_own_gang_the_others_go_first_then_too() -> None:
    yielding = elastic("a", 3, unused=(0,), yields_until=NOW)
    assert cycle(yielding, nodes=cores(2)).members("a") == ["a-1", "a-2"]


def test_asked_about_alone_they_have_what_is_free() -> None:
    yielding = elastic("a", 1, unused=(0,), yields_until=NOW)
    assert cycle(yielding, nodes=cores(1), on_demand="a").members("a") == ["a-0"]


def test_what_a_minimum_lacks_goes_last_with_nobody() -> None:
    """It had its minimum when they got their places, and lost a member since."""
    lacking = elastic("a", 2, unused=(0, 1), min_member=3, created=1.0, yields_until=NOW)
    outcome = cycle(lacking, elastic("b", 1, created=2.0), nodes=cores(2))
    assert outcome.order == ["a"]


def test_a_minimum_that_does_not_fit_is_tried_once() -> None:
    lacking = elastic("a", 2, unused=(0, 1), min_member=3)
    outcome = cycle(lacking, elastic("b", 1), nodes=cores(1))
    assert outcome.order == ["b"]
    assert outcome.refusal("a").cause is Cause.NOT_ENOUGH_RESOURCES


def test_limits_hold_for_them() -> None:
    queue = make_queue("q", capability=make_amounts(cpu=1000))
    gang = elastic("a", 2, unused=(0, 1), queue=QueueName("q"), allocated=vector(cpu=0))
    by = policies((("gang",), ("predicates", "capacity")))
    outcome = cycle(gang, nodes=cores(4), queues=(queue,), by=by)
    assert outcome.members("a") == ["a-0"]
    assert outcome.refusal("a").cause is Cause.QUEUE_QUOTA
