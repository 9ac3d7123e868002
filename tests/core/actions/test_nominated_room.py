"""Room that was made by evictions is for whom it was made."""

from typing import Any

import pytest

from app.model.gang import Gang
from app.model.ids import NodeName, QueueName
from app.model.reason import Shortfall
from app.model.snapshot import NominatedRoom
from app.model.workload import GroupPhase
from tests.builders import make_amounts, make_gang, make_queue
from tests.core.actions.rigs import (
    STRICT,
    Outcome,
    Tiers,
    cores,
    cycle,
    gang_of,
    members,
    policies,
    used,
    vector,
)

ONE = cores(1)
CAPPED: Tiers = (("priority", "gang"), ("predicates", "capacity"))
"""Queues have limits, and no shares."""


def alone(name: str, *, created: float, **fields: Any) -> Gang:
    """A pod alone of one core."""
    return gang_of(name, 1, created=created, min_member=1, **fields)


def made(gang: Gang, *names: str, node: str = "n0", done: bool = True) -> dict[str, Any]:
    """Room was made on that node for these members of ``gang``; for all of them by default."""
    uids = [task.uid for task in gang.waiting if not names or task.name in names]
    return {gang.key: {uid: NominatedRoom(NodeName(node), done=done) for uid in uids}}


def cycle_after_eviction(*gangs: Gang, **fields: Any) -> Outcome:
    """A cycle after others were evicted for the last gang."""
    return cycle(*gangs, nodes=ONE, nominated_room=made(gangs[-1]), **fields)


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


def test_one_that_is_planned_on_demand_does_not_get_it() -> None:
    old, new = alone("old", created=1), alone("new", created=2)
    outcome = cycle_after_eviction(old, new, on_demand="old")
    assert outcome.order == []
    assert outcome.refusal("old").shortfalls == (Shortfall("cpu", asked=1000, free=0, limit=1000),)
    assert cycle_after_eviction(old, new, on_demand="new").order == ["new"]


def test_one_of_higher_priority_that_is_planned_on_demand_gets_it() -> None:
    higher, new = alone("higher", created=1, priority=9), alone("new", created=2)
    assert cycle_after_eviction(higher, new, on_demand="higher").order == ["higher"]


@pytest.mark.parametrize("on_demand", ["", "higher"])
@pytest.mark.parametrize("done", [True, False])
def test_one_of_higher_priority_that_has_its_minimum_gets_none_of_it(
    on_demand: str, *, done: bool
) -> None:
    higher = gang_of("higher", 2, created=1, min_member=0, priority=9)
    new = alone("new", created=2)
    outcome = cycle(
        higher, new, nodes=ONE, nominated_room=made(new, done=done), on_demand=on_demand
    )
    assert "higher" not in outcome.order


@pytest.mark.parametrize("on_demand", ["", "higher"])
def test_one_of_higher_priority_gets_its_minimum_of_it_and_no_more(on_demand: str) -> None:
    higher, new = gang_of("higher", 2, created=1, min_member=1, priority=9), alone("new", created=2)
    outcome = cycle(higher, new, nodes=cores(2), nominated_room=made(new), on_demand=on_demand)
    assert outcome.order == ["higher", *([] if on_demand else ["new"])]


@pytest.mark.parametrize("done", [True, False])
def test_another_that_evicted_and_is_planned_on_demand_does_not_get_it(*, done: bool) -> None:
    one, two = alone("one", created=1), alone("two", created=2)
    nodes = cores(1, 1)
    places = {**made(one, node="n1", done=done), **made(two, node="n0", done=done)}
    outcome = cycle(
        one, two, nodes=nodes, used=used(nodes, n0=1), nominated_room=places, on_demand="two"
    )
    assert outcome.order == []


def test_on_demand_too_it_is_for_the_one_whose_victims_have_gone() -> None:
    one, two = alone("one", created=1), alone("two", created=2)
    places = {**made(one, done=False), **made(two)}
    outcome = cycle(one, two, nodes=ONE, nominated_room=places, on_demand="two")
    assert outcome.order == ["two"]


