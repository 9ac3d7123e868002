"""Members that only lack nodes are shown, if they ask for it; their queue keeps room for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.node import Node
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.reason import Cause
from app.model.workload import GroupPhase, Queue, QueueState
from tests.builders import make_gang, make_queue
from tests.core.actions.rigs import (
    Outcome,
    amounts_of,
    cores,
    cycle,
    members,
    policies,
    sized,
    used,
    vector,
)

CAPACITY: Policies = policies((("priority", "gang"), ("predicates", "capacity")))
TREE = PluginConf("capacity", switches={"enableHierarchy": True})
IN_TREE: Policies = policies((("priority", "gang"), ("predicates", TREE)))
TEAM = QueueName("team")
ROOM_FOR_3 = make_queue(TEAM, capability=amounts_of(cpu=3))


def team(**fields: Any) -> Queue:
    return make_queue(TEAM, **fields)


def asking(name: str, size: int, *, shown: bool = False, cpu: float = 1, **fields: Any) -> Gang:
    """A gang in the queue of the team whose members ask to be shown, or are."""
    return all_of(name, members(name, size, cpu=cpu, queue_first=True, shown=shown), **fields)


def all_of(name: str, waiting: tuple[Task, ...], **fields: Any) -> Gang:
    asked = tuple(task for task in waiting if task.queue_first)
    return make_gang(name, queue=TEAM, waiting=waiting, queue_first=asked, **fields)


def planned(*gangs: Gang, nodes: tuple[Node, ...], queue: Queue | None = None) -> Outcome:
    shown = tuple(gang for gang in gangs if any(task.shown for task in gang.queue_first))
    queues = (queue or team(),)
    return cycle(*gangs, nodes=nodes, queues=queues, by=CAPACITY, shown=shown)


def shown(outcome: Outcome) -> list[str]:
    return sorted(uid.removeprefix("uid-") for uid in outcome.plan.shown)


def test_a_gang_that_only_lacks_nodes_is_shown() -> None:
    outcome = planned(asking("g", 2, cpu=3), nodes=cores(4, 2))
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_RESOURCES
    assert shown(outcome) == ["g-0", "g-1"]


def test_a_gang_that_gets_its_places_is_not() -> None:
    outcome = planned(asking("g", 2), nodes=cores(2))
    assert outcome.members("g") == ["g-0", "g-1"]
    assert not shown(outcome)


def test_a_gang_without_room_in_its_queue_stays_hidden() -> None:
    outcome = planned(
        asking("g", 3, cpu=3), nodes=cores(8, 8), queue=team(capability=amounts_of(cpu=8))
    )
    assert outcome.refusal("g").cause is Cause.QUEUE_QUOTA
    assert not shown(outcome)


def test_a_gang_whose_minimum_is_more_than_its_queue_has_is_not_shown_in_part() -> None:
    """The second member finds no node, the third would not find room in the queue."""
    outcome = planned(
        asking("g", 3, cpu=3), nodes=cores(4, 2, 2), queue=team(capability=amounts_of(cpu=8))
    )
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_RESOURCES
    assert not shown(outcome)


def test_what_such_a_gang_does_not_need_may_be_shown_of_the_next() -> None:
    big, small = asking("big", 3, cpu=3), asking("small", 1, cpu=7, created=1.0)
    outcome = planned(big, small, nodes=cores(4, 2, 2), queue=team(capability=amounts_of(cpu=8)))
    assert shown(outcome) == ["small-0"]


def test_of_members_beyond_the_minimum_as_many_are_shown_as_the_queue_has_room_for() -> None:
    outcome = planned(
        asking("g", 4, cpu=2, min_member=1),
        nodes=cores(3, 3),
        queue=team(capability=amounts_of(cpu=6)),
    )
    assert len(outcome.members("g")) == 2
    assert len(shown(outcome)) == 1
    assert not set(shown(outcome)) & set(outcome.members("g"))


def test_members_are_shown_in_the_order_in_which_they_would_get_places() -> None:
    """The tenth comes after the second."""
    outcome = planned(asking("g", 12, min_member=3), nodes=(), queue=ROOM_FOR_3)
    assert shown(outcome) == ["g-0", "g-1", "g-2"]


def test_those_that_the_minimums_of_roles_need_are_shown_first() -> None:
    fields: dict[str, Any] = {"queue_first": True}
    waiting = members("g", 5, role="a", **fields) + members("g", 2, role="b", **fields)
    gang = all_of("g", waiting, min_member=3, role_minimum={"a": 1, "b": 2})
    assert shown(planned(gang, nodes=(), queue=ROOM_FOR_3)) == ["g-a-0", "g-b-0", "g-b-1"]


@pytest.mark.parametrize(
    ("sizes", "least", "expected"),
    [
        ("0101", 1, ["g-0", "g-2"]),
        ("0101", 2, []),
        ("0012", 1, ["g-0", "g-1"]),
        ("000-", 1, ["g-0", "g-1", "g-3"]),
    ],
)
def test_of_sub_groups_as_many_are_shown_as_the_queue_has_room_for_whole(
    sizes: str, least: int, expected: list[str]
) -> None:
    gang = asking("g", 4, min_member=2)
    names = (SubGroup("s", size) for size in sizes)
    parts = {t.uid: of for t, of in zip(gang.waiting, names, strict=True) if of.values != "-"}
    gang = replace(
        gang,
        sub_groups=(SubGroupPolicy("s", keys=("k",), size=2, least=least),),
        sub_group_of=parts,
        sub_group_valid=Counter(parts.values()),
    )
    assert shown(planned(gang, nodes=(), queue=ROOM_FOR_3)) == expected


def test_members_that_do_not_ask_stay_hidden() -> None:
    first, second = members("g", 2, cpu=3)
    gang = all_of("g", (first, replace(second, queue_first=True)))
    assert shown(planned(gang, nodes=cores(4, 2))) == ["g-1"]


@pytest.mark.parametrize("plugin", ["overcommit", "capacity", "proportion"])
def test_a_gang_that_is_kept_out_by_the_size_of_the_cluster_is_shown(plugin: str) -> None:
    """An empty node more and it would be let in; that is what an autoscaler must hear."""
    by = policies((("priority", "gang"), ("predicates", plugin)))
    outcome = cycle(claiming(2, cpu=10), nodes=cores(8), queues=(team(),), by=by)
    assert not outcome.admitted
    assert shown(outcome) == ["g-0", "g-1"]


def test_a_gang_that_holds_the_share_of_its_queue_is_shown() -> None:
    by = policies((("priority", "gang"), ("predicates", "proportion")))
    nodes = cores(4)
    runs = make_gang("runs", queue=TEAM, allocated=vector(cpu=2, pods=2))
    gangs = (runs, asking("waits", 1), make_gang("rival", waiting=members("rival", 2)))
    outcome = cycle(*gangs, nodes=nodes, queues=(team(),), by=by, used=used(nodes, n0=2))
    assert outcome.refusal("waits").cause is Cause.QUEUE_OVERUSED
    assert shown(outcome) == ["waits-0"]


@pytest.mark.parametrize("plugin", ["overcommit", "capacity", "proportion"])
def test_a_gang_whose_queue_is_closed_stays_hidden(plugin: str) -> None:
    by = policies((("priority", "gang"), ("predicates", plugin)))
    closed = team(state=QueueState.CLOSED)
    outcome = cycle(claiming(2, cpu=10), nodes=cores(8), queues=(closed,), by=by)
    assert outcome.refusal("g").cause is Cause.QUEUE_CLOSED
    assert not outcome.plan.shown


def test_a_queue_keeps_no_room_for_members_of_a_gang_that_is_not_admitted() -> None:
    """It is kept out by the claims of those that are, who would wait for it in turn."""
    out = claiming(2, cpu=3, shown=True)
    small = asking("small", 4, created=1.0)
    outcome = planned(out, small, nodes=cores(2, 2), queue=team(capability=amounts_of(cpu=6)))
    assert not outcome.admitted
    assert len(outcome.members("small")) == 4


@pytest.mark.parametrize("created", [-1.0, 1.0], ids=["older", "younger"])
@pytest.mark.parametrize("plugin", ["capacity", "proportion"])
def test_beside_such_a_gang_only_those_are_shown_that_its_queue_has_room_for_too(
    plugin: str, created: float
) -> None:
    """Nodes for more than the queue may hold would stay empty."""
    out = claiming(2, cpu=5, shown=True)
    next_one = claiming(2, cpu=5, name="next", created=created)
    small = claiming(1, cpu=9, name="small", created=2.0)
    outcome = cycle(
        *(out, next_one, small),
        nodes=cores(8),
        queues=(team(capability=amounts_of(cpu=19)),),
        by=policies((("priority", "gang"), ("predicates", "overcommit", plugin))),
        shown=(out,),
    )
    assert not outcome.admitted
    assert shown(outcome) == ["small-0"]


def claiming(size: int, *, cpu: float, name: str = "g", **fields: Any) -> Gang:
    """A gang that is not let in yet and says what it needs."""
    gang = asking(name, size, cpu=cpu, phase=GroupPhase.PENDING, **fields)
    return replace(gang, min_request=gang.request)


def test_two_gangs_are_shown_only_if_their_queue_has_room_for_both() -> None:
    one, other = asking("one", 1, cpu=3), asking("other", 1, cpu=3, created=1.0)
    nodes = cores(2, 2, 2)
    both = planned(one, other, nodes=nodes, queue=team(capability=amounts_of(cpu=6)))
    assert shown(both) == ["one-0", "other-0"]
    first = planned(one, other, nodes=nodes, queue=team(capability=amounts_of(cpu=5)))
    assert shown(first) == ["one-0"]


@pytest.mark.parametrize("by", [CAPACITY, IN_TREE], ids=["flat", "tree"])
def test_a_queue_keeps_room_for_members_that_are_shown(by: Policies) -> None:
    waits = asking("waits", 1, cpu=4, shown=True, created=1.0)
    small = asking("small", 3, priority=9)
    outcome = cycle(
        waits,
        small,
        nodes=cores(3, 3),
        queues=(team(capability=amounts_of(cpu=6)),),
        by=by,
        shown=(waits,),
    )
    assert not outcome.members("small")
    refusal = outcome.refusal("small")
    assert refusal.cause is Cause.QUEUE_QUOTA
    assert "queue team: cpu asked 3, free 2 of 6" in outcome.text("small")
    assert not outcome.plan.shown, "what is shown already is not shown again"


DIVISION = QueueName("division")
OTHER_TEAM = QueueName("other-team")


def in_division(*gangs: Gang, nodes: tuple[Node, ...], by: Policies = IN_TREE) -> Outcome:
    """Planned where both teams have 4 cores together, or each by itself when queues are flat."""
    room = amounts_of(cpu=4)
    queues = (
        make_queue(DIVISION, capability=room),
        team(parent=DIVISION, capability=room),
        make_queue(OTHER_TEAM, parent=DIVISION, capability=room),
    )
    seen = tuple(gang for gang in gangs if any(task.shown for task in gang.queue_first))
    return cycle(*gangs, nodes=nodes, queues=queues, by=by, shown=seen)


def of_other_team(gang: Gang) -> Gang:
    return replace(gang, queue=OTHER_TEAM)


@pytest.mark.parametrize(
    ("by", "seen"), [(IN_TREE, ["one-0"]), (CAPACITY, ["one-0", "other-0"])], ids=["tree", "flat"]
)
def test_of_sibling_queues_no_more_is_shown_than_the_one_above_may_hold(
    by: Policies, seen: list[str]
) -> None:
    other = of_other_team(asking("other", 1, cpu=3, created=1.0))
    outcome = in_division(asking("one", 1, cpu=3), other, nodes=(), by=by)
    assert shown(outcome) == seen


def test_room_that_is_kept_in_a_queue_is_not_free_to_its_siblings() -> None:
    waits = asking("waits", 1, cpu=3, shown=True, created=1.0)
    sibling = of_other_team(asking("sibling", 1, cpu=2, priority=9))
    outcome = in_division(waits, sibling, nodes=cores(2))
    assert not outcome.members("sibling")
    assert "queue division: cpu asked 2, free 1 of 4" in outcome.text("sibling")


def test_where_queues_form_no_tree_it_is_kept_in_that_queue_only() -> None:
    waits = asking("waits", 1, cpu=3, shown=True, created=1.0)
    above = replace(asking("above", 1, cpu=2), queue=DIVISION)
    outcome = in_division(waits, above, nodes=cores(2), by=CAPACITY)
    assert outcome.members("above") == ["above-0"]


def test_members_of_siblings_that_are_shown_do_not_keep_each_other_back() -> None:
    one, other = asking("one", 1, cpu=3, shown=True), asking("other", 1, cpu=1, shown=True)
    outcome = in_division(one, of_other_team(other), nodes=cores(8))
    assert sorted(outcome.order) == ["one", "other"]


def test_members_that_are_shown_take_what_is_kept_for_them() -> None:
    waits = asking("waits", 2, cpu=2, shown=True)
    outcome = planned(waits, nodes=cores(4), queue=team(capability=amounts_of(cpu=4)))
    assert outcome.members("waits") == ["waits-0", "waits-1"]


def test_members_that_are_shown_do_not_keep_each_other_back_when_the_limit_is_lowered() -> None:
    one, other = asking("one", 1, cpu=3, shown=True), asking("other", 1, cpu=3, shown=True)
    outcome = planned(one, other, nodes=cores(8), queue=team(capability=amounts_of(cpu=5)))
    assert outcome.order == ["one"]
    assert outcome.refusal("other").cause is Cause.QUEUE_QUOTA


@pytest.mark.parametrize("minimum", [1, 3])
def test_members_that_are_shown_get_what_is_kept_for_them_after_hidden_ones_got_nothing(
    minimum: int,
) -> None:
    waiting = members("g", 12, shape=sized(1), queue_first=True)
    seen = ["g-1", "g-4", "g-10"]
    waiting = tuple(replace(task, shown=task.name in seen) for task in waiting)
    gang = all_of("g", waiting, min_member=minimum)
    assert planned(gang, nodes=cores(8), queue=ROOM_FOR_3).members("g") == seen


def test_a_hidden_gang_without_room_keeps_no_equal_one_that_is_shown_out() -> None:
    shape = sized(1)
    hidden = make_gang("hidden", queue=TEAM, waiting=members("hidden", 3, shape=shape))
    seen = members("seen", 3, shape=shape, queue_first=True, shown=True)
    outcome = planned(hidden, all_of("seen", seen, created=1.0), nodes=cores(8), queue=ROOM_FOR_3)
    assert outcome.members("seen") == ["seen-0", "seen-1", "seen-2"]
    assert outcome.refusal("hidden").cause is Cause.QUEUE_QUOTA


def test_a_gang_that_was_shown_before_it_is_admitted_keeps_no_equal_one_out() -> None:
    """Nothing is kept for it yet, and what is kept for the other it does not get."""
    seen: dict[str, Any] = {"shape": sized(3), "queue_first": True, "shown": True}
    new = all_of("new", members("new", 1, **seen), phase=GroupPhase.PENDING)
    old = all_of("old", members("old", 1, **seen), created=1.0)
    outcome = planned(new, old, nodes=cores(8), queue=ROOM_FOR_3)
    assert outcome.admitted == ["new"]
    assert outcome.members("old") == ["old-0"]
