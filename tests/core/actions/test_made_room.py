"""Room that was made by evictions is for whom it was made."""

from typing import Any

from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.workload import GroupPhase
from tests.builders import make_gang, make_queue
from tests.core.actions.rigs import HELM, Outcome, cores, cycle, gang_of, members, policies

ONE = cores(1)


def alone(name: str, *, created: float, **fields: Any) -> Gang:
    """A pod alone of one core."""
    return gang_of(name, 1, created=created, min_member=1, **fields)


def cycle_after_eviction(*gangs: Gang, by: str = "new-0", **fields: Any) -> Outcome:
    """A cycle after others were evicted for the pod ``by`` of the last gang."""
    [uid] = [task.uid for task in gangs[-1].waiting if task.name == by]
    return cycle(*gangs, nodes=ONE, made_room={gangs[-1].key: frozenset({uid})}, **fields)


def test_it_goes_before_older_ones_of_its_queue() -> None:
    outcome = cycle_after_eviction(alone("old", created=1), alone("new", created=2))
    assert outcome.order == ["new"]


def test_it_goes_before_the_queue_whose_turn_it_is() -> None:
    queues = [make_queue("a", priority=9), make_queue("b")]
    other = alone("old", created=1, queue=QueueName("a"))
    mine = alone("new", created=2, queue=QueueName("b"))
    assert cycle_after_eviction(other, mine, queues=queues).order == ["new"]


def test_a_group_of_higher_priority_goes_before_it_and_one_of_lower_does_not() -> None:
    higher, lower = alone("higher", created=1, priority=9), alone("lower", created=1, priority=3)
    mine = alone("new", created=2, priority=5)
    assert cycle_after_eviction(lower, mine).order == ["new"]
    assert cycle_after_eviction(higher, lower, mine).order == ["higher"]


def test_it_is_let_in_before_those_that_would_claim_its_room() -> None:
    pending: dict[str, Any] = {"phase": GroupPhase.PENDING}
    old, new = alone("old", created=1, **pending), alone("new", created=2, **pending)
    outcome = cycle_after_eviction(old, new, by="new-0")
    assert outcome.admitted[0] == "new"
    assert outcome.order == ["new"]


def test_one_that_is_planned_on_demand_does_not_get_it() -> None:
    outcome = cycle_after_eviction(
        alone("old", created=1), alone("new", created=2), on_demand="old"
    )
    assert outcome.order == ["new"]
    assert outcome.refused == {"old"}


def test_of_a_group_each_member_that_evicted_goes_first() -> None:
    waiting = members("new", 3)
    mine = make_gang("new", waiting=waiting, min_member=1, created=2.0)
    made_room = {mine.key: frozenset(task.uid for task in waiting[1:])}
    other = alone("old", created=1)
    outcome = cycle(other, mine, nodes=cores(2), made_room=made_room)
    assert outcome.members("new") == ["new-1", "new-2"]
    outcome = cycle(other, mine, nodes=cores(4), made_room=made_room)
    assert outcome.members("new") == ["new-1", "new-2", "new-0"]
    assert outcome.members("old") == ["old-0"]


def test_a_queue_that_holds_all_it_deserves_still_gets_no_turn() -> None:
    queues = [make_queue("a"), make_queue("b")]
    other = gang_of("old", 8, queue=QueueName("a"))
    mine = make_gang(
        "new", waiting=members("new", 4), min_member=1, queue=QueueName("b"), created=2.0
    )
    uids = frozenset(task.uid for task in mine.waiting)
    outcome = cycle(
        other,
        mine,
        nodes=cores(4),
        queues=queues,
        by=policies(HELM),
        made_room={mine.key: uids},
    )
    assert outcome.members("new") == ["new-0", "new-1"]