def test_on_demand_too_one_of_higher_priority_has_its_room_first() -> None:
    higher, two = alone("higher", created=1, priority=9), alone("two", created=2)
    places = {**made(higher), **made(two)}
    assert cycle(higher, two, nodes=ONE, nominated_room=places, on_demand="two").order == []


@pytest.mark.parametrize("on_demand", ["", "old"])
def test_nothing_is_held_for_one_that_may_not_have_it(on_demand: str) -> None:
    queues = [make_queue("full", capability=make_amounts(cpu=500)), make_queue("default")]
    old, mine = alone("old", created=1), alone("new", created=2, queue=QueueName("full"))
    outcome = cycle(
        old,
        mine,
        nodes=ONE,
        queues=queues,
        by=policies(CAPPED),
        nominated_room=made(mine),
        on_demand=on_demand,
    )
    assert outcome.order == ["old"]


@pytest.mark.parametrize("on_demand", ["", "old"])
def test_nothing_is_held_for_one_that_lets_others_go_first(on_demand: str) -> None:
    old, mine = alone("old", created=1), alone("new", created=2, cool_down_until=5.0)
    outcome = cycle(old, mine, nodes=ONE, nominated_room=made(mine), on_demand=on_demand)
    assert outcome.order == ["old"]


@pytest.mark.parametrize(
    ("node", "fields"),
    [("gone", {}), ("n0", {"cool_down_until": 5.0}), ("n0", {"queue": QueueName("full")})],
    ids=["its node is gone", "it lets others go first", "its queue may have no more"],
)
def test_one_that_nothing_can_be_given_to_changes_no_turns(
    node: str, fields: dict[str, Any]
) -> None:
    queues = [
        make_queue("a", priority=9),
        make_queue("b"),
        make_queue("default"),
        make_queue("full", capability=make_amounts(cpu=500)),
    ]
    first = alone("first", created=1, queue=QueueName("a"), priority=2)
    higher = alone("higher", created=2, queue=QueueName("b"), priority=3)
    low = alone("low", created=3, priority=1, **fields)
    outcome = cycle(
        first,
        higher,
        low,
        nodes=ONE,
        queues=queues,
        by=policies(CAPPED),
        nominated_room=made(low, node=node),
    )
    assert outcome.order == ["first"]


def test_it_is_held_while_a_victim_is_still_there() -> None:
    old, new = alone("old", created=1), alone("new", created=2)
    outcome = cycle(old, new, nodes=ONE, nominated_room=made(new, done=False))
    assert outcome.order == []
    assert outcome.refused == {"old", "new"}


def test_what_is_held_is_not_free_in_the_reasons_of_others() -> None:
    higher = gang_of("higher", 1, cpu=2, min_member=1, created=1.0, priority=9)
    old, new = gang_of("old", 1, cpu=3, created=1.0), alone("new", created=2)
    outcome = cycle(higher, old, new, nodes=ONE, nominated_room=made(new, done=False))
    assert outcome.refusal("higher").shortfalls[0].free == 1000
    assert outcome.refusal("old").shortfalls[0].free == 0


def test_what_one_of_several_victims_left_is_held_for_the_rest() -> None:
    old = alone("old", created=1)
    new = gang_of("new", 1, cpu=2, min_member=1, created=2.0)
    nodes = cores(2)
    outcome = cycle(old, new, nodes=nodes, used=used(nodes, n0=1), nominated_room=made(new))
    assert outcome.order == []


def test_room_elsewhere_is_for_whose_turn_it_is() -> None:
    old, new = alone("old", created=1), alone("new", created=2)
    nodes = cores(1, 1)
    outcome = cycle(old, new, nodes=nodes, used=used(nodes, n0=1), nominated_room=made(new))
    assert outcome.nodes("old") == {"old-0": "n1"}
    assert outcome.nodes("new") == {}


def test_two_that_evicted_get_the_room_of_their_own_victims() -> None:
    one, two = alone("one", created=1), alone("two", created=2)
    nodes = cores(1, 1)
    places = {**made(one, node="n1"), **made(two, node="n0")}
    outcome = cycle(one, two, nodes=nodes, used=used(nodes, n1=1), nominated_room=places)
    assert outcome.nodes("one") == {}
    assert outcome.nodes("two") == {"two-0": "n0"}


def test_on_one_node_it_is_for_the_one_whose_victims_have_gone() -> None:
    one, two = alone("one", created=1), alone("two", created=2)
    nodes = cores(2)
    places = {**made(one, done=False), **made(two)}
    outcome = cycle(one, two, nodes=nodes, used=used(nodes, n0=1), nominated_room=places)
    assert outcome.order == ["two"]


def test_of_two_members_that_evicted_on_one_node_the_first_gets_what_is_there() -> None:
    waiting = members("new", 2)
    for order in (waiting, waiting[::-1]):
        mine = make_gang("new", waiting=order, min_member=1)
        outcome = cycle(mine, nodes=ONE, nominated_room=made(mine))
        assert outcome.members("new") == ["new-0"]


def test_of_a_group_each_member_that_evicted_gets_its_own() -> None:
    mine = make_gang("new", waiting=members("new", 3), min_member=1, created=2.0)
    other = alone("old", created=1)
    places = made(mine, "new-1", "new-2")
    outcome = cycle(other, mine, nodes=cores(2), nominated_room=places)
    assert outcome.members("new") == ["new-1", "new-2"]
    outcome = cycle(other, mine, nodes=cores(4), nominated_room=places)
    assert outcome.members("new") == ["new-1", "new-2", "new-0"]
    assert outcome.members("old") == ["old-0"]


def led(*, leaders: int = 0) -> Gang:
    """A group of one that needs a leader; a worker of higher rank waits, and so many leaders."""
    workers = members("new", 1, role="worker", priority=1)
    waiting = (*workers, *members("new", leaders, role="leader"))
    minimum = {"leader": 1}
    return make_gang("new", waiting=waiting, min_member=1, role_minimum=minimum, created=2.0)


def test_a_member_that_is_not_of_the_role_that_is_needed_gets_none() -> None:
    old, new = alone("old", created=1), led()
    assert cycle(old, new, nodes=ONE, nominated_room=made(new)).order == ["old"]


def test_the_role_that_is_needed_comes_first() -> None:
    new = led(leaders=1)
    outcome = cycle(alone("old", created=1), new, nodes=cores(2), nominated_room=made(new))
    assert outcome.members("new") == ["new-leader-0", "new-worker-0"]


def test_it_is_held_for_others_of_the_group_until_the_role_that_is_needed_has_its_own() -> None:
    old, new = alone("old", created=1), led(leaders=1)
    places = {
        new.key: {
            **made(new, "new-worker-0")[new.key],
            **made(new, "new-leader-0", node="n1", done=False)[new.key],
        }
    }
    nodes = cores(1, 1)
    outcome = cycle(old, new, nodes=nodes, used=used(nodes, n1=1), nominated_room=places)
    assert outcome.order == []


def test_a_queue_gets_no_more_than_it_may_have() -> None:
    queues = [make_queue("a"), make_queue("b")]
    other = gang_of("old", 8, queue=QueueName("a"))
    mine = make_gang(
        "new", waiting=members("new", 4), min_member=1, queue=QueueName("b"), created=2.0
    )
    outcome = cycle(
        other, mine, nodes=cores(4), queues=queues, by=policies(STRICT), nominated_room=made(mine)
    )
    assert outcome.members("new") == ["new-0", "new-1"]


def test_gangs_admitted_without_a_vote_are_so_in_the_order_of_names() -> None:
    one, two = (
        alone(name, created=1, phase=GroupPhase.PENDING, min_request=vector(cpu=1))
        for name in ("one", "two")
    )
    node_usage = {**made(one), **made(two)}
    for order in ((one, two), (two, one)):
        assert cycle(*order, nodes=ONE, nominated_room=node_usage).admitted == ["one", "two"]
